#include "stats/change_points.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include "stats/trimmed.h"

namespace bakeoff::stats {
namespace {

double deviations(std::span<const double> values) {
  const double centre = mean(values);
  double sum = 0;
  for (const double value : values) sum += (value - centre) * (value - centre);
  return sum;
}

double total_cost(std::span<const double> values, const std::vector<size_t>& starts, double penalty) {
  double sum = 0;
  for (size_t i = 0; i < starts.size(); ++i) {
    const size_t end = i + 1 < starts.size() ? starts[i + 1] : values.size();
    sum += deviations(values.subspan(starts[i], end - starts[i])) + penalty;
  }
  return sum;
}

// The least cost by plain dynamic programming over every segmentation; no pruning.
double least_cost(std::span<const double> values, double penalty, size_t shortest) {
  std::vector<double> best(values.size() + 1, std::numeric_limits<double>::infinity());
  best[0] = 0;
  for (size_t end = shortest; end <= values.size(); ++end) {
    for (size_t begin = 0; begin + shortest <= end; ++begin) {
      best[end] = std::min(best[end], best[begin] + deviations(values.subspan(begin, end - begin)) + penalty);
    }
  }
  return best[values.size()];
}

TEST(Pelt, FindsTheStepsOfAStaircase) {
  std::vector<double> values;
  for (const double level : {5.0, 1.0, 2.0}) values.insert(values.end(), 20, level);
  EXPECT_EQ(pelt(values, 0.1), (std::vector<size_t>{0, 20, 40}));
  EXPECT_EQ(pelt(values, 1000), (std::vector<size_t>{0}));
}

TEST(Pelt, OfShortAndConstantSeries) {
  EXPECT_TRUE(pelt({}, 1).empty());
  EXPECT_EQ(pelt(std::vector<double>{3}, 1), (std::vector<size_t>{0}));
  EXPECT_EQ(pelt(std::vector<double>{3, 9, 1}, 0), (std::vector<size_t>{0}));  // shorter than one segment
  EXPECT_EQ(pelt(std::vector<double>(50, 2.5), 0.01), (std::vector<size_t>{0}));
}

TEST(Pelt, PrunesNothingThatMatters) {
  EXPECT_TRUE(rc::check([](uint64_t seed) {
    const size_t n = *rc::gen::inRange<size_t>(1, 60);
    const size_t shortest = std::min<size_t>(n, *rc::gen::inRange<size_t>(1, 8));
    const double penalty = *rc::gen::inRange(1, 60) / 10.0;
    std::mt19937_64 random(seed);
    std::normal_distribution<double> normal;
    std::vector<double> values(n);
    double level = 0;
    for (double& value : values) {
      if (random() % 8 == 0) level = 3 * normal(random);
      value = level + normal(random);
    }
    const std::vector<size_t> starts = pelt(values, penalty, shortest);
    RC_ASSERT(starts.front() == 0u);
    for (size_t i = 1; i < starts.size(); ++i) RC_ASSERT(starts[i] >= starts[i - 1] + shortest);
    RC_ASSERT(n - starts.back() >= shortest);
    RC_ASSERT(std::abs(total_cost(values, starts, penalty) - least_cost(values, penalty, shortest)) < 1e-9);
  }));
}

std::vector<double> ar1(size_t n, double phi, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<double> normal;
  std::vector<double> values(n);
  double state = normal(random);
  for (double& value : values) {
    value = state;
    state = phi * state + std::sqrt(1 - phi * phi) * normal(random);
  }
  return values;
}

TEST(DifferenceNoise, RecoversAr1UnderStepsAndDrift) {
  for (const double phi : {0.0, 0.4, 0.7}) {
    std::vector<double> values = ar1(4000, phi, 5);
    for (size_t i = 0; i < values.size(); ++i) {
      values[i] += i < 1000 ? 30 : static_cast<double>(i) * 0.002;
    }
    const Noise noise = difference_noise(values);
    EXPECT_NEAR(noise.phi, phi, 0.06);
    EXPECT_NEAR(noise.variance, 1, 0.2) << phi;
    EXPECT_DOUBLE_EQ(noise.long_run_variance(), noise.variance * (1 + noise.phi) / (1 - noise.phi));
  }
}

TEST(DifferenceNoise, OfTooLittle) {
  EXPECT_EQ(difference_noise(std::vector<double>{1, 2, 3}), Noise());
  EXPECT_EQ(difference_noise(std::vector<double>(10, 4.0)), Noise());
}

}  // namespace
}  // namespace bakeoff::stats
