#include "stats/heat_value.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "stats/trimmed.h"

namespace bakeoff::stats {
namespace {

TEST(HeatValue, LeavesNoneOfFewerThanFourBurstsOut) {
  EXPECT_NEAR(heat_value(std::vector<double>{2, 6}).value(), std::log(4.0), 1e-12);
  EXPECT_NEAR(heat_value(std::vector<double>{1, 1, 97}).value(), std::log(33.0), 1e-12);
  EXPECT_NEAR(heat_value(std::vector<double>{1, 97, 1, 4}).value(), std::log(2.0), 1e-12);
}

TEST(HeatValue, LeavesTheSlowestQuarterOut) {
  const std::vector<size_t> out = {0, 0, 0, 0, 1, 1, 1, 1, 2};
  for (size_t bursts = 0; bursts < out.size(); ++bursts) EXPECT_EQ(trimmed_bursts(bursts), out[bursts]);
  EXPECT_EQ(trimmed_bursts(200), 50u);
  std::vector<double> bursts(200, 3.0);
  std::fill(bursts.begin() + 20, bursts.begin() + 70, 300);
  EXPECT_NEAR(heat_value(bursts).value(), std::log(3.0), 1e-12);
  bursts[0] = 300;
  EXPECT_NEAR(heat_value(bursts).value(), std::log((149 * 3.0 + 300) / 150), 1e-12);
}

TEST(HeatValue, StallsAreWhatTheMeanHasMore) {
  const HeatMeasure measure = measure_heat(std::vector<double>{2, 2, 2, 10}).value();
  EXPECT_NEAR(measure.log_mean_ms, std::log(4.0), 1e-12);
  EXPECT_NEAR(measure.stalls(), std::log(2.0), 1e-12);
  EXPECT_EQ(measure_heat(std::vector<double>(9, 3.0))->stalls(), 0);
}

// The variance of heats of independent bursts, with spikes in one of ten, is the one that a heat estimates
// from its own bursts.
TEST(HeatValue, ItsVarianceIsThatOfHeats) {
  std::mt19937_64 random(4);
  std::normal_distribution<double> normal;
  std::uniform_real_distribution<double> uniform;
  for (const size_t bursts : {8u, 16u, 100u}) {
    std::vector<double> values;
    double said = 0;
    constexpr int kHeats = 4000;
    for (int heat = 0; heat < kHeats; ++heat) {
      std::vector<double> ms(bursts);
      for (double& one : ms)
        one = 20 * std::exp(0.05 * normal(random)) * (uniform(random) < 0.1 ? 1 + 3 * uniform(random) : 1);
      const HeatMeasure measure = measure_heat(ms).value();
      values.push_back(measure.log_ms);
      said += *measure.variance / kHeats;
    }
    EXPECT_NEAR(std::sqrt(said / variance(values)), 1, bursts < 10 ? 0.2 : 0.1) << bursts;
  }
  EXPECT_EQ(measure_heat(std::vector<double>{3})->variance, std::nullopt);
  EXPECT_EQ(measure_heat(std::vector<double>{3})->variance_high(), std::nullopt);
  const HeatMeasure nine = measure_heat(std::vector<double>{1, 2, 3, 1, 2, 3, 1, 2, 3}).value();
  EXPECT_NEAR(*nine.variance_high() / *nine.variance, std::sqrt(8 / 3.4895), 1e-4);
}

TEST(HeatValue, NeedsTimes) {
  EXPECT_EQ(heat_value({}), std::nullopt);
  for (const double bad : {0.0, -1.0, std::nan(""), std::numeric_limits<double>::infinity()})
    EXPECT_EQ(heat_value(std::vector<double>{1, bad}), std::nullopt) << bad;
}

}  // namespace
}  // namespace bakeoff::stats
