#include "stats/history.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace bakeoff::stats {
namespace {

const CusumTable& table() {
  static const CusumTable kTable(200);
  return kTable;
}

std::vector<double> series(double phi, double step, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<double> normal;
  std::vector<double> values(200);
  double noise = normal(random);
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = 5 + 0.01 * noise + (i >= 120 ? step : 0);
    noise = phi * noise + std::sqrt(1 - phi * phi) * normal(random);
  }
  return values;
}

TEST(MaxCusum, OfAStepWorkedByHand) {
  // Centred: -1 x4, +1 x4; the largest partial sum is 4, after the fourth value.
  const std::vector<double> values = {0, 0, 0, 0, 2, 2, 2, 2};
  EXPECT_EQ(max_cusum(values).at, 4u);
  EXPECT_EQ(max_cusum(std::vector<double>(50, 3.0)).statistic, 0);
  EXPECT_EQ(max_cusum(std::vector<double>{1, 2, 9}).statistic, 0);
}

TEST(CusumTable, ExceedsTheBrownianBridgeAndGrowsWithPhi) {
  EXPECT_GT(table().critical(0), 1.4);  // 1.63 is the 99% point of the largest value of a Brownian bridge
  EXPECT_LT(table().critical(0), 1.9);
  EXPECT_GT(table().critical(0.9), table().critical(0.2));
  EXPECT_NEAR(table().critical(0.25), (table().critical(0.2) + table().critical(0.3)) / 2, 1e-12);
}

TEST(Nominate, RarelyNamesWhatIsNot) {
  for (const double phi : {0.0, 0.3, 0.6}) {
    int named = 0;
    for (uint64_t seed = 0; seed < 1000; ++seed) named += nominate(series(phi, 0, seed), table()).has_value();
    EXPECT_LE(named, 34) << phi;  // 2%, and what chance adds once in 1,000 times
  }
}

TEST(Nominate, FindsAStepAndItsPlace) {
  int found = 0;
  for (uint64_t seed = 0; seed < 200; ++seed) {
    const auto change = nominate(series(0.3, 0.02, seed), table());
    if (!change) continue;
    found += std::abs(static_cast<double>(change->at) - 120) <= 10 && std::abs(change->change - 0.02) < 0.01;
  }
  EXPECT_GE(found, 180);
}

TEST(CusumCritical, IsThatOfASimulationAlsoBetweenItsLengths) {
  for (const size_t n : {20, 40, 150}) {
    const CusumTable simulated(n, 0.01, 5);
    for (const double phi : {0.0, 0.2, 0.5})
      EXPECT_NEAR(cusum_critical(n, phi) / simulated.critical(phi), 1, 0.12) << n << " " << phi;
  }
  EXPECT_EQ(cusum_critical(100'000, 0.3), cusum_critical(2048, 0.3));
  EXPECT_EQ(cusum_critical(3, 0.3), cusum_critical(8, 0.3));
}

TEST(CusumCritical, RarelyNamesWhatIsNotInALongSeries) {
  int named = 0;
  for (uint64_t seed = 0; seed < 1000; ++seed) named += nominate(series(0.3, 0, seed)).has_value();
  EXPECT_LE(named, 34);
  EXPECT_FALSE(nominate(std::vector<double>{1, 1, 1, 2, 2, 2}));
}

}  // namespace
}  // namespace bakeoff::stats
