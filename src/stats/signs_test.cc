#include "stats/signs.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <optional>
#include <random>
#include <vector>

namespace bakeoff::stats {
namespace {

std::vector<double> normal_values(size_t n, uint64_t seed, double phi = 0) {
  std::mt19937_64 random(seed);
  std::normal_distribution<double> normal;
  std::vector<double> values(n);
  double noise = normal(random);
  for (double& value : values) {
    value = noise;
    noise = phi * noise + std::sqrt(1 - phi * phi) * normal(random);
  }
  return values;
}

std::vector<std::optional<double>> shares(const std::vector<double>& values) {
  return {values.begin(), values.end()};
}

TEST(Signs, AreRareInIndependentNormalData) {
  int modes = 0, correlations = 0, slopes = 0;
  for (uint64_t seed = 0; seed < 2000; ++seed) {
    const Signs signs = signs_of(normal_values(12, seed), shares(normal_values(12, seed + 5000)));
    modes += signs.modes.has_value();
    correlations += signs.correlation.has_value();
    slopes += signs.steal.has_value();
  }
  // .5% of 2,000 are 10; more than 20 has probability .002. The critical share of `modes` is itself
  // simulated.
  EXPECT_LE(modes, 30);
  EXPECT_LE(correlations, 20);
  EXPECT_LE(slopes, 20);
  EXPECT_GT(modes, 0);
  EXPECT_GT(slopes, 0);
}

TEST(Signs, OfTwoAndOfThreeModes) {
  std::mt19937_64 random(1);
  std::normal_distribution<double> blur(0, 0.001);
  std::vector<double> two, three;
  for (int i = 0; i < 12; ++i) two.push_back((i % 3 ? 0.05 : 0.0) + blur(random));
  for (int i = 0; i < 12; ++i) three.push_back(0.05 * (i * 7 % 3 - 1) + blur(random));
  const Signs of_two = signs_of(two, {});
  ASSERT_TRUE(of_two.modes);
  EXPECT_EQ(of_two.modes->groups, 2u);
  EXPECT_NEAR(of_two.modes->apart, 0.05, 0.002);
  EXPECT_EQ(of_two.modes->heats, 12u);
  const Signs of_three = signs_of(three, {});
  ASSERT_TRUE(of_three.modes);
  EXPECT_EQ(of_three.modes->groups, 3u);
  EXPECT_NEAR(of_three.modes->apart, 0.05, 0.002);
}

TEST(Signs, OneOutlierIsNoMode) {
  std::vector<double> d = normal_values(12, 4);
  d[5] = 50;
  EXPECT_FALSE(signs_of(d, {}).modes);
}

TEST(Signs, OfCorrelationFromHeatToHeat) {
  int seen = 0, alternating = 0;
  for (uint64_t seed = 0; seed < 200; ++seed) {
    seen += signs_of(normal_values(20, seed, 0.9), {}).correlation.has_value();
    alternating += signs_of(normal_values(20, seed, -0.9), {}).correlation.has_value();
  }
  EXPECT_GE(seen, 120);
  EXPECT_EQ(alternating, 0);
}

TEST(Signs, OfASlopeOnSteal) {
  std::vector<double> d = normal_values(10, 8);
  std::vector<std::optional<double>> steal;
  for (size_t i = 0; i < d.size(); ++i) {
    steal.push_back(0.01 * static_cast<double>(i));
    d[i] = 0.001 * d[i] + 1.5 * *steal[i];
  }
  const Signs signs = signs_of(d, steal);
  ASSERT_TRUE(signs.steal);
  EXPECT_NEAR(signs.steal->slope, 1.5, 0.05);
  EXPECT_DOUBLE_EQ(signs.steal->high, 0.09);
  EXPECT_FALSE(signs_of(d, {}).steal) << "steal was not read";
  for (size_t i = 0; i < 5; ++i) steal[i].reset();
  EXPECT_FALSE(signs_of(d, steal).steal) << "five heats have a share of steal";
  EXPECT_FALSE(signs_of(d, shares(std::vector<double>(10, 0.02))).steal) << "steal never changed";
}

TEST(Signs, NeedHeatsAndSpread) {
  EXPECT_FALSE(signs_of({}, {}).any());
  EXPECT_FALSE(signs_of(std::vector<double>{1, 1, 5}, {}).any());
  EXPECT_FALSE(signs_of(std::vector<double>(20, 1.0), shares(std::vector<double>(20, 0.1))).any());
}

TEST(Signs, OnceSeenStay) {
  Signs signs;
  signs.update({.modes = Modes{6, 2, 0.05, 0.001}});
  signs.update({.correlation = Correlation{9, 0.8}});
  EXPECT_TRUE(signs.modes && signs.correlation);
  signs.update({.modes = Modes{12, 3, 0.04, 0.002}});
  EXPECT_EQ(signs.modes->heats, 12u);
}

TEST(NodeSpread, IsFoundWhereMachinesDiffer) {
  std::mt19937_64 random(5);
  std::normal_distribution<double> noise(0, 0.01);
  std::vector<double> d;
  std::vector<int> node;
  for (int i = 0; i < 32; ++i) {
    node.push_back(i % 4);
    d.push_back((i % 4 < 2 ? 0.03 : -0.03) + noise(random));
  }
  const auto spread = node_spread(d, node);
  ASSERT_TRUE(spread);
  EXPECT_EQ(spread->nodes, 4u);
  EXPECT_EQ(spread->heats, 32u);
  EXPECT_NEAR(spread->sd, 0.0346, 0.006);
  EXPECT_FALSE(node_spread(d, std::vector<int>(32, 0))) << "one machine";
  std::iota(node.begin(), node.end(), 0);
  EXPECT_FALSE(node_spread(d, node)) << "one heat each";
}

TEST(NodeSpread, IsRarelyFoundWhereTheyAreEqual) {
  std::mt19937_64 random(6);
  std::normal_distribution<double> noise(0, 0.01);
  int found = 0;
  for (int race = 0; race < 4000; ++race) {
    std::vector<double> d;
    std::vector<int> node;
    for (int i = 0; i < 20; ++i) node.push_back(static_cast<int>(random() % 5)), d.push_back(noise(random));
    found += node_spread(d, node).has_value();
  }
  EXPECT_LE(found, 40) << "0.5% expected";
  EXPECT_GE(found, 5);
}

}  // namespace
}  // namespace bakeoff::stats
