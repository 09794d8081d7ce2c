#include "stats/percentiles.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <boost/math/distributions/binomial.hpp>
#include <boost/math/distributions/exponential.hpp>
#include <cmath>
#include <numeric>

#include "stats/queue.h"
#include "stats/queue_testing.h"

namespace bakeoff::stats {
namespace {

using testing::md1_latency_cdf;
using testing::mm1_latency_cdf;
using testing::simulate;

double probability(int64_t low, int64_t high, int64_t n, double p) {
  const boost::math::binomial_distribution<> count(static_cast<double>(n), p);
  double sum = 0;
  for (int64_t k = low; k < high; ++k) sum += boost::math::pdf(count, static_cast<double>(k));
  return sum;
}

TEST(QuantileRanks, AreThoseOfTheTables) {
  // Medians at 95%: Conover, Practical Nonparametric Statistics, 3rd ed., table A3 (two-sided).
  EXPECT_EQ(quantile_ranks(10, 0.5, 0.95), (Ranks{2, 9}));
  EXPECT_EQ(quantile_ranks(20, 0.5, 0.95), (Ranks{6, 15}));
  EXPECT_EQ(quantile_ranks(100, 0.5, 0.95), (Ranks{40, 61}));
}

TEST(QuantileRanks, EncloseNoLessThanTheyPromiseAndNoMoreThanNeeded) {
  for (const int64_t n : {5, 40, 300, 1000, 5000}) {
    for (const double p : {0.1, 0.5, 0.9, 0.99, 0.999}) {
      for (const double level : {0.9, 0.99}) {
        const double beside = (1 - level) / 2;
        SCOPED_TRACE(::testing::Message() << n << " " << p << " " << level);
        const Ranks ranks = quantile_ranks(n, p, level);
        ASSERT_LE(ranks.low, ranks.high);
        EXPECT_LE(probability(0, ranks.low, n, p), beside + 1e-12);
        EXPECT_LE(probability(ranks.high, n + 1, n, p), beside + 1e-12);
        EXPECT_GT(probability(0, ranks.low + 1, n, p), beside) << "a rank higher would do as well";
        if (ranks.high > 1) {
          EXPECT_GT(probability(ranks.high - 1, n + 1, n, p), beside);
        }
      }
    }
  }
}

TEST(QuantileRanks, SayWhereNoOrderStatisticWillDo) {
  EXPECT_EQ(quantile_ranks(0, 0.5, 0.99), (Ranks{0, 1}));
  // ln 0.005 / ln 0.99 = 527.2
  EXPECT_EQ(quantile_ranks(527, 0.99, 0.99).high, 528);
  EXPECT_LE(quantile_ranks(528, 0.99, 0.99).high, 528);
}

TEST(EffectiveCount, OfAnAutoregressionIsTheKnownShare) {
  for (const double phi : {0.0, 0.5, 0.8}) {
    testing::Noise noise(11);
    std::vector<double> series;
    double state = 0;
    for (int i = 0; i < 20000; ++i) series.push_back(state = phi * state + noise.uniform() - 0.5);
    const double known = 20000 * (1 - phi) / (1 + phi);
    EXPECT_NEAR(effective_count(series) / known, 1, 0.12) << phi;
  }
  EXPECT_EQ(effective_count(std::vector<double>(50, 3.0)), 50);
  EXPECT_EQ(effective_count({}), 0);
}

TEST(Percentile, OfKnownValues) {
  std::vector<double> values(1000);
  std::iota(values.begin(), values.end(), 1);
  testing::Noise noise(3);
  for (size_t i = values.size(); i > 1; --i)
    std::swap(values[i - 1], values[static_cast<size_t>(noise.uniform() * static_cast<double>(i))]);
  const Percentile p99 = percentile({values}, 0.99);
  EXPECT_EQ(p99.value, 990);
  EXPECT_EQ(p99.n, 1000);
  EXPECT_TRUE(p99.bounds.contains(990));
  EXPECT_EQ(percentile({values}, 0.5).value, 500);
  EXPECT_EQ(percentile({values}, 0.999).value, 999);
  EXPECT_FALSE(percentile({values}, 0.999).bounds.bounded()) << "5,296 values would bound it from above";
  EXPECT_EQ(percentile({{7.0}}, 0.99).value, 7);
  EXPECT_FALSE(percentile({{7.0}}, 0.99).bounds.bounded());
}

TEST(Percentile, IsThatOfAllSeriesTogether) {
  const Percentile both = percentile({{1, 2, 3}, {4, 5, 6, 7}}, 0.5);
  EXPECT_EQ(both.value, 4);
  EXPECT_EQ(both.n, 7);
}

// How often the bounds of each percentile hold the truth, over runs of three processes.
struct Coverage {
  double effective = 0, all_counted = 0;
};
Coverage coverage(double load, bool fixed, double share, int runs) {
  const auto cdf = fixed ? md1_latency_cdf : mm1_latency_cdf;
  Coverage held;
  for (int run = 0; run < runs; ++run) {
    std::vector<std::vector<double>> series;
    std::vector<double> pooled;
    for (int process = 0; process < 3; ++process) {
      const auto times = simulate(load, 1000, fixed, static_cast<uint64_t>(run * 3 + process + 1));
      const Queue queue = judge_queue(times.arrival, times.start, times.end, load);
      series.push_back(times.latency());
      const auto settle = queue.state == QueueState::kSteady ? queue.settle : 100;
      series.back().erase(series.back().begin(), series.back().begin() + settle);
      pooled.insert(pooled.end(), series.back().begin(), series.back().end());
    }
    const Percentile found = percentile(series, share);
    // A bound holds where the true share of faster requests lies on the right side of `share`.
    const auto holds = [&](const Interval& bounds) {
      return (std::isinf(bounds.low) || cdf(load, bounds.low) <= share) &&
             (std::isinf(bounds.high) || cdf(load, bounds.high) >= share);
    };
    held.effective += holds(found.bounds);
    std::sort(pooled.begin(), pooled.end());
    const Ranks ranks = quantile_ranks(found.n, share, 0.99);
    Interval naive;
    if (ranks.low > 0) naive.low = pooled[static_cast<size_t>(ranks.low) - 1];
    if (ranks.high <= found.n) naive.high = pooled[static_cast<size_t>(ranks.high) - 1];
    held.all_counted += holds(naive);
  }
  return {held.effective / runs, held.all_counted / runs};
}

TEST(Percentile, BoundsHoldInQueuesWhoseTruthIsKnown) {
  struct Case {
    double load;
    bool fixed;  // service time: M/D/1, else exponential, M/M/1
    double share;
  };
  // 200 runs: a share of 0.975 scatters by 0.011.
  for (const Case& c : {Case{0.3, true, 0.99},
                        {0.6, true, 0.5},
                        {0.6, true, 0.9},
                        {0.6, true, 0.99},
                        {0.6, true, 0.999},
                        {0.5, false, 0.99},
                        {0.75, true, 0.99}}) {
    SCOPED_TRACE(::testing::Message() << c.load << (c.fixed ? " M/D/1 p" : " M/M/1 p") << c.share);
    EXPECT_GE(coverage(c.load, c.fixed, c.share, 200).effective, 0.95);
  }
}

TEST(Percentile, CountingEveryRequestThatQueuesDoesNotHold) {
  EXPECT_LT(coverage(0.75, true, 0.5, 200).all_counted, 0.8);
  EXPECT_LT(coverage(0.75, true, 0.99, 200).all_counted, 0.8);
}

}  // namespace
}  // namespace bakeoff::stats
