#include "stats/pair_table.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "stats/e_process.h"

namespace bakeoff::stats {
namespace {

constexpr std::nullopt_t kOut = std::nullopt;

PairTable table_of(const std::vector<HeatResult>& heats) {
  return tabulate(heats, heats.front().log_ms.size()).value();
}

std::vector<double> ratios(double alpha = 0.01) {
  std::vector<double> all;
  for (size_t n = 0; n < 20; ++n) all.push_back(critical_ratio(n, alpha));
  return all;
}

TEST(PairTable, IntervalsOfAllLooksTakeTogether) {
  PairTable table(2);
  EProcess evidence;
  Interval common;
  for (const double d : {0.05, 0.051, 0.049, 0.0502, 0.0498, 0.2, 0.05}) {
    ASSERT_TRUE(table.add({{d, 0.0}}));
    evidence.add(d);
    const Interval now = evidence.interval(0.01);
    common = {std::max(common.low, now.low), std::min(common.high, now.high)};
    EXPECT_EQ(table.interval(0, 1, ratios()), common);
  }
  EXPECT_GT(common.low, evidence.interval(0.01).low) << "an outlier does not take back what was known";
  PairTable odd(2);
  EProcess all;
  for (int heat = 0; heat < 19; ++heat) {
    const double d = (heat < 5 ? 0.05 : 0.03) + 0.0001 * (heat % 2);
    ASSERT_TRUE(odd.add({{d, 0.0}}));
    all.add(d);
  }
  ASSERT_LT(all.interval(0.01).high, 0.049);
  EXPECT_EQ(odd.interval(0, 1, ratios()), all.interval(0.01)) << "nothing in common: the last one";
}

TEST(PairTable, PairsOnlyThoseWhoMet) {
  const PairTable table = table_of({{{1.0, 2.0, kOut}}, {{1.5, kOut, 2.5}}, {{1.0, 2.5, kOut}}});
  EXPECT_EQ(table.met(0, 1), 2);
  EXPECT_EQ(table.met(1, 0), 2);
  EXPECT_EQ(table.met(0, 2), 1);
  EXPECT_EQ(table.met(1, 2), 0);
  EXPECT_DOUBLE_EQ(table.gap(0, 1), -1.25);
  EXPECT_DOUBLE_EQ(table.gap(1, 0), 1.25);
  EXPECT_EQ(table.heats(0), 3);
  EXPECT_EQ(table.heats(2), 1);
}

TEST(PairTable, HoldsTheEvidenceOfEachPair) {
  std::mt19937_64 random(1);
  std::normal_distribution<double> normal;
  PairTable table(3);
  EProcess direct;
  for (int i = 0; i < 12; ++i) {
    const double a = normal(random);
    const double b = normal(random);
    ASSERT_TRUE(table.add({{normal(random), a, b}}));
    direct.add(a - b);
  }
  std::vector<double> ratios(13, std::numeric_limits<double>::infinity());
  ratios[12] = critical_ratio(12, 0.01);
  EXPECT_EQ(table.interval(1, 2, ratios), direct.interval(0.01));
  EXPECT_EQ(table.interval(2, 1, ratios), direct.interval(0.01).mirrored());
}

TEST(PairTable, AHeatOfOneIsVoid) {
  PairTable table(3);
  ASSERT_TRUE(table.add({{kOut, 4.0, kOut}}));
  ASSERT_TRUE(table.add({{kOut, kOut, kOut}}));
  EXPECT_EQ(table, PairTable(3));
}

TEST(PairTable, TheBackupWaitsForASign) {
  // Six differences of two sharp values: the t e-process takes them for a gap.
  const std::vector<double> first = {0.0501, 0.0499, 0.05, 0.0502};
  const double epsilon = std::log1p(0.02);
  PairTable alone(2), waiting(2, epsilon, Backup::kOnSigns), always(2, epsilon);
  const auto of = [](const PairTable& table) {
    const Interval t = table.interval(0, 1, ratios());
    return table.confirmed(0, 1, t, 0.01);
  };
  for (const double d : first) {
    for (PairTable* table : {&alone, &waiting, &always}) ASSERT_TRUE(table->add({{d, 0.0}}));
  }
  EXPECT_GT(of(alone).low, 0);
  EXPECT_EQ(of(waiting), of(alone)) << "nothing has shown yet";
  EXPECT_LT(of(always).low, 0);
  for (const double d : {-0.05, -0.0501}) {
    ASSERT_TRUE(waiting.watch({{d, 0.0}}));
    ASSERT_TRUE(alone.watch({{d, 0.0}}));
  }
  ASSERT_TRUE(waiting.signs(0, 1).modes);
  EXPECT_EQ(waiting.signs(1, 0), waiting.signs(0, 1));
  EXPECT_EQ(waiting.met(0, 1), 4u) << "watched heats are no evidence";
  EXPECT_EQ(waiting.gap(0, 1), alone.gap(0, 1));
  EXPECT_EQ(of(waiting), of(always));
  EXPECT_FALSE(alone.signs(0, 1).any());
  EXPECT_FALSE(waiting.watch({{1.0}}));
}

// A heat of two: values of the quicker bursts, and by how much more the mean of the first is.
HeatResult with_stalls(double a, double b, double stalls) {
  return {.log_ms = {a, b}, .log_mean_ms = {a + 0.01 + stalls, b + 0.01}};
}

TEST(PairTable, TheMeanDecidesWhereStallsDiffer) {
  PairTable table(2, std::log1p(0.02));
  ASSERT_TRUE(table.add(with_stalls(1.001, 1, 0.05)));
  EXPECT_FALSE(table.stalls(0, 1).decides) << "one heat shows no spread";
  ASSERT_TRUE(table.add(with_stalls(0.999, 1, 0.052)));
  ASSERT_TRUE(table.add(with_stalls(1, 1, 0.048)));
  const StallGap stalls = table.stalls(0, 1);
  EXPECT_TRUE(stalls.decides);
  EXPECT_EQ(stalls.heats, 3u);
  EXPECT_NEAR(stalls.gap, 0.05, 1e-12);
  EXPECT_NEAR(stalls.half_width, 1.8856 * 0.002 / std::sqrt(3.0), 1e-6) << "Student's t, 2 degrees, 90%";
  EXPECT_NEAR(table.gap(0, 1), 0.05, 1e-12);
  EXPECT_NEAR(table.gap(1, 0), -0.05, 1e-12);
  EXPECT_NEAR(table.stalls(1, 0).gap, -0.05, 1e-12);
  EXPECT_TRUE(table.stalls(1, 0).decides);
  EXPECT_GT(table.interval(0, 1, ratios(0.2)).low, 0);
  EXPECT_EQ(table.interval(1, 0, ratios(0.2)), table.interval(0, 1, ratios(0.2)).mirrored());
}

TEST(PairTable, TheQuickerBurstsDecideWhereStallsAreAlikeOrUnknown) {
  const auto decides = [](std::vector<double> stalls, std::optional<double> epsilon = std::log1p(0.02)) {
    PairTable table(2, epsilon);
    for (const double one : stalls) EXPECT_TRUE(table.add(with_stalls(1, 1, one)));
    return table.stalls(0, 1).decides;
  };
  EXPECT_TRUE(decides({0.02, 0.021, 0.022}));
  EXPECT_FALSE(decides({0.003, 0.0031, 0.0032})) << "less than a quarter of the margin";
  EXPECT_FALSE(decides({-0.08, 0.1, 0.05})) << "not known";
  EXPECT_FALSE(decides({0.02, 0.021, 0.022}, std::nullopt));
  PairTable table(2, std::log1p(0.02));
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(table.add(with_stalls(1, 1, 0.05)));
  ASSERT_TRUE(table.add({{1.0, 1.0}}));
  EXPECT_FALSE(table.stalls(0, 1).decides) << "a heat has no mean";
}

TEST(PairTable, RefusesAMalformedHeatWhole) {
  PairTable table(2);
  EXPECT_FALSE(table.add({{1.0}}));
  EXPECT_FALSE(table.add({{1.0, std::numeric_limits<double>::quiet_NaN()}}));
  EXPECT_FALSE(table.add({{-std::numeric_limits<double>::infinity(), 1.0}}));
  EXPECT_FALSE(table.add({.log_ms = {1.0, 1.0}, .log_mean_ms = {1.0}}));
  EXPECT_FALSE(table.add({.log_ms = {1.0, 1.0}, .log_mean_ms = {1.0, kOut}}));
  EXPECT_EQ(table, PairTable(2));
  const std::vector<HeatResult> heats = {{{1.0, 2.0}}, {{1.0, 2.0, 3.0}}};
  const Result<PairTable> bad = tabulate(heats, 2);
  ASSERT_FALSE(bad);
  EXPECT_EQ(bad.error().message, "heat 2: a heat of 3 contenders in a race of 2");
}

TEST(Effects, RecoverAnAdditiveTruthFromAnyHeats) {
  std::mt19937_64 random(2);
  const std::vector<double> truth = {0.3, -0.1, 0.05, 0.2, -0.45};  // sums to 0
  PairTable table(5);
  for (int h = 0; h < 20; ++h) {
    HeatResult heat{std::vector<std::optional<double>>(5)};
    const double level = std::normal_distribution<double>(5, 1)(random);
    for (const size_t i : {h % 5, (h + 1) % 5, (2 * h + 3) % 5}) heat.log_ms[i] = level + truth[i];
    ASSERT_TRUE(table.add(heat));
  }
  const auto effects = table.effects();
  for (size_t i = 0; i < 5; ++i) EXPECT_NEAR(effects[i].value(), truth[i], 1e-10);
}

TEST(Effects, AreTheLeastSquaresSolution) {
  // 0 and 1 met twice (d = -1, -3), 1 and 2 once (-1), 0 and 2 once (-4): normal equations solved by hand,
  // with e2 = -e0 - e1 and weights 1/2 for each pair: e0 = -11/5, e1 = 1/5.
  const PairTable table =
      table_of({{{0.0, 1.0, kOut}}, {{0.0, 3.0, kOut}}, {{kOut, 1.0, 2.0}}, {{0.0, kOut, 4.0}}});
  const auto effects = table.effects();
  EXPECT_NEAR(effects[0].value() + effects[1].value() + effects[2].value(), 0, 1e-12);
  const double e0 = *effects[0];
  const double e1 = *effects[1];
  const double e2 = *effects[2];
  const auto loss = [](double a, double b, double c) {
    const auto square = [](double x) { return x * x; };
    return square(a - b + 1) + square(a - b + 3) + square(b - c + 1) + square(a - c + 4);
  };
  for (const double step : {1e-3, -1e-3}) {
    EXPECT_GT(loss(e0 + step, e1, e2), loss(e0, e1, e2));
    EXPECT_GT(loss(e0, e1 + step, e2), loss(e0, e1, e2));
    EXPECT_GT(loss(e0, e1, e2 + step), loss(e0, e1, e2));
  }
}

TEST(Effects, CompareOnlyWhatIsLinked) {
  const PairTable table = table_of({{{1.0, 2.0, kOut, kOut, kOut, kOut}},
                                    {{kOut, kOut, 0.0, 1.0, kOut, kOut}},
                                    {{kOut, kOut, kOut, 1.0, 3.0, kOut}}});
  const auto effects = table.effects();
  EXPECT_FALSE(effects[0]);
  EXPECT_FALSE(effects[1]);
  EXPECT_NEAR(*effects[4] - *effects[2], 3, 1e-12);
  EXPECT_FALSE(effects[5]);
  for (const auto& effect : PairTable(2).effects()) EXPECT_FALSE(effect);
}

}  // namespace
}  // namespace bakeoff::stats
