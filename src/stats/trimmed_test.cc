#include "stats/trimmed.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

namespace bakeoff::stats {
namespace {

std::vector<double> one_to(int n) {
  std::vector<double> values(n);
  std::iota(values.begin(), values.end(), 1.0);
  return values;
}

TEST(TrimmedMean, DropsOneTenthFromTheTopOnly) {
  std::vector<double> values = one_to(20);
  EXPECT_DOUBLE_EQ(top_trimmed_mean(values), 9.5);  // 1..18
  values[19] = 1e9;
  values[18] = 1e8;
  EXPECT_DOUBLE_EQ(top_trimmed_mean(values), 9.5);
  values[0] = -1000;  // the bottom counts
  EXPECT_DOUBLE_EQ(top_trimmed_mean(values), (171.0 - 1 - 1000) / 18);
}

TEST(TrimmedMean, CountsWholeValues) {
  const struct {
    int n;
    double fraction;
    double mean;
  } kCases[] = {{9, 0.1, 5},  {10, 0.1, 5}, {19, 0.1, 9.5}, {30, 0.1, 14}, {10, 0.3, 4},
                {10, 0, 5.5}, {1, 0.1, 1},  {3, 0.99, 1},   {2, 0.99, 1}};
  for (const auto& row : kCases) {
    SCOPED_TRACE(::testing::Message() << row.n << " values, fraction " << row.fraction);
    EXPECT_DOUBLE_EQ(top_trimmed_mean(one_to(row.n), row.fraction), row.mean);
  }
}

TEST(TrimmedMean, DoesNotDependOnTheOrder) {
  EXPECT_TRUE(rc::check([] {
    const auto steps = *rc::gen::nonEmpty(rc::gen::container<std::vector<double>>(
        rc::gen::map(rc::gen::inRange(1, 1000000), [](int us) { return us / 997.0; })));
    std::vector<double> reversed(steps.rbegin(), steps.rend());
    RC_ASSERT(top_trimmed_mean(steps) == top_trimmed_mean(reversed) || steps.size() < 10);
    RC_ASSERT(std::abs(top_trimmed_mean(steps) - top_trimmed_mean(reversed)) < 1e-9);
    RC_ASSERT(top_trimmed_mean(steps) <= mean(steps) + 1e-9);
  }));
}

TEST(Quantile, InterpolatesAsType7) {
  const std::vector<double> values = {4, 1, 3, 2};
  EXPECT_DOUBLE_EQ(quantile(values, 0), 1);
  EXPECT_DOUBLE_EQ(quantile(values, 1), 4);
  EXPECT_DOUBLE_EQ(quantile(values, 0.25), 1.75);
  EXPECT_DOUBLE_EQ(quantile(values, 0.9), 3.7);
  EXPECT_DOUBLE_EQ(median(values), 2.5);
  EXPECT_DOUBLE_EQ(median(std::vector<double>{5, 1, 9}), 5);
}

TEST(Spread, OfKnownValues) {
  EXPECT_DOUBLE_EQ(variance(std::vector<double>{2, 4, 4, 4, 5, 5, 7, 9}), 32.0 / 7);
  EXPECT_DOUBLE_EQ(robust_sd(std::vector<double>{1, 2, 3, 4, 1000}), 1.4826);
  EXPECT_EQ(robust_sd(std::vector<double>{7, 7, 7, 8}), 0);
}

TEST(Spread, OfNothingIsNotANumber) {
  const std::vector<double> none;
  for (const double value : {top_trimmed_mean(none), mean(none), median(none), quantile(none, 0.1),
                             robust_sd(none), variance(none), variance(std::vector<double>{1})}) {
    EXPECT_TRUE(std::isnan(value));
  }
}

TEST(LogRatio, IsTheLogOfTheRatioOfTrimmedMeans) {
  std::vector<double> a = one_to(10);
  std::vector<double> b = one_to(10);
  for (double& value : a) value *= 1.02;
  a[9] = 1e6;
  EXPECT_NEAR(log_ratio(a, b).value(), std::log(1.02), 1e-15);
  EXPECT_NEAR(log_ratio(b, a).value(), -std::log(1.02), 1e-15);
}

TEST(LogRatio, HasNoUnit) {
  EXPECT_TRUE(rc::check([](double seed) {
    const double factor = std::exp(std::fmod(std::isfinite(seed) ? seed : 0.0, 20.0));
    std::vector<double> a = {1, 5, 2, 8};
    std::vector<double> b = {3, 3, 4, 1};
    const double before = log_ratio(a, b).value();
    for (double& value : a) value *= factor;
    for (double& value : b) value *= factor;
    RC_ASSERT(std::abs(log_ratio(a, b).value() - before) < 1e-12);
  }));
}

TEST(LogRatio, RefusesWhatIsNoTime) {
  const std::vector<double> good = {1, 2};
  const double infinity = std::numeric_limits<double>::infinity();
  for (const double bad : {0.0, -1.0, infinity, std::numeric_limits<double>::quiet_NaN()}) {
    const Result<double> d = log_ratio(good, std::vector<double>{1, bad});
    ASSERT_FALSE(d) << bad;
    EXPECT_NE(d.error().message.find("step 2"), std::string::npos) << d.error().message;
  }
  EXPECT_FALSE(log_ratio({}, good));
}

}  // namespace
}  // namespace bakeoff::stats
