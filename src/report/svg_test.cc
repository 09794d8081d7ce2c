#include "report/svg.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <cmath>
#include <limits>

namespace bakeoff::report {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr double kInf = std::numeric_limits<double>::infinity();

TEST(Coordinate, IsShortAndFinite) {
  EXPECT_EQ(coordinate(12.34), "12.3");
  EXPECT_EQ(coordinate(12.0), "12");
  EXPECT_EQ(coordinate(-0.01), "0");
  EXPECT_EQ(coordinate(std::nan("")), "0");
  EXPECT_EQ(coordinate(kInf), "0");
  EXPECT_EQ(coordinate(1e30), "100000");
}

TEST(Svg, EscapesEveryText) {
  Svg svg(10, 10, "a \"label\"");
  svg.begin("row", "<b> & 'c'", 3);
  svg.text(0, 0, "</text><script>", "lbl");
  svg.end();
  const std::string out = std::move(svg).finish();
  EXPECT_THAT(out, HasSubstr("aria-label=\"a &quot;label&quot;. &lt;b&gt; &amp; &#39;c&#39;\""));
  EXPECT_THAT(out, HasSubstr("data-series=\"3\"><title>&lt;b&gt; &amp; &#39;c&#39;</title>"));
  EXPECT_THAT(out, HasSubstr("&lt;/text&gt;&lt;script&gt;</text></g></svg>"));
  EXPECT_THAT(out, Not(HasSubstr("<script>")));
}

TEST(Svg, ShortensTextToTheRoom) {
  Svg svg(10, 10, "");
  svg.text(0, 0, "abcdefghijklmnopqrstuvwxyz", "lbl", "end", 60);
  EXPECT_THAT(std::move(svg).finish(), HasSubstr("text-anchor=\"end\">abcdefg…</text>"));
}

TEST(Axis, MapsValuesLinearlyOrByLogarithm) {
  const Axis linear(0, 10, 100, 200, false);
  EXPECT_DOUBLE_EQ(linear.at(5), 150);
  EXPECT_DOUBLE_EQ(linear.at(20), 200);
  EXPECT_DOUBLE_EQ(linear.at(-kInf), 100);
  EXPECT_DOUBLE_EQ(linear.at(std::nan("")), 100);
  const Axis log(1, 100, 0, 200, true);
  EXPECT_DOUBLE_EQ(log.at(10), 100);
}

TEST(Axis, TicksAreRound) {
  EXPECT_THAT(Axis(0, 10, 0, 1, false).ticks(5), ElementsAre(0, 2, 4, 6, 8, 10));
  EXPECT_THAT(Axis(1, 10000, 0, 1, true).ticks(5), ElementsAre(1, 10, 100, 1000, 10000));
  const Axis ratios(0.95, 5.8, 0, 1, true);
  EXPECT_THAT(ratios.ticks(8), ElementsAre(1, 1.2, 1.5, 2, 3, 4, 5));
  EXPECT_FALSE(std::signbit(Axis(-0.1, 1, 0, 1, false).ticks(5).front()));
}

TEST(Axis, SurvivesAnyRange) {
  EXPECT_TRUE(rc::check([](double low, double high, bool log) {
    const Axis axis(low, high, 0, 100, log);
    RC_ASSERT(std::isfinite(axis.at(low)) && std::isfinite(axis.at(high)) && std::isfinite(axis.at(0)));
    RC_ASSERT(axis.high() > axis.low());
  }));
}

TEST(Axis, ARangeOfOneRoundingIsWidened) {
  for (const double low : {10.0, 86.8, 1e-300, 1e18, -3.0, 1.6e308}) {
    for (const bool log : {false, true}) {
      SCOPED_TRACE(low);
      const Axis axis(low, std::nextafter(low, kInf), 0, 100, log);
      const std::vector<double> ticks = axis.ticks(5);
      EXPECT_LE(ticks.size(), 12U);
      for (size_t i = 1; i < ticks.size(); ++i) EXPECT_GT(ticks[i], ticks[i - 1]);
    }
  }
  const auto ticks = Axis(10, 10.000000000000002, 0, 1, false).ticks(5);
  EXPECT_THAT(ticks, ::testing::Pointwise(::testing::DoubleEq(),
                                          std::vector<double>{10, 10.2, 10.4, 10.6, 10.8, 11}));
}

TEST(Axis, TicksAreFewAndAscendOnPlausibleRanges) {
  EXPECT_TRUE(rc::check([](bool log) {
    const double low = std::pow(10, *rc::gen::inRange(-18, 9)) * *rc::gen::inRange(1, 100);
    const double high = low * (1 + *rc::gen::inRange(1, 100000) / 500.0);
    const std::vector<double> ticks = Axis(low, high, 0, 100, log).ticks(8);
    RC_ASSERT(ticks.size() <= 12U);
    for (size_t i = 0; i < ticks.size(); ++i) {
      RC_ASSERT(ticks[i] >= low * 0.999999 && ticks[i] <= high * 1.000001);
      if (i > 0) RC_ASSERT(ticks[i] > ticks[i - 1]);  // RC_ASSERT evaluates both sides of ||
    }
  }));
}

}  // namespace
}  // namespace bakeoff::report
