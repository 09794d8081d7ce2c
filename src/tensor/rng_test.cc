#include "tensor/rng.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace bakeoff::tensor {
namespace {

TEST(Rng, IsTheSameEverywhere) {
  // splitmix64 from 0 is published: e220a8397b1dcdaf 6e789e6aa1b965f4 06c45d188009454f f88bb8a8724c81ec.
  EXPECT_EQ(mix(0), 0xe220a8397b1dcdafu);
  EXPECT_EQ(mix(0x9e3779b97f4a7c15u), 0x6e789e6aa1b965f4u);
  EXPECT_EQ(hash(""), 0xcbf29ce484222325u);
  EXPECT_EQ(hash("a"), 0xaf63dc4c8601ec8cu);  // FNV-1a's published vector
  Rng rng(0);
  // xoshiro256++ with the four splitmix64 words above as state.
  EXPECT_EQ(rng.next(), 0x53175d61490b23dfu);
}

TEST(Rng, StreamsDiffer) {
  Rng a(1, "conv1.weight"), b(1, "conv2.weight"), c(2, "conv1.weight"), d(1, "conv1.weight");
  const uint64_t first = a.next();
  EXPECT_NE(first, b.next());
  EXPECT_NE(first, c.next());
  EXPECT_EQ(first, d.next());
}

TEST(Rng, UniformFillsItsRange) {
  Rng rng(3);
  double sum = 0, low = 1, high = 0;
  constexpr int kCount = 100000;
  for (int i = 0; i < kCount; ++i) {
    const double u = rng.uniform();
    ASSERT_GE(u, 0);
    ASSERT_LT(u, 1);
    sum += u;
    low = std::min(low, u);
    high = std::max(high, u);
  }
  EXPECT_NEAR(sum / kCount, 0.5, 0.005);  // five standard errors
  EXPECT_LT(low, 1e-3);
  EXPECT_GT(high, 1 - 1e-3);
}

TEST(Rng, NormalHasTheMomentsOfTheNormal) {
  Rng rng(4);
  constexpr int kCount = 200000;
  double m1 = 0, m2 = 0, m4 = 0, beyond2 = 0;
  for (int i = 0; i < kCount; ++i) {
    const double x = rng.normal();
    m1 += x;
    m2 += x * x;
    m4 += x * x * x * x;
    beyond2 += std::abs(x) > 2;
  }
  EXPECT_NEAR(m1 / kCount, 0, 0.012);
  EXPECT_NEAR(m2 / kCount, 1, 0.017);
  EXPECT_NEAR(m4 / kCount, 3, 0.12);
  EXPECT_NEAR(beyond2 / kCount, std::erfc(std::sqrt(2.0)), 0.0025);
}

TEST(Rng, IntegersAreUniformAndInclusive) {
  Rng rng(5);
  std::vector<int> seen(7);
  for (int i = 0; i < 70000; ++i) ++seen[static_cast<size_t>(rng.integer(-3, 3) + 3)];
  for (const int count : seen) EXPECT_NEAR(count, 10000, 500);
  EXPECT_EQ(rng.integer(9, 9), 9);
  rng.integer(INT64_MIN, INT64_MAX);
}

}  // namespace
}  // namespace bakeoff::tensor
