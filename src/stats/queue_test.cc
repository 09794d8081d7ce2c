#include "stats/queue.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "stats/queue_testing.h"
#include "stats/trimmed.h"

namespace bakeoff::stats {
namespace {

using testing::QueueTimes;
using testing::simulate;

Queue judge(const QueueTimes& times, double rate) {
  return judge_queue(times.arrival, times.start, times.end, rate);
}

TEST(Truth, SimulatedLatenciesHaveTheKnownDistribution) {
  for (const bool fixed : {true, false}) {
    const QueueTimes times = simulate(0.7, 400000, fixed, 5);
    const std::vector<double> latency = times.latency();
    for (const double t : {1.5, 3.0, 6.0}) {
      const auto faster = std::count_if(latency.begin(), latency.end(), [&](double l) { return l <= t; });
      const double truth = fixed ? testing::md1_latency_cdf(0.7, t) : testing::mm1_latency_cdf(0.7, t);
      EXPECT_NEAR(static_cast<double>(faster) / 400000, truth, 0.01) << t << (fixed ? " M/D/1" : " M/M/1");
    }
  }
}

TEST(JudgeQueue, IsSteadyWellBelowCapacity) {
  const Queue queue = judge(simulate(0.5, 2000, true, 1), 0.5);
  EXPECT_EQ(queue.state, QueueState::kSteady);
  EXPECT_NEAR(queue.load, 0.5, 1e-9) << "the stated rate, and service of exactly 1";
  // 0.5 / (1 - sqrt(0.5))^2 = 5.8 requests a relaxation time; 20 of them are needed, 2 left out.
  EXPECT_EQ(queue.wanted, 117);
  EXPECT_EQ(queue.settle, 12);
}

TEST(JudgeQueue, GrowsAboveCapacityAtTheDifferenceOfTheRates) {
  for (const bool fixed : {true, false}) {
    const Queue queue = judge(simulate(1.5, 5000, fixed, 2), 1.5);
    EXPECT_EQ(queue.state, QueueState::kGrowing);
    EXPECT_NEAR(queue.growth_per_s, 0.5, 0.05);
    EXPECT_NEAR(static_cast<double>(queue.waiting), 5000 / 3.0, 200);
  }
}

TEST(JudgeQueue, GrowsAlsoWhereItWasCutOffOrHardlyBegan) {
  QueueTimes times = simulate(3, 1000, true, 3);
  times.start.resize(300);
  times.end.resize(300);
  EXPECT_EQ(judge(times, 3).state, QueueState::kGrowing);
  times.start.resize(5);
  times.end.resize(5);
  EXPECT_EQ(judge(times, 3).state, QueueState::kGrowing) << "its fastest answer is too slow";
}

TEST(JudgeQueue, IsTooShortNearCapacity) {
  const Queue queue = judge(simulate(0.95, 1000, true, 4), 0.95);
  EXPECT_EQ(queue.state, QueueState::kTooShort);
  EXPECT_GT(queue.wanted, 20000);
  // Service times scatter: 1000 of them cannot tell 0.995 from 1.
  EXPECT_EQ(judge(simulate(0.995, 1000, false, 4), 0.995).wanted, std::numeric_limits<double>::infinity());
  EXPECT_EQ(judge(simulate(0.5, 60, true, 4), 0.5).state, QueueState::kTooShort);
}

TEST(JudgeQueue, NeverTakesAnOverloadedQueueForASteadyOne) {
  int steady = 0, growing = 0;
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    const Queue queue = judge(simulate(1.1, 1000, false, seed), 1.1);
    steady += queue.state == QueueState::kSteady;
    growing += queue.state == QueueState::kGrowing;
  }
  EXPECT_EQ(steady, 0);
  EXPECT_GT(growing, 90);
}

TEST(MeanInFlight, ObeysLittlesLaw) {
  const QueueTimes times = simulate(0.7, 5000, false, 9);
  const double until = times.end.back();
  const std::vector<double> latency = times.latency();
  EXPECT_NEAR(mean_in_flight(times.arrival, times.end, until), 5000 / until * mean(latency), 1e-9);
  // One request in flight from 1 to 3, another from 2 to 3, of 4 s.
  const std::vector<double> arrival = {1, 2}, end = {3, 3};
  EXPECT_DOUBLE_EQ(mean_in_flight(arrival, end, 4), 0.75);
  EXPECT_DOUBLE_EQ(mean_in_flight(arrival, end, 2.5), 2 / 2.5);
}

}  // namespace
}  // namespace bakeoff::stats
