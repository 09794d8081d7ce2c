#include "stats/spread.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

namespace bakeoff::stats {
namespace {

std::vector<double> normals(size_t n, double sd, std::mt19937_64& random) {
  std::normal_distribution<double> normal(0, sd);
  std::vector<double> d(n);
  for (double& x : d) x = normal(random);
  return d;
}

TEST(SpreadAboutZero, IsTheRootMeanSquareWithItsChiSquareInterval) {
  const std::vector<double> d = {0.03, -0.04};
  const Spread spread = spread_about_zero(d);
  EXPECT_NEAR(spread.sd, std::sqrt((0.0009 + 0.0016) / 2), 1e-15);
  // chi-square on 2 degrees: quantiles -2 ln(1 - p).
  EXPECT_NEAR(spread.interval.low, std::sqrt(0.0025 / (-2 * std::log(0.025))), 1e-12);
  EXPECT_NEAR(spread.interval.high, std::sqrt(0.0025 / (-2 * std::log(0.975))), 1e-12);
  EXPECT_EQ(spread_about_zero({}).n, 0u);
  EXPECT_TRUE(std::isinf(spread_about_zero({}).interval.high));
}

TEST(SpreadAboutZero, CoversTheTruth) {
  std::mt19937_64 random(11);
  int covered = 0;
  constexpr int kRounds = 4000;
  for (int i = 0; i < kRounds; ++i) {
    const Interval interval = spread_about_zero(normals(6, 0.014, random)).interval;
    covered += interval.low <= 0.014 && 0.014 <= interval.high ? 1 : 0;
  }
  EXPECT_NEAR(covered / double{kRounds}, 0.95, 0.013);
}

TEST(PNarrower, IsExactForSmallGroups) {
  const std::vector<double> narrow = {0.001, -0.002, 0.0015}, wide = {0.05, -0.07, 0.06};
  EXPECT_DOUBLE_EQ(p_narrower(narrow, wide), 1.0 / 20);
  EXPECT_DOUBLE_EQ(p_narrower(wide, narrow), 1);
  EXPECT_EQ(p_narrower({}, wide), 1);
  const std::vector<double> same = {0.01, -0.01, 0.01};
  EXPECT_DOUBLE_EQ(p_narrower(same, same), 1) << "ties count against the control";
}

// The rate of keeping a control that does nothing, for shapes that break an F test.
TEST(PNarrower, HoldsItsLevelForHeavyTails) {
  std::mt19937_64 random(12);
  std::student_t_distribution<double> heavy(2);
  for (const size_t n : {size_t{5}, size_t{20}}) {
    int kept = 0;
    const int rounds = n == 5 ? 4000 : 400;
    for (int i = 0; i < rounds; ++i) {
      std::vector<double> a(n), b(n);
      for (double& x : a) x = heavy(random);
      for (double& x : b) x = heavy(random);
      kept += p_narrower(a, b, static_cast<uint64_t>(i)) <= 0.05 ? 1 : 0;
    }
    const double allowed = 0.05 + 3 * std::sqrt(0.05 * 0.95 / rounds);
    EXPECT_LE(kept / double(rounds), allowed) << n;
    EXPECT_GT(kept, 0) << "it can reject";
  }
}

// A tuned allocator as measured, 7% to 1.4%: nine blocks each and one control tried, or twenty and five.
TEST(PNarrower, SeesAFifthOfTheNoise) {
  std::mt19937_64 random(13);
  int kept = 0, kept_of_five = 0;
  constexpr int kRounds = 200;
  for (int i = 0; i < kRounds; ++i) {
    kept += p_narrower(normals(9, 0.014, random), normals(9, 0.07, random)) <= 0.05 ? 1 : 0;
    kept_of_five += p_narrower(normals(20, 0.014, random), normals(20, 0.07, random)) <= 0.01 ? 1 : 0;
  }
  EXPECT_GE(kept, kRounds * 95 / 100);
  EXPECT_GE(kept_of_five, kRounds * 99 / 100);
}

}  // namespace
}  // namespace bakeoff::stats
