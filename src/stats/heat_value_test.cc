#include "stats/heat_value.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace bakeoff::stats {
namespace {

TEST(HeatValue, IsTheLogOfTheMeanOfFewBursts) {
  EXPECT_NEAR(heat_value(std::vector<double>{2, 6}).value(), std::log(4.0), 1e-12);
  EXPECT_NEAR(heat_value(std::vector<double>{1, 1, 1, 97}).value(), std::log(25.0), 1e-12)
      << "none is trimmed";
}

TEST(HeatValue, TrimsBurstsAndNotSteps) {
  std::vector<double> bursts(10, 3.0);
  bursts[4] = 300;
  EXPECT_NEAR(heat_value(bursts).value(), std::log(3.0), 1e-12);
}

TEST(HeatValue, NeedsTimes) {
  EXPECT_EQ(heat_value({}), std::nullopt);
  for (const double bad : {0.0, -1.0, std::nan(""), std::numeric_limits<double>::infinity()})
    EXPECT_EQ(heat_value(std::vector<double>{1, bad}), std::nullopt) << bad;
}

}  // namespace
}  // namespace bakeoff::stats
