#include "base/result.h"

#include <gtest/gtest.h>

namespace bakeoff {
namespace {

Result<int> half(int n) {
  if (n % 2 != 0) return Error{.message = "odd", .where = "f:1", .remedy = "use an even number"};
  return n / 2;
}

Result<int> quarter(int n) {
  TRY(const int h, half(n));
  TRY(const int q, half(h));
  return q;
}

Status both_even(int a, int b) {
  CHECK_OK(half(a));
  CHECK_OK(half(b));
  return Done{};
}

TEST(Result, CarriesValueOrError) {
  EXPECT_EQ(*quarter(12), 3);
  EXPECT_EQ(quarter(6).error().message, "odd");
  EXPECT_TRUE(both_even(2, 4));
  EXPECT_FALSE(both_even(2, 3));
}

TEST(Error, TextNamesPlaceAndRemedy) {
  EXPECT_EQ(half(1).error().text(), "f:1: odd\n  use an even number");
  EXPECT_EQ(Error{.message = "plain"}.text(), "plain");
}

TEST(Error, LineJoinsWhatIsThere) {
  EXPECT_EQ(half(1).error().line(), "f:1: odd; use an even number");
  EXPECT_EQ((Error{.message = "odd", .remedy = "use an even number"}.line()), "odd; use an even number");
  EXPECT_EQ(Error{.message = "plain"}.line(), "plain");
}

}  // namespace
}  // namespace bakeoff
