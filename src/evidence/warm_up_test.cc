#include "evidence/warm_up.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "tensor/rng.h"

namespace bakeoff {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr int kBursts = 4, kSteps = 60, kWarmUp = 5;

// A trial whose step number n, counted from the first after the very first, takes ms(n) with 1% of noise.
Trial trial_of(const std::string& id, int heat, const std::function<double(int)>& ms) {
  tensor::Rng rng(static_cast<uint64_t>(heat) * 100 + id.size());
  Trial trial{.contender = id, .heat = heat};
  int step = 0;
  const auto next = [&] {
    return static_cast<int64_t>(std::llround(ms(step++) * 1e6 * (1 + 0.01 * rng.normal())));
  };
  for (int i = 0; i < kWarmUp; ++i) trial.warmup_step_ns.push_back(next());
  for (int b = 0; b < kBursts; ++b) {
    Burst burst{.ns = next(), .steps = kSteps};  // the first step of a burst has no mark of its own
    for (int i = 1; i < kSteps; ++i) {
      trial.step_ns.push_back(next());
      burst.ns += trial.step_ns.back();
    }
    trial.bursts.push_back(burst);
  }
  return trial;
}

double level(int) { return 5; }
double drift(int n) { return 5 * (1 + 0.001 * n); }

TEST(FindWarmUp, ASteadyTrialKeepsAllItsBursts) {
  Trial trial = trial_of("a", 1, level);
  find_warm_up(trial, 0.03);
  EXPECT_EQ(trial.steadiness, "steady");
  EXPECT_EQ(trial.warmup_bursts, 0);
  EXPECT_LT(std::abs(trial.drift), 0.01);
}

TEST(FindWarmUp, BurstsBeforeALateStepAreWarmUp) {
  // A just-in-time compiler finishes in the middle of the second burst.
  Trial trial = trial_of("a", 1, [](int n) { return n < kWarmUp + 90 ? 8 : 5; });
  find_warm_up(trial, 0.03);
  EXPECT_EQ(trial.steadiness, "steady");
  EXPECT_EQ(trial.warmup_bursts, 1) << "the second is partly steady: the trimmed mean has to do";
  trial = trial_of("a", 1, [](int n) { return n < kWarmUp + 61 ? 8 : 5; });
  find_warm_up(trial, 0.03);
  EXPECT_EQ(trial.warmup_bursts, 1);
}

TEST(FindWarmUp, AChangeInTheSecondHalfIsTheMachines) {
  Trial trial = trial_of("a", 1, [](int n) { return n < 200 ? 5 : 6; });
  find_warm_up(trial, 0.03);
  EXPECT_EQ(trial.warmup_bursts, 0);
}

TEST(FindWarmUp, ADriftIsSeenWithItsSize) {
  Trial trial = trial_of("a", 1, drift);
  find_warm_up(trial, 0.03);
  EXPECT_EQ(trial.steadiness, "not steady");
  EXPECT_GT(trial.drift, 0.05);
  EXPECT_LT(trial.drift, 0.4);
}

TEST(FindWarmUp, MarksOfDispatchAreNoTimesOfWork) {
  Trial trial = trial_of("a", 1, level);
  for (int64_t& ns : trial.step_ns) ns /= 10;
  trial.bursts[3].ns += trial.bursts[3].ns / 10;
  find_warm_up(trial, 0.03);
  EXPECT_EQ(trial.steadiness, "too short");
  EXPECT_NEAR(trial.drift, 0.05, 0.01) << "of the bursts";
}

TEST(FindWarmUp, NothingIsSaidOfATrialThatFailed) {
  Trial trial = trial_of("a", 1, level);
  trial.failure = Failure{Stage::kRun, "exit code 1", {}};
  find_warm_up(trial, 0.03);
  EXPECT_EQ(trial.steadiness, "");
  Trial none{.contender = "a", .heat = 1};
  find_warm_up(none, 0.03);
  EXPECT_EQ(none.steadiness, "");
}

// Heats of contenders with the given shapes.
std::vector<Trial> heats(int count,
                         const std::vector<std::pair<std::string, std::function<double(int)>>>& who) {
  std::vector<Trial> trials;
  for (int heat = 1; heat <= count; ++heat) {
    for (const auto& [id, ms] : who) {
      trials.push_back(trial_of(id, heat, ms));
      find_warm_up(trials.back(), 0.03);
    }
  }
  return trials;
}

TEST(NotSteadyContenders, DriftInMostOfAtLeastThreeHeats) {
  const std::vector<std::pair<std::string, std::function<double(int)>>> who = {
      {"level", level}, {"other", level}, {"drifting", drift}};
  EXPECT_THAT(not_steady(heats(2, who), 0.03), IsEmpty()) << "two heats are too few";
  const auto found = not_steady(heats(4, who), 0.03);
  ASSERT_EQ(found.size(), 1u);
  const NotSteady& one = found.at("drifting");
  EXPECT_EQ(one.drifting, 4);
  EXPECT_EQ(one.heats, 4);
  EXPECT_THAT(one.text(), HasSubstr("never became steady: in 4 of 4 heats its steps drift, typically by +"));
  EXPECT_THAT(not_steady(heats(4, who), 0.5), IsEmpty()) << "within the margin";
}

TEST(NotSteadyContenders, AMachineThatSlowsDownAccusesNobody) {
  EXPECT_THAT(not_steady(heats(5, {{"a", drift}, {"b", drift}, {"ccc", drift}}), 0.03), IsEmpty());
}

TEST(NotSteadyContenders, HalfOfTheHeatsIsNotMost) {
  auto trials = heats(2, {{"a", level}, {"b", drift}});
  for (Trial& trial : heats(2, {{"a", level}, {"b", level}})) {
    trial.heat += 2;
    trials.push_back(trial);
  }
  EXPECT_THAT(not_steady(trials, 0.03), IsEmpty());
}

TEST(NotSteadyContenders, WithoutMarksTheBurstsHaveToShowIt) {
  const auto bursts = [](int count, double growth, double noise) {
    std::vector<Trial> trials;
    tensor::Rng rng(3);
    for (int heat = 1; heat <= count; ++heat) {
      for (const auto& [id, g] : {std::pair{"a", 0.0}, {"b", growth}}) {
        Trial trial{.contender = id, .heat = heat};
        for (int b = 0; b < kBursts; ++b) {
          const double ms = 100 * (1 + g * b) * (1 + noise * rng.normal());
          trial.bursts.push_back({.ns = static_cast<int64_t>(ms * 1e6), .steps = 10});
        }
        find_warm_up(trial, 0.03);
        trials.push_back(trial);
      }
    }
    return trials;
  };
  const auto found = not_steady(bursts(8, 0.1, 0.01), 0.03);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_TRUE(found.contains("b"));
  EXPECT_THAT(not_steady(bursts(3, 0.1, 0.01), 0.03), IsEmpty());
  EXPECT_THAT(not_steady(bursts(40, 0, 0.1), 0.03), IsEmpty()) << "noise";
}

}  // namespace
}  // namespace bakeoff
