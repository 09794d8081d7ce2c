#include "evidence/variance.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tensor/rng.h"

namespace bakeoff {
namespace {

using ::testing::HasSubstr;

struct Noise {
  double process = 0, burst = 0, step = 0;
};

std::vector<Trial> race_of(int heats, const Noise& noise, bool marks = true) {
  tensor::Rng random(9);
  std::vector<Trial> trials;
  for (int heat = 1; heat <= heats; ++heat) {
    for (const char* id : {"a", "b"}) {
      Trial trial{.contender = id, .heat = heat};
      trial.start_ns = 2'000'000'000;
      const double level = 3 + noise.process * random.normal();
      for (int b = 0; b < 4; ++b) {
        const double here = level + noise.burst * random.normal();
        Burst burst{0, 20};
        for (int64_t s = 0; s < burst.steps; ++s) {
          const auto ns = static_cast<int64_t>(std::exp(here + noise.step * random.normal()) * 1e6);
          burst.ns += ns;
          if (s > 0 && marks) trial.step_ns.push_back(ns);
        }
        trial.bursts.push_back(burst);
      }
      trials.push_back(trial);
    }
  }
  return trials;
}

TEST(ProcessRecords, TakeStepsOnlyWhereMarksAreWork) {
  const std::vector<Trial> trials = race_of(2, {.step = 0.1});
  const auto records = process_records(trials, {"b", "a"});
  ASSERT_EQ(records.size(), 4u);
  EXPECT_EQ(records[0].contender, 1u);
  ASSERT_EQ(records[0].bursts.size(), 4u);
  EXPECT_EQ(records[0].bursts[0].seen, 19);
  EXPECT_NEAR(std::sqrt(records[0].bursts[0].step_variance), 0.1, 0.06);
  std::vector<Trial> dispatched = trials, torn = trials;
  for (int64_t& ns : dispatched[0].step_ns) ns /= 100;  // an asynchronous framework's marks
  torn[0].step_ns.pop_back();
  EXPECT_EQ(process_records(dispatched, {"a"})[0].bursts[0].seen, 0);
  EXPECT_EQ(process_records(torn, {"a"})[0].bursts[0].seen, 0);
  torn[1].failure = Failure{Stage::kRun, "exit code 1", ""};
  EXPECT_EQ(process_records(torn, {"a", "b"}).size(), 2u) << "whoever failed is out of all heats";
}

TEST(VarianceOf, FindsTheProcessesAndSaysWhatDecides) {
  const auto found = variance_of(race_of(12, {.process = 0.031, .burst = 0.001, .step = 0.004}), {"a", "b"},
                                 true, 0.02, 0.01);
  ASSERT_TRUE(found);
  EXPECT_NEAR(*found->processes, 0.031, 0.012);
  EXPECT_NEAR(*found->steps, 0.004, 0.0005);
  EXPECT_THAT(found->sentence, HasSubstr("Restarting the process changes the result by"));
  EXPECT_THAT(found->sentence, HasSubstr("repeating a step by 0."));
  EXPECT_THAT(found->sentence, HasSubstr("a gap of 2% needs about "));
  EXPECT_EQ(found->cheapest_bursts, 1);
}

TEST(VarianceOf, SaysSoWhereStepsAreTheNoise) {
  const auto found =
      variance_of(race_of(60, {.process = 0, .burst = 0.1, .step = 0.05}), {"a", "b"}, true, 0.03, 0.01);
  ASSERT_TRUE(found);
  EXPECT_THAT(found->sentence, HasSubstr("or longer bursts in as many processes"));
  const auto unmarked =
      variance_of(race_of(60, {.burst = 0.1, .step = 0.05}, false), {"a", "b"}, true, 0.03, 0.01);
  EXPECT_THAT(unmarked->sentence, HasSubstr("repeating a burst by"));
  EXPECT_EQ(unmarked->steps, std::nullopt);
}

TEST(VarianceOf, AfterADecisionSaysWhatMadeIt) {
  const auto found =
      variance_of(race_of(12, {.process = 0.03, .step = 0.004}), {"a", "b"}, false, 0.02, 0.01);
  ASSERT_TRUE(found);
  EXPECT_THAT(found->sentence, HasSubstr("the 12 processes of each contender decided"));
  std::vector<Trial> fewer = race_of(12, {.process = 0.03, .step = 0.004});
  std::erase_if(fewer, [](const Trial& trial) { return trial.contender == "b" && trial.heat > 5; });
  EXPECT_THAT(variance_of(fewer, {"a", "b"}, false, 0.02, 0.01)->sentence,
              HasSubstr("the 5 to 12 processes of each contender decided"));
  EXPECT_THAT(variance_of(fewer, {"a", "b"}, std::nullopt, 0.02, 0.01)->sentence,
              ::testing::Not(::testing::HasSubstr("decided")))
      << "without a verdict";
  EXPECT_FALSE(variance_of({}, {"a", "b"}, false, 0.02, 0.01));
  EXPECT_FALSE(variance_of(race_of(1, {.process = 0.03}), {"a", "b"}, false, 0.02, 0.01));
}

}  // namespace
}  // namespace bakeoff
