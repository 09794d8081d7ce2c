#include "stats/ess.h"

#include <gtest/gtest.h>

#include <boost/math/distributions/students_t.hpp>
#include <cmath>
#include <random>
#include <vector>

#include "stats/trimmed.h"

namespace bakeoff::stats {
namespace {

std::vector<double> ar1(size_t n, double phi, std::mt19937_64& random) {
  std::normal_distribution<double> normal;
  std::vector<double> values(n);
  double state = normal(random);
  for (double& value : values) {
    value = state;
    state = phi * state + std::sqrt(1 - phi * phi) * normal(random);
  }
  return values;
}

TEST(LagOne, OfSeriesWorkedByHand) {
  EXPECT_DOUBLE_EQ(lag_one_correlation(std::vector<double>{1, 2, 3, 4, 5}), 0.4);  // (2 + 0 + 0 + 2) / 10
  EXPECT_DOUBLE_EQ(lag_one_correlation(std::vector<double>{1, -1, 1, -1}), -0.75);
  EXPECT_EQ(lag_one_correlation(std::vector<double>{3, 3, 3}), 0);
}

TEST(EffectiveSize, IsTheFormula) {
  std::mt19937_64 random(1);
  const std::vector<double> values = ar1(100, 0.5, random);
  const double phi = lag_one_correlation(values);
  const double corrected = phi + (1 + 3 * phi) / 100;
  const EffectiveSize size = effective_size(values).value();
  EXPECT_DOUBLE_EQ(size.phi, corrected);
  EXPECT_DOUBLE_EQ(size.n_eff, 100 * (1 - corrected) / (1 + corrected));
}

TEST(EffectiveSize, NeverExceedsTheCount) {
  std::vector<double> alternating(40);
  for (size_t i = 0; i < alternating.size(); ++i) alternating[i] = i % 2 == 0 ? 1 : -1;
  EXPECT_EQ(effective_size(alternating).value(), (EffectiveSize{40, 0}));
}

TEST(EffectiveSize, RefusesBelowTen) {
  std::mt19937_64 random(2);
  EXPECT_FALSE(effective_size(ar1(9, 0, random)));
  EXPECT_FALSE(effective_size(std::vector<double>{}));
  std::vector<double> ramp(30);
  for (size_t i = 0; i < ramp.size(); ++i) ramp[i] = static_cast<double>(i);
  const Result<EffectiveSize> refused = effective_size(ramp);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("fewer than 10"), std::string::npos) << refused.error().message;
  EXPECT_TRUE(effective_size(ramp, 0));
}

// In a simulation nominal 95% at phi = .8, n = 200 covers 94%, and 48% with n in place of n_eff.
TEST(MeanEstimate, CoversAtStrongAutocorrelationWhereIidDoesNot) {
  std::mt19937_64 random(3);
  constexpr int kSeries = 4000;
  int covered = 0;
  int covered_iid = 0;
  int estimated = 0;
  const double iid_t = boost::math::quantile(boost::math::students_t(199), 0.975);
  for (int i = 0; i < kSeries; ++i) {
    const std::vector<double> values = ar1(200, 0.8, random);
    covered_iid += std::abs(mean(values)) <= iid_t * std::sqrt(variance(values) / 200);
    const Result<MeanEstimate> estimate = mean_estimate(values);
    if (!estimate) continue;  // refused: worth fewer than 10
    ++estimated;
    covered += estimate->interval.contains(0);
  }
  EXPECT_GT(estimated, kSeries * 9 / 10);
  EXPECT_NEAR(static_cast<double>(covered) / estimated, 0.94, 0.015);
  EXPECT_NEAR(static_cast<double>(covered_iid) / kSeries, 0.48, 0.03);
}

TEST(MeanEstimate, OfIndependentValuesIsStudents) {
  std::mt19937_64 random(4);
  constexpr int kSeries = 2000;
  int covered = 0;
  for (int i = 0; i < kSeries; ++i)
    covered += mean_estimate(ar1(50, 0, random), 0.9).value().interval.contains(0);
  EXPECT_NEAR(static_cast<double>(covered) / kSeries, 0.9, 0.025);
}

}  // namespace
}  // namespace bakeoff::stats
