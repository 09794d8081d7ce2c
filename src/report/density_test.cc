#include "report/density.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace bakeoff::report {
namespace {

using ::testing::ElementsAre;

TEST(Quantile, IsLinearBetweenNeighbours) {
  const std::vector<double> values = {1, 2, 3, 4};
  EXPECT_DOUBLE_EQ(quantile(values, 0), 1);
  EXPECT_DOUBLE_EQ(quantile(values, 0.5), 2.5);
  EXPECT_DOUBLE_EQ(quantile(values, 1), 4);
  EXPECT_DOUBLE_EQ(quantile({7}, 0.3), 7);
  EXPECT_DOUBLE_EQ(quantile({}, 0.3), 0);
}

TEST(SortedFinite, DropsWhatIsNoNumber) {
  EXPECT_THAT(sorted_finite({3, std::nan(""), 1, std::numeric_limits<double>::infinity()}),
              ElementsAre(1, 3));
}

TEST(Density, ShowsBothModesInTheirProportion) {
  std::vector<double> values;
  for (int i = 0; i < 300; ++i) values.push_back(10 + 0.001 * (i % 100));
  for (int i = 0; i < 100; ++i) values.push_back(20 + 0.001 * i);
  std::sort(values.begin(), values.end());
  const std::vector<double> d = density(values, 5, 25, 201);
  ASSERT_EQ(d.size(), 201U);
  const int peak = static_cast<int>(std::max_element(d.begin(), d.end()) - d.begin());
  EXPECT_NEAR(5 + peak * 0.1, 10, 0.3);
  EXPECT_DOUBLE_EQ(d[peak], 1);
  EXPECT_NEAR(*std::max_element(d.begin() + 120, d.end()), 1.0 / 3, 0.02);
  EXPECT_LT(d[100], 0.01) << "between the modes";
}

TEST(Density, OfNothingIsEmptyAndOfOneValueAPeak) {
  EXPECT_TRUE(density({}, 0, 1, 10).empty());
  EXPECT_TRUE(density({1}, 1, 1, 10).empty());
  const std::vector<double> d = density({0.5, 0.5, 0.5}, 0, 1, 11);
  EXPECT_DOUBLE_EQ(d[5], 1);
  EXPECT_LT(d[0], 0.01);
}

}  // namespace
}  // namespace bakeoff::report
