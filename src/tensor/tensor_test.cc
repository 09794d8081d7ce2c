#include "tensor/tensor.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace bakeoff::tensor {
namespace {

TEST(Tensor, CountsElementsOfScalarsAndEmptyAxes) {
  EXPECT_EQ(elements({}), 1);
  EXPECT_EQ(elements({3, 0, 2}), 0);
  EXPECT_EQ(elements({3, 4}), 12);
  EXPECT_EQ(to_text({3, 4}), "[3,4]");
  EXPECT_EQ(zeros({2, 2}).data, (std::vector<double>(4, 0.0)));
}

TEST(Tensor, RelativeDistanceIsThatOfTheNorms) {
  const Tensor a{{2}, {3, 4}};
  const Tensor b{{2}, {3, 5}};
  EXPECT_DOUBLE_EQ(norm(a), 5);
  EXPECT_DOUBLE_EQ(relative_distance(b, a), 0.2);
  EXPECT_DOUBLE_EQ(relative_distance(a, zeros({2})), 5);
  EXPECT_TRUE(std::isinf(relative_distance(a, Tensor{{2, 1}, {3, 4}})));
  EXPECT_TRUE(std::isnan(relative_distance(Tensor{{2}, {3, std::numeric_limits<double>::quiet_NaN()}}, a)));
}

}  // namespace
}  // namespace bakeoff::tensor
