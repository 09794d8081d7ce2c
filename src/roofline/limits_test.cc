#include "roofline/limits.h"

#include <gtest/gtest.h>

namespace bakeoff::roofline {
namespace {

TEST(Limits, ThePeakOfADtypeIsItsBestInstructionSet) {
  Limits limits;
  limits.peaks = {{.dtype = "f32", .isa = "scalar", .ops = {5, 9}},
                  {.dtype = "f32", .isa = "avx2", .ops = {50, 99}},
                  {.dtype = "f64", .isa = "avx2", .ops = {25, 50}}};
  ASSERT_NE(limits.peak("f32"), nullptr);
  EXPECT_EQ(limits.peak("f32")->isa, "avx2");
  EXPECT_EQ(limits.peak("bf16"), nullptr);
}

TEST(Peak, ShareOfTheWidth) {
  const Peak peak{.dtype = "f32", .isa = "avx2", .ops = {96e9, 0}, .lanes = 8, .units = 2, .clock_hz = 3e9};
  EXPECT_DOUBLE_EQ(peak.of_width(), 1);
  EXPECT_EQ(Peak{}.of_width(), 0);
}

TEST(Level, BestOfAllTraffic) {
  const Level level{.name = "DRAM", .read = {10, 30}, .triad = {12, 20}, .triad_nt = {8, 33}};
  EXPECT_EQ(level.best(), (Rate{12, 33}));
}

}  // namespace
}  // namespace bakeoff::roofline
