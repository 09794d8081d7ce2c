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

// What a Zen 4 was said to do when the compiler had merged the chains of a loop, and what it does.
TEST(Peak, MoreThanItsInstructionsCanIsImpossible) {
  const std::vector<Peak> plain = {
      {.dtype = "f32", .isa = "avx2", .ops = {150e9, 300e9}, .lanes = 8, .units = 2, .clock_hz = 4.7e9},
      {.dtype = "f32", .isa = "avx512", .ops = {150e9, 300e9}, .lanes = 16, .units = 1, .clock_hz = 4.7e9}};
  const auto words = [&](const char* dtype, const char* isa, int64_t lanes, double one, double all) {
    return impossible({.dtype = dtype, .isa = isa, .ops = {one, all}, .lanes = lanes}, plain);
  };
  EXPECT_NE(words("bf16", "avx512-bf16", 32, 939e9, 1800e9), "");
  EXPECT_NE(words("int8", "avx512-vnni", 64, 2825e9, 5600e9), "");
  EXPECT_NE(words("bf16", "avx512-bf16", 32, 300e9, 640e9), "") << "on all processors";
  EXPECT_EQ(words("bf16", "avx512-bf16", 32, 310e9, 600e9), "");
  EXPECT_EQ(words("int8", "avx512-vnni", 64, 610e9, 1200e9), "");
  EXPECT_NE(words("int8", "avx-vnni", 32, 700e9, 1200e9), "") << "by the width of AVX2";
  EXPECT_EQ(words("bf16", "amx", 8192, 4800e9, 9600e9), "") << "it multiplies in other registers";
  EXPECT_EQ(impossible(plain[0], plain), "");
  Peak merged = plain[1];
  merged.ops.one *= 1.3;
  EXPECT_NE(impossible(merged, plain), "");
}

TEST(Level, BestOfAllTraffic) {
  const Level level{.name = "DRAM", .read = {10, 30}, .triad = {12, 20}, .triad_nt = {8, 33}};
  EXPECT_EQ(level.best(), (Rate{12, 33}));
}

}  // namespace
}  // namespace bakeoff::roofline
