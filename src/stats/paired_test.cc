#include "stats/paired.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace bakeoff::stats {
namespace {

double p(std::vector<double> d) { return p_above_zero(d); }

TEST(PAboveZero, CountsTheChoicesOfSigns) {
  EXPECT_DOUBLE_EQ(p({1, 2, 3}), 1 / 8.0);
  EXPECT_DOUBLE_EQ(p({-1, -2, -3}), 1);
  EXPECT_DOUBLE_EQ(p({3, -1}), 2 / 4.0) << "3 - 1 and 3 + 1 of four";
  EXPECT_DOUBLE_EQ(p({1, 1, 1, 1, -1}), 6 / 32.0) << "all, and five with one minus";
  EXPECT_DOUBLE_EQ(p({0, 0}), 1) << "nothing differs";
  EXPECT_DOUBLE_EQ(p({}), 1);
  EXPECT_DOUBLE_EQ(p({0.1, 0.2, 0.3}), 1 / 8.0) << "rounding of sums does not count";
}

TEST(PAboveZero, OfManyIsDrawnAndAgrees) {
  std::vector<double> d(25, 1.0);
  for (size_t i = 0; i < 8; ++i) d[i] = -1;  // 17 above, 8 below: P(Bin(25, 1/2) >= 17) = 0.0539
  EXPECT_NEAR(p(d), 0.0539, 0.003);
  EXPECT_EQ(p(d), p(d));
}

TEST(PAboveZero, ErrsNoMoreOftenThanItSays) {
  std::mt19937_64 random(3);
  std::cauchy_distribution<double> wild;
  int rejected = 0;
  for (int run = 0; run < 2000; ++run) {
    std::vector<double> d(8);
    for (double& one : d) one = wild(random);
    rejected += p(d) <= 0.05;
  }
  EXPECT_LE(rejected, 2000 * 0.05 + 3 * 10);
  EXPECT_GE(rejected, 50) << "12 of 256 choices: 4.7%";
}

}  // namespace
}  // namespace bakeoff::stats
