// The table of a suite, from summaries whose truth is known.

#include "suite/suite_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace bakeoff::suite {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

// A race in which every pair met: each interval is the truth within a factor of `width`.
Summary race(const std::vector<std::pair<std::string, double>>& ms, double width = 1.02) {
  Summary s{.decided = true, .margin = 0.03, .alpha = 0.01, .batch = 100};
  for (size_t i = 0; i < ms.size(); ++i) {
    const double ratio = ms[i].second / ms[0].second;
    Row row{.contender = {.id = ms[i].first}};
    const int above = static_cast<int>(std::count_if(
        ms.begin(), ms.end(), [&](const auto& other) { return other.second * width < ms[i].second; }));
    row.rank_best = above + 1;
    row.rank_worst = static_cast<int>(ms.size() - std::count_if(ms.begin(), ms.end(), [&](const auto& other) {
                                        return ms[i].second * width < other.second;
                                      }));
    row.verdict = i == 0 ? RowVerdict::kLeader : RowVerdict::kSlower;
    row.ratio = i == 0 ? Estimate{1, 1, 1} : Estimate{ratio, ratio / width, ratio * width};
    row.ms_per_step = {ms[i].second, ms[i].second, ms[i].second};
    row.samples_per_second = 1e5 / ms[i].second;
    s.manifest.contenders.push_back(row.contender);
    for (size_t j = 0; j < i; ++j) {
      const double r = ms[j].second / ms[i].second;
      s.pairs.push_back({ms[j].first, ms[i].first, 9, {r, r / width, r * width}});
    }
    s.ranked.push_back(row);
  }
  return s;
}

void fail(Summary& s, const std::string& id) {
  Row row{.contender = {.id = id}, .failure = Failure{Stage::kRun, "crashed", {}}};
  s.manifest.contenders.push_back(row.contender);
  s.unranked.push_back(row);
}

const Mean& mean_of(const Table& table, const std::string& id) {
  const auto at = std::find(table.contenders.begin(), table.contenders.end(), id);
  EXPECT_NE(at, table.contenders.end()) << id;
  return table.means[static_cast<size_t>(at - table.contenders.begin())];
}
const TableCell& cell(const Table& table, size_t row, const std::string& id) {
  const auto at = std::find(table.contenders.begin(), table.contenders.end(), id);
  return table.rows[row].cells[static_cast<size_t>(at - table.contenders.begin())];
}

TEST(SuiteTable, MeansAreGeometricAndMarksSayWhoIsSure) {
  const Table t = table_of("two",
                           {{.name = "a", .summary = race({{"x", 10}, {"y", 20}})},
                            {.name = "b", .summary = race({{"y", 10}, {"x", 10.1}})}},
                           "");
  EXPECT_THAT(t.contenders, ElementsAre("x", "y"));
  EXPECT_THAT(t.mean_rows, ElementsAre(0, 1));
  EXPECT_TRUE(cell(t, 0, "x").surely_fastest);
  EXPECT_FALSE(cell(t, 0, "y").may_be_fastest);
  EXPECT_FALSE(cell(t, 1, "y").surely_fastest);
  EXPECT_TRUE(cell(t, 1, "x").may_be_fastest);
  EXPECT_THAT(t.rows[0].best, ElementsAre("x"));
  EXPECT_TRUE(t.rows[0].sure);
  EXPECT_THAT(t.rows[1].best, UnorderedElementsAre("y", "x"));
  EXPECT_FALSE(t.rows[1].sure);
  EXPECT_NEAR(mean_of(t, "x").ratio.value, std::sqrt(1.01), 1e-9);
  EXPECT_NEAR(mean_of(t, "y").ratio.value, std::sqrt(2), 1e-9);
  EXPECT_NEAR(mean_of(t, "y").to_best.value, std::sqrt(2 / 1.01), 1e-9);
  EXPECT_NEAR(mean_of(t, "y").to_best.low, std::sqrt(2 / 1.01) / 1.02, 1e-9)
      << "the mean of the logs of the ends";
  EXPECT_TRUE(mean_of(t, "x").surely_best);
  EXPECT_FALSE(mean_of(t, "y").may_be_best);
  EXPECT_DOUBLE_EQ(t.alpha, 0.02) << "Bonferroni over the rows";
  EXPECT_THAT(headline(t),
              HasSubstr("x is the fastest over 2 races: by the geometric mean the next, y, takes 1.407"));
}

TEST(SuiteTable, AMeanThatIsNotSureIsCalledSo) {
  const Table t = table_of("two",
                           {{.name = "a", .summary = race({{"x", 10}, {"y", 20}})},
                            {.name = "b", .summary = race({{"y", 10}, {"x", 19.5}})}},
                           "");
  EXPECT_TRUE(mean_of(t, "x").may_be_best);
  EXPECT_TRUE(mean_of(t, "y").may_be_best);
  EXPECT_FALSE(mean_of(t, "x").surely_best);
  EXPECT_THAT(headline(t), HasSubstr("Over 2 races no contender is surely the fastest; x, y may be."));
}

// A contender that has no time in a row is there with its reason, and the mean says over what it is.
TEST(SuiteTable, MissingCellsStay) {
  Summary second = race({{"x", 10}, {"y", 20}});
  fail(second, "z");
  const Table t = table_of("two",
                           {{.name = "a", .summary = race({{"x", 10}, {"y", 20}, {"z", 30}, {"only", 50}})},
                            {.name = "b", .summary = second}},
                           "");
  EXPECT_THAT(t.contenders, ElementsAre("x", "y", "z", "only"));
  EXPECT_THAT(t.mean_rows, ElementsAre(0, 1));
  EXPECT_TRUE(mean_of(t, "x").compared);
  EXPECT_FALSE(mean_of(t, "z").compared);
  EXPECT_EQ(mean_of(t, "z").why_not, "not ranked in b");
  EXPECT_EQ(mean_of(t, "only").why_not, "not in b");
  EXPECT_EQ(cell(t, 1, "z").standing, Standing::kNotRanked);
  EXPECT_THAT(cell(t, 1, "z").reason, HasSubstr("crashed"));
  EXPECT_EQ(cell(t, 1, "only").standing, Standing::kAbsent);
}

TEST(SuiteTable, MoreContendersAreWorthARow) {
  const Summary all = race({{"p", 1}, {"q", 2}, {"r", 3}, {"s", 4}});
  const Table t = table_of("",
                           {{.name = "a", .summary = all},
                            {.name = "b", .summary = all},
                            {.name = "c", .summary = all},
                            {.name = "d", .summary = race({{"p", 1}, {"q", 2}})}},
                           "");
  EXPECT_THAT(t.mean_rows, ElementsAre(0, 1, 2)) << "4 contenders over 3 rows, not 2 over 4";
  EXPECT_DOUBLE_EQ(t.alpha, 0.03);
}

TEST(SuiteTable, FailedRefusedAndEmptyRowsCountInNoMean) {
  Summary refused = race({{"y", 10}, {"x", 30}});
  refused.refusal = "the host was busy";
  const Table t = table_of("",
                           {{.name = "a", .summary = race({{"x", 10}, {"y", 20}})},
                            {.name = "b", .summary = refused},
                            {.name = "c", .failure = "there is no file"},
                            {.name = "d"},
                            {.name = "e", .summary = Summary{}}},
                           "");
  EXPECT_THAT(t.mean_rows, ElementsAre(0));
  EXPECT_FALSE(cell(t, 1, "y").may_be_fastest);
  EXPECT_EQ(t.rows[2].failure, "there is no file");
  EXPECT_EQ(t.rows[3].failure, "was not raced");
  EXPECT_EQ(t.rows[4].failure, "no contender could be ranked");
  EXPECT_DOUBLE_EQ(t.alpha, 0.01);
}

TEST(SuiteTable, NothingInCommonGivesNoMean) {
  const Table t = table_of(
      "", {{.name = "a", .summary = race({{"x", 10}})}, {.name = "b", .summary = race({{"y", 10}})}}, "");
  EXPECT_THAT(t.mean_rows, IsEmpty());
  EXPECT_FALSE(mean_of(t, "x").compared);
  EXPECT_THAT(headline(t), HasSubstr("no geometric mean"));
  EXPECT_THAT(table_of("", {}, "").rows, IsEmpty());
}

TEST(SuiteTable, AgainstTheBaseline) {
  const Table t = table_of("two",
                           {{.name = "a", .summary = race({{"x", 10}, {"y", 20}, {"z", 20.1}})},
                            {.name = "b", .summary = race({{"x", 10}, {"y", 40}, {"z", 40.1}})}},
                           "y");
  EXPECT_NEAR(cell(t, 0, "x").speed.value, 2, 1e-9);
  EXPECT_EQ(cell(t, 0, "x").verdict, PairVerdict::kFaster);
  EXPECT_EQ(cell(t, 0, "y").verdict, PairVerdict::kBaseline);
  EXPECT_EQ(cell(t, 0, "z").verdict, PairVerdict::kSame);
  ASSERT_TRUE(mean_of(t, "x").speed);
  EXPECT_NEAR(mean_of(t, "x").speed->value, std::sqrt(8), 1e-9);
  EXPECT_NEAR(mean_of(t, "x").speed->low, std::sqrt(8) / 1.02, 1e-9);
  EXPECT_EQ(mean_of(t, "x").verdict, PairVerdict::kFaster);
  EXPECT_EQ(mean_of(t, "z").verdict, PairVerdict::kSame);
}

// Each precision is a race of its own, and so a row of its own.
TEST(SuiteTable, PrecisionsAreRowsOfTheirOwn) {
  Summary s = race({{"x", 10}, {"y", 20}});
  Row half{.contender = {.id = "x,half"},
           .group = "bfloat16",
           .rank_best = 1,
           .rank_worst = 1,
           .verdict = RowVerdict::kLeader};
  half.ratio = {1, 1, 1};
  s.ranked.push_back(half);
  const Table t = table_of("", {{.name = "a", .summary = s}}, "");
  ASSERT_EQ(t.rows.size(), 2);
  EXPECT_EQ(t.rows[0].name, "a (float32)");
  EXPECT_EQ(t.rows[1].name, "a (bfloat16)");
  EXPECT_EQ(cell(t, 0, "x,half").standing, Standing::kAbsent);
  EXPECT_EQ(cell(t, 1, "x,half").standing, Standing::kTimed);
  EXPECT_DOUBLE_EQ(t.alpha, 0.01);
}

// After a few heats the evidence excludes nobody, but 28 times as long is not "may be the fastest".
TEST(SuiteTable, WhatOneLookMakesImprobableIsNotCalledPossible) {
  Summary s = race({{"x", 10}, {"y", 11}, {"far", 280}, {"once", 50}});
  s.decided = false;
  s.pairs.clear();
  Outlook open{.leader = "x"};
  open.rivals = {{.contender = "y", .heats = 3, .slower = 0.8},
                 {.contender = "far", .heats = 3, .slower = 0.99},
                 {.contender = "once", .heats = 1}};
  s.outlooks = {open};
  for (size_t i = 1; i < s.ranked.size(); ++i) {
    s.ranked[i].verdict = RowVerdict::kUndecided;
    s.ranked[i].rank_best = 1;
    s.ranked[i].ratio.low = 0;
    s.ranked[i].ratio.high = INFINITY;
  }
  Row late{.contender = {.id = "late"}, .waits = true, .failure = Failure{Stage::kRun, "no heat yet", {}}};
  s.manifest.contenders.push_back(late.contender);
  s.unranked.push_back(late);
  const Table t = table_of("", {{.name = "a", .summary = s}}, "");
  EXPECT_THAT(t.rows[0].best, UnorderedElementsAre("x", "y"));
  EXPECT_THAT(t.contenders, ElementsAre("x", "y", "once", "far", "late"));
  EXPECT_THAT(headline(t), HasSubstr("no contender is surely the fastest; x, y may be."));
  EXPECT_EQ(cell(t, 0, "late").standing, Standing::kWaits);
  EXPECT_THAT(t.rows[0].rest, HasSubstr("after two heats"));
}

// A pair that nothing links bounds no mean; one that was not timed has none.
TEST(SuiteTable, WhatIsNotKnownIsOpen) {
  Summary s = race({{"x", 10}, {"y", 20}});
  s.pairs.clear();
  s.ranked[1].ratio = {2, 0, INFINITY};
  Row slow{.contender = {.id = "slow"}, .verdict = RowVerdict::kAtLeast, .ratio = {10, 10, INFINITY}};
  slow.at_least = 10;
  s.ranked.push_back(slow);
  const Table t = table_of("", {{.name = "a", .summary = s}}, "");
  EXPECT_EQ(mean_of(t, "y").to_best.low, 0);
  EXPECT_FALSE(mean_of(t, "y").may_be_best) << "in no row it may be the fastest";
  EXPECT_FALSE(mean_of(t, "x").surely_best);
  EXPECT_THAT(headline(t), HasSubstr("Not certain yet: x leads over 1 race"));
  EXPECT_EQ(mean_of(t, "slow").why_not, "only a bound in a");
}

}  // namespace
}  // namespace bakeoff::suite
