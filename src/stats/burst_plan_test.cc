#include "stats/burst_plan.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <random>

#include "stats/heat_value.h"
#include "stats/trimmed.h"

namespace bakeoff::stats {
namespace {

// A machine whose step times have noise with known parts.
struct Truth {
  double step_s = 0.025;
  double lead_s = 0.026;   // of a burst
  double machine = 0;      // sd of the common state
  double lasting_s = 1;    //   its time constant
  double process = 0;      // sd of each process's own state, of the same time constant
  double step = 0.03;      // sd of each step alone
  double spike_share = 0;  // steps that take three times as long
};

class Bench {
 public:
  Bench(const Truth& truth, size_t contenders, uint64_t seed)
      : truth_(truth), own_(contenders, 0.0), random_(seed) {
    machine_ = normal_(random_);
    for (double& state : own_) state = normal_(random_);
  }

  // A heat; the bursts of a round in random order.
  std::vector<TimedBurst> heat(int64_t rounds, int64_t steps) {
    std::vector<TimedBurst> bursts;
    std::vector<size_t> order(own_.size());
    for (size_t i = 0; i < order.size(); ++i) order[i] = i;
    for (int64_t round = 0; round < rounds; ++round) {
      std::shuffle(order.begin(), order.end(), random_);
      for (const size_t i : order) {
        pass(truth_.lead_s);
        TimedBurst burst = {.contender = i, .start_s = now_s_};
        for (int64_t s = 0; s < steps; ++s) {
          const double log =
              truth_.machine * machine_ + truth_.process * own_[i] + truth_.step * normal_(random_);
          const bool spike = std::uniform_real_distribution<double>()(random_) < truth_.spike_share;
          burst.step_s.push_back(truth_.step_s * std::exp(log) * (spike ? 3 : 1));
          pass(burst.step_s.back());
        }
        bursts.push_back(burst);
      }
    }
    return bursts;
  }

 private:
  void pass(double seconds) {
    now_s_ += seconds;
    const double keep = std::exp(-seconds / truth_.lasting_s);
    const double fresh = std::sqrt(1 - keep * keep);
    machine_ = keep * machine_ + fresh * normal_(random_);
    for (double& state : own_) state = keep * state + fresh * normal_(random_);
  }

  Truth truth_;
  std::vector<double> own_;
  std::mt19937_64 random_;
  std::normal_distribution<double> normal_;
  double machine_ = 0, now_s_ = 0;
};

// Variance of d times the seconds of a heat, of 8 s heats of two with so many steps a burst: by simulation
// and by the estimator of races.
double simulated_variance_s(const Truth& truth, int64_t steps, int heats = 400) {
  const double round_s = 2 * (truth.lead_s + static_cast<double>(steps) * truth.step_s);
  const auto rounds = std::max<int64_t>(kFewestRounds, std::llround(8 / round_s));
  std::vector<double> d;
  for (int heat = 0; heat < heats; ++heat) {
    Bench bench(truth, 2, 100 + static_cast<uint64_t>(heat));
    std::vector<double> ms[2];
    for (const TimedBurst& burst : bench.heat(rounds, steps))
      ms[burst.contender].push_back(mean(burst.step_s));
    d.push_back(*heat_value(ms[0]) - *heat_value(ms[1]));
  }
  return variance(d) * static_cast<double>(rounds) * round_s;
}

BurstPlan plan_of(const Truth& truth, uint64_t seed = 1, size_t contenders = 2) {
  Bench bench(truth, contenders, seed);
  const std::vector<TimedBurst> first = bench.heat(20, 12);
  const auto plan = plan_bursts(first, LeadIns(contenders, truth.lead_s));
  EXPECT_TRUE(plan);
  return plan.value_or(BurstPlan());
}

TEST(PlanBursts, AlternatesFastWhereTheMachineChangesSlowly) {
  const BurstPlan plan = plan_of({.machine = 0.12, .lasting_s = 0.4, .step = 0.02});
  EXPECT_LE(plan.steps[0], 2);
  EXPECT_LT(plan.variance_s, 0.4 * plan.variance_s_longest);
}

TEST(PlanBursts, TakesLongBurstsWhereAlternationGainsNothing) {
  EXPECT_GE(plan_of({.step = 0.05}).steps[0], 10) << "independent steps";
  EXPECT_GE(plan_of({.lead_s = 0.3, .machine = 0.1, .lasting_s = 0.05}).steps[0], 10)
      << "the lead-in is dear";
}

TEST(PlanBursts, IsolatesSpikesInShortBursts) {
  const BurstPlan plan = plan_of({.lead_s = 0.005, .step = 0.02, .spike_share = 0.08});
  EXPECT_LE(plan.steps[0], 4);
}

// The bursts that it plans are nearly the best ones, and have the variance that it states, by simulation.
TEST(PlanBursts, IsNearlyTheBestOnAMachineThatIsKnown) {
  const Truth truths[] = {{.machine = 0.1, .lasting_s = 0.4, .step = 0.03},
                          {.machine = 0.1, .lasting_s = 0.08, .step = 0.03},
                          {.lead_s = 0.06, .machine = 0.06, .lasting_s = 1, .process = 0.02, .step = 0.04}};
  for (const Truth& truth : truths) {
    double best = std::numeric_limits<double>::infinity();
    for (const int64_t steps : {1, 2, 4, 8, 20}) best = std::min(best, simulated_variance_s(truth, steps));
    const BurstPlan plan = plan_of(truth, 5);
    const double its = simulated_variance_s(truth, plan.steps[0]);
    EXPECT_LT(its, 1.35 * best) << plan.steps[0];
    EXPECT_NEAR(std::log(plan.variance_s / its), 0, 0.5) << plan.steps[0];
  }
}

TEST(PlanBursts, GivesAllContendersAboutTheSameTime) {
  std::vector<TimedBurst> bursts;
  std::mt19937_64 random(3);
  std::normal_distribution<double> normal;
  double now = 0;
  for (int round = 0; round < 12; ++round) {
    for (const double step_s : {0.001, 0.03, 0.2}) {
      TimedBurst burst = {.contender = step_s < 0.01 ? 0u : step_s < 0.1 ? 1u : 2u, .start_s = now};
      for (double left = 0.4; left > 0; left -= step_s)
        burst.step_s.push_back(step_s * std::exp(0.02 * normal(random)));
      now += 0.42;
      bursts.push_back(burst);
    }
  }
  const auto plan = plan_bursts(bursts, {0.001, 0.03, 0.2}).value();
  EXPECT_GE(plan.steps[0], 20) << "20 ms at least";
  EXPECT_NEAR(static_cast<double>(plan.steps[0]) * 0.001, plan.burst_s, 0.01 + 0.1 * plan.burst_s);
  EXPECT_GE(plan.steps[2], 1);
  EXPECT_LE(plan.steps[2], 3);
}

TEST(PlanBursts, SaysNothingFromTooLittle) {
  const LeadIns lead = {0.03, 0.03};
  EXPECT_FALSE(plan_bursts({}, lead));
  Bench bench({}, 2, 1);
  EXPECT_FALSE(plan_bursts(bench.heat(3, 30), lead)) << "three bursts of each";
  EXPECT_FALSE(plan_bursts(bench.heat(4, 4), lead)) << "32 steps";
  EXPECT_FALSE(plan_bursts(Bench({}, 1, 1).heat(20, 12), lead)) << "one contender";
  EXPECT_TRUE(plan_bursts(bench.heat(20, 12), {})) << "no lead-in";
}

TEST(CountedSteps, AreOneAtLeastAnd20MsOfShortOnes) {
  EXPECT_EQ(counted_steps(0.1, 0.02), 1);
  EXPECT_EQ(counted_steps(3, 0.5), 1);
  EXPECT_EQ(counted_steps(0.025, 0.1), 4);
  EXPECT_EQ(counted_steps(0.001, 0.005), 20);
  EXPECT_EQ(counted_steps(0.0003, 0.3), 1000);
  EXPECT_EQ(counted_steps(0.1, 9), 5) << "0.5 s at most";
}

TEST(HeatVariance, IsNeverZero) {
  std::vector<PastHeat> heats;
  EXPECT_GT(heat_variance(heats).restart, 0);
  EXPECT_GT(heat_variance(heats).round, 0);
  for (int i = 0; i < 6; ++i) heats.push_back({.d = 0.01, .within = 1e-4, .rounds = 16});
  const HeatVariance found = heat_variance(heats);
  EXPECT_NEAR(found.round, 16e-4, 1e-12);
  EXPECT_NEAR(found.restart, (4 * 2e-4 - 5e-4) / 9, 1e-12);
  for (int i = 0; i < 60; ++i) heats.push_back(heats.back());
  EXPECT_NEAR(heat_variance(heats).restart, 2 * 0.003 * 0.003, 1e-12);
}

TEST(HeatVariance, FindsWhatRestartsCause) {
  std::mt19937_64 random(8);
  std::normal_distribution<double> normal;
  std::vector<PastHeat> heats;
  for (int i = 0; i < 2000; ++i)
    heats.push_back(
        {.d = 0.03 * std::sqrt(2.0) * normal(random) + 0.01 * normal(random), .within = 1e-4, .rounds = 20});
  EXPECT_NEAR(std::sqrt(heat_variance(heats).restart / 2), 0.03, 0.001);
}

TEST(PlanRounds, FollowWhereTheVarianceIsAndWhatAStartCosts) {
  const HeatVariance bursts_alone = {.restart = 2 * 0.005 * 0.005, .round = 2 * 0.1 * 0.1};
  const HeatVariance restarts = {.restart = 2 * 0.03 * 0.03, .round = 2 * 0.01 * 0.01};
  const HeatCost cheap = {.start_s = 1, .round_s = 0.6}, dear = {.start_s = 20, .round_s = 0.6};
  const HeatCost long_rounds = {.start_s = 1, .round_s = 3};
  EXPECT_EQ(plan_rounds(restarts, long_rounds, 0.03, 0.01), kFewestRounds) << "restarts are what varies";
  const int64_t few = plan_rounds(bursts_alone, cheap, 0.03, 0.01, kFewestRounds);
  const int64_t many = plan_rounds(bursts_alone, dear, 0.03, 0.01, kFewestRounds);
  EXPECT_GE(many, few);
  EXPECT_GT(many, kFewestRounds);
  for (const int64_t current : {many, many + 5})
    EXPECT_EQ(plan_rounds(bursts_alone, dear, 0.03, 0.01, current), current);
  EXPECT_GT(plan_rounds(bursts_alone, dear, 0.02, 0.01), plan_rounds(bursts_alone, dear, 0.1, 0.01));
  EXPECT_LE(plan_rounds(bursts_alone, dear, 0.001, 0.01, 16, 12), 20);
}

}  // namespace
}  // namespace bakeoff::stats
