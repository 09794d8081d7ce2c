#include "stats/components.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

namespace bakeoff::stats {
namespace {

// Standard deviations, and the shape of a race.
struct Truth {
  double heat = 0, process = 0, burst = 0, step = 0;
  int heats = 8;
  size_t contenders = 3;
  int bursts = 4;
  int64_t steps = 10;
  double absent = 0;  // probability that a contender sits a heat out
  bool marks = true;
};

std::vector<ProcessRecord> draw(const Truth& t, std::mt19937_64& random) {
  std::normal_distribution<double> normal;
  std::uniform_real_distribution<double> uniform;
  std::vector<ProcessRecord> all;
  for (int heat = 0; heat < t.heats; ++heat) {
    const double state = t.heat * normal(random);
    for (size_t c = 0; c < t.contenders; ++c) {
      if (uniform(random) < t.absent) continue;
      ProcessRecord p{.heat = heat, .contender = c};
      const double level = 4 + 0.3 * static_cast<double>(c) + state + t.process * normal(random);
      for (int b = 0; b < t.bursts + static_cast<int>(c % 2); ++b) {
        const double here = level + t.burst * normal(random);
        double sum = 0, squares = 0;
        for (int64_t s = 0; s < t.steps; ++s) {
          const double y = t.step * normal(random);
          sum += y;
          squares += y * y;
        }
        const double n = static_cast<double>(t.steps), mean = sum / n;
        p.bursts.push_back({.log_ms = here + mean,
                            .steps = t.steps,
                            .seen = t.marks ? t.steps : 0,
                            .step_variance = (squares - n * mean * mean) / (n - 1)});
      }
      all.push_back(std::move(p));
    }
  }
  return all;
}

struct Means {
  double heat = 0, process = 0, burst = 0, step = 0;
};

Means mean_of(const Truth& truth, int rounds, uint64_t seed) {
  std::mt19937_64 random(seed);
  Means m;
  for (int i = 0; i < rounds; ++i) {
    const Components found = components(draw(truth, random));
    m.heat += found.heat.value_or(0) / rounds;
    m.process += found.process.value_or(0) / rounds;
    m.burst += found.burst.value_or(0) / rounds;
    m.step += found.step.value_or(0) / rounds;
  }
  return m;
}

// Truth far enough from zero that cutting off at zero does not matter: then the estimates are unbiased.
TEST(Components, AreUnbiasedForBalancedAndUnbalancedRaces) {
  const Truth balanced{.heat = 0.05, .process = 0.031, .burst = 0.012, .step = 0.02};
  Truth unbalanced = balanced;
  unbalanced.absent = 0.3;
  unbalanced.contenders = 5;
  for (const Truth& truth : {balanced, unbalanced}) {
    SCOPED_TRACE(truth.absent);
    const Means m = mean_of(truth, 1500, 21);
    EXPECT_NEAR(m.step / (0.02 * 0.02), 1, 0.01);
    EXPECT_NEAR(m.burst / (0.012 * 0.012), 1, 0.02);
    EXPECT_NEAR(m.process / (0.031 * 0.031), 1, 0.04);
    EXPECT_NEAR(m.heat / (0.05 * 0.05), 1, 0.08);
  }
}

TEST(Components, SaySoWhenThereIsNothing) {
  const Means m = mean_of({.step = 0.05}, 300, 22);
  EXPECT_NEAR(m.step / (0.05 * 0.05), 1, 0.01);
  EXPECT_LT(std::sqrt(m.burst), 0.006);
  EXPECT_LT(std::sqrt(m.process), 0.004);
  EXPECT_LT(std::sqrt(m.heat), 0.004);
}

TEST(Components, WithoutMarksBurstsHoldTheSteps) {
  const Truth truth{.process = 0.02, .burst = 0.01, .step = 0.03, .marks = false};
  const Means m = mean_of(truth, 1000, 23);
  EXPECT_NEAR(m.burst / (0.01 * 0.01 + 0.03 * 0.03 / 10), 1, 0.03);
  EXPECT_NEAR(m.process / (0.02 * 0.02), 1, 0.05);
  std::mt19937_64 random(1);
  EXPECT_EQ(components(draw(truth, random)).step, std::nullopt);
}

TEST(Components, AreAbsentWhereTheDesignHidesThem) {
  std::mt19937_64 random(2);
  const Components lone = components(draw({.process = 0.02, .contenders = 1}, random));
  EXPECT_EQ(lone.process, std::nullopt);
  EXPECT_EQ(lone.heat, std::nullopt);
  EXPECT_TRUE(lone.burst);
  EXPECT_EQ(components(draw({.heats = 1}, random)).process, std::nullopt);
  const Components none = components({});
  EXPECT_EQ(none.burst, std::nullopt);
  EXPECT_EQ(none.pair_variance(4), std::nullopt);
  EXPECT_EQ(cheapest_bursts(none, 1, 1), std::nullopt);
  const std::vector<ProcessRecord> broken = {
      {.heat = 1, .bursts = {{.log_ms = std::nan("")}}},
      {.heat = 1, .contender = 1, .bursts = {{.log_ms = -std::numeric_limits<double>::infinity()}}}};
  EXPECT_EQ(components(broken), none);
}

TEST(Components, PredictTheVarianceOfADifference) {
  Truth truth{.heat = 0.2, .process = 0.02, .burst = 0.03, .step = 0.04, .heats = 400, .contenders = 2};
  std::mt19937_64 random(3);
  const std::vector<ProcessRecord> race = draw(truth, random);
  const Components found = components(race);
  double squares = 0;
  int n = 0;
  for (size_t i = 0; i + 1 < race.size(); i += 2) {
    double mean[2] = {0, 0};
    for (size_t c = 0; c < 2; ++c) {
      for (size_t b = 0; b < 4; ++b) mean[c] += race[i + c].bursts[b].log_ms / 4;
    }
    const double d = mean[1] - mean[0] - 0.3;
    squares += d * d;
    ++n;
  }
  EXPECT_NEAR(found.pair_variance(4).value() / (squares / n), 1, 0.15) << "the heat cancels";
  EXPECT_NEAR(found.pair_variance(std::numeric_limits<double>::infinity()).value(), 2 * *found.process,
              1e-12);
}

TEST(CheapestBursts, BalanceStartsAgainstBursts) {
  const Components found{
      .process = 0.0001, .burst = 0.0003, .step = 0.001, .process_degrees = 9, .bursts = 4, .steps = 10};
  EXPECT_EQ(cheapest_bursts(found, 4, 1), 4);  // sqrt(4/1 * .0004/.0001) = 4
  EXPECT_EQ(cheapest_bursts(found, 0.01, 1), 1) << "starting is for nothing: fresh processes";
  Components steady = found;
  steady.process = 0;
  EXPECT_EQ(cheapest_bursts(steady, 4, 1), std::nullopt) << "one process with many bursts";
}

}  // namespace
}  // namespace bakeoff::stats
