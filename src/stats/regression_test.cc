#include "stats/regression.h"

#include <gtest/gtest.h>

#include <cmath>

#include "stats/noise_testing.h"

namespace bakeoff::stats {
namespace {

using testing::Machine;
using testing::NoiseModel;

HeatResult heat(double base_ms, double head_ms) { return {{std::log(base_ms), std::log(head_ms)}}; }

struct Course {
  NextStep::What end = NextStep::What::kRunHeat;
  Change change = Change::kUndecided;
  GateOutlook outlook = {};
  size_t heats = 0;
};

// A gate of 10 minutes with heats of 15 s; d = log(head / base) is normal.
Course course(double ratio, double sd, uint64_t seed, RegressionOptions options = {}) {
  std::mt19937_64 random(seed);
  std::normal_distribution<double> normal(std::log(ratio), sd);
  RegressionTest test(options);
  std::vector<PastHeat> past;
  for (;;) {
    const double d = normal(random);
    EXPECT_TRUE(test.add(heat(100, 100 * std::exp(d))));
    past.push_back({.d = d, .within = 1e-6, .rounds = 16});
    const NextStep next = next_step(
        test, past, 16, {.spent_s = 15.0 * static_cast<double>(test.heats()), .heat_s = 15, .budget_s = 600});
    if (next.what != NextStep::What::kRunHeat) return {next.what, test.change(), next.outlook, test.heats()};
  }
}

TEST(RegressionTest, KnowsNothingAtFirst) {
  RegressionTest test({});
  EXPECT_EQ(test.change(), Change::kUndecided);
  EXPECT_FALSE(test.interval().bounded());
  ASSERT_TRUE(test.add(heat(100, 200)));
  EXPECT_EQ(test.change(), Change::kUndecided);
  EXPECT_NEAR(test.mean(), std::log(2), 1e-12);
}

TEST(RegressionTest, RefusesTimesThatAreNone) {
  RegressionTest test({});
  EXPECT_FALSE(test.add({{std::log(1.0), std::nan("")}}));
  EXPECT_FALSE(test.add({{0.0, 0.0, 0.0}}));
  EXPECT_EQ(test.heats(), 0U);
}

TEST(RegressionTest, DecidesBothWays) {
  EXPECT_EQ(course(1.0, 0.01, 1).change, Change::kNone);
  EXPECT_EQ(course(1.05, 0.01, 2).change, Change::kRegression);
  EXPECT_EQ(course(0.5, 0.01, 3).change, Change::kNone) << "faster is no regression";
  EXPECT_EQ(course(2.0, 0.05, 4).change, Change::kRegression);
}

TEST(RegressionTest, AtTheMarginItStaysUndecided) {
  const Course at = course(1.02, 0.01, 5);
  EXPECT_EQ(at.change, Change::kUndecided);
  EXPECT_EQ(at.end, NextStep::What::kNoTime);
  EXPECT_EQ(at.heats, 40U);
}

TEST(NextStep, RefusesAMarginThatNoiseForbids) {
  const Course noisy = course(1.0, 0.2, 6);
  EXPECT_EQ(noisy.end, NextStep::What::kTooNoisy);
  EXPECT_LT(noisy.heats, 20U);
  EXPECT_GT(noisy.outlook.reachable_margin, 0.05);
  // With the margin that it names, the same noise is decided.
  const RegressionOptions reachable{.margin = 1.3 * noisy.outlook.reachable_margin};
  EXPECT_EQ(course(1.0, 0.2, 7, reachable).change, Change::kNone);
}

TEST(NextStep, NoiseDoesNotHideAGreatRegression) {
  const Course noisy = course(2.0, 0.2, 8);
  EXPECT_EQ(noisy.change, Change::kRegression);
}

TEST(NextStep, SaysWhatBudgetDecides) {
  const Course at = course(1.03, 0.03, 10);
  ASSERT_EQ(at.change, Change::kUndecided);
  ASSERT_TRUE(at.outlook.decides_s);
  EXPECT_GT(*at.outlook.decides_s, 600);
}

// At the margin a claim of either kind is false: so often as alpha allows.
TEST(RegressionTest, FalseClaimsStayBelowAlpha) {
  constexpr int kGates = 1500;
  int red = 0, green = 0, red_of_equal = 0;
  for (int i = 0; i < kGates; ++i) {
    const Course at = course(1.02, 0.01, static_cast<uint64_t>(1000 + i));
    red += at.change == Change::kRegression;
    green += at.change == Change::kNone;
    red_of_equal += course(1.0, 0.01, static_cast<uint64_t>(5000 + i)).change == Change::kRegression;
  }
  EXPECT_LE(red, 28);  // of 1500 at 1%: above with probability < .001
  EXPECT_LE(green, 28);
  EXPECT_LE(red_of_equal, 0);
  EXPECT_GE(red + green, 3) << "alpha is not used at all";
}

}  // namespace
}  // namespace bakeoff::stats
