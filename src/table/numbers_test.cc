#include "table/numbers.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace bakeoff::table {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

TEST(Numbers, ReadWell) {
  EXPECT_EQ(count(563018), "563,018");
  EXPECT_EQ(count(0), "0");
  EXPECT_EQ(count(-1234.4), "-1,234");
  EXPECT_EQ(count(-0.2), "0");
  EXPECT_EQ(counted(1, "thread"), "1 thread");
  EXPECT_EQ(counted(2, "thread"), "2 threads");
  EXPECT_EQ(milliseconds(0.4123), "0.412");
  EXPECT_EQ(milliseconds(3.417), "3.42");
  EXPECT_EQ(milliseconds(9.996), "10.0");
  EXPECT_EQ(milliseconds(75.61), "75.6");
  EXPECT_EQ(milliseconds(999.96), "1,000");
  EXPECT_EQ(milliseconds(1262.4), "1,262");
  EXPECT_EQ(ratio(1.0127), "1.013");
  EXPECT_EQ(ratio(9.99951), "10.0");
  EXPECT_EQ(ratio(12.44), "12.4");
  EXPECT_EQ(percent(0.03), "3%");
  EXPECT_EQ(percent(0.005), "0.5%");
  EXPECT_EQ(significant(12.5, 3), "12.5");
  EXPECT_EQ(significant(165.3, 3), "165");
  EXPECT_EQ(significant(0.5, 3), "0.50");
  EXPECT_EQ(error_size(0), "0");
  EXPECT_EQ(error_size(3.14e-15), "3.1e-15");
  EXPECT_EQ(error_size(1e-8), "1e-8");
  EXPECT_EQ(error_size(kInf), "not finite");
}

TEST(Numbers, DurationsTakeTheUnitThatSuits) {
  EXPECT_EQ(duration(0.25), "250 µs");
  EXPECT_EQ(duration(3.21), "3.2 ms");
  EXPECT_EQ(duration(352), "352 ms");
  EXPECT_EQ(duration(1754), "1.75 s");
  EXPECT_EQ(duration(20654), "20.7 s");
  EXPECT_EQ(duration(123000), "2 min 03 s");
  EXPECT_EQ(duration(3.9e6), "1 h 05 min");
}

TEST(Numbers, BytesTakeBinaryUnits) {
  EXPECT_EQ(bytes(512), "512 B");
  EXPECT_EQ(bytes(1536), "1.50 KiB");
  EXPECT_EQ(bytes(812.0 * 1048576), "812 MiB");
  EXPECT_EQ(bytes(1.23 * 1073741824), "1.23 GiB");
}

TEST(Numbers, NotFiniteIsADash) {
  for (const double value : {kInf, -kInf, std::nan("")}) {
    for (const auto show : {count, milliseconds, duration, bytes, ratio, percent})
      EXPECT_EQ(show(value), kNone);
    EXPECT_EQ(significant(value, 3), kNone);
  }
}

TEST(Interval, IsOpenWhereItHasNoEnd) {
  EXPECT_EQ(interval({1.3, 1.28, 1.312}, ratio), "[1.280, 1.312]");
  EXPECT_EQ(interval({1.3, 1.28, kInf}, ratio), "[1.280, ∞)");
  EXPECT_EQ(interval({1.3, 0, 1.31}, ratio), "(0, 1.310]");
  EXPECT_EQ(interval({150, 1.3, 1e9}, ratio), "[1.300, ∞)") << "it tells the ratio from 1";
  EXPECT_EQ(interval({0.004, 1e-9, 0.9}, ratio), "(0, 0.900]");
  EXPECT_EQ(interval({150, 0.9, 1e9}, ratio), "–");
  EXPECT_EQ(interval({1.3, -kInf, kInf}, ratio), "–");
  EXPECT_EQ(interval({1.3, std::nan(""), std::nan("")}, ratio), "–");
}

}  // namespace
}  // namespace bakeoff::table
