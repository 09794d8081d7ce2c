#include "stats/planning.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <cmath>
#include <limits>

namespace bakeoff::stats {
namespace {

TEST(PairsNeeded, IsTheRuleOfMeasurement) {
  EXPECT_EQ(pairs_needed(0.014, 0.02), 14);           // 17.8 * .49 + 5 = 13.7
  EXPECT_EQ(pairs_needed(0.071, 0.02).value(), 230);  // 225 + 5
  EXPECT_EQ(pairs_needed(0, 0.02), 5);
  EXPECT_EQ(pairs_needed(0.014, -0.02), pairs_needed(0.014, 0.02));
  EXPECT_EQ(pairs_needed(1, 0), std::nullopt);
  EXPECT_EQ(pairs_needed(1, 1e-300), std::numeric_limits<int64_t>::max());
}

TEST(PairsNeeded, GrowsWithWhatIsAsked) {
  EXPECT_GT(pairs_needed(1, 0.1, 0.001).value(), pairs_needed(1, 0.1, 0.01).value());
  EXPECT_GT(pairs_needed(1, 0.1, 0.01, 0.99).value(), pairs_needed(1, 0.1, 0.01, 0.95).value());
}

TEST(StepsPerBlock, BalancesStartsAgainstSteps) {
  EXPECT_EQ(steps_per_block(8, 0.08, 0.04, 0.01), 20);  // sqrt(100 * 4)
  EXPECT_EQ(steps_per_block(1, 1, 1e-9, 1), 1);
  EXPECT_EQ(steps_per_block(1, 1, 1, 0), std::nullopt);
}

TEST(CheaperFrom, CoversEveryCase) {
  const struct {
    const char* what;
    RunCost chaser, rival;
    std::optional<int64_t> steps;
  } kCases[] = {
      {"pays its start back", {100, 1}, {10, 2}, 91},
      {"ahead in both", {1, 1}, {10, 2}, 0},
      {"behind in both", {10, 2}, {1, 1}, std::nullopt},
      {"a head start that does not last", {1, 2}, {10, 1}, std::nullopt},
      {"equal steps, earlier start", {1, 2}, {10, 2}, 0},
      {"equal steps, later start", {10, 2}, {1, 2}, std::nullopt},
      {"identical", {1, 2}, {1, 2}, std::nullopt},
      {"equal start", {5, 1}, {5, 2}, 1},
      {"never within any count", {1e300, 1}, {0, 1 + 1e-9}, std::nullopt},
      {"no whole number", {1, 0.7}, {0, 1.0}, 4},
  };
  for (const auto& row : kCases) {
    SCOPED_TRACE(row.what);
    EXPECT_EQ(cheaper_from(row.chaser, row.rival), row.steps);
  }
}

TEST(CheaperFrom, IsTheFirstStepOfTheDefinition) {
  EXPECT_TRUE(rc::check([] {
    const auto cost = [] {
      return RunCost{static_cast<double>(*rc::gen::inRange(0, 1000)),
                     static_cast<double>(*rc::gen::inRange(1, 50))};
    };
    const RunCost a = cost();
    const RunCost b = cost();
    const std::optional<int64_t> from = cheaper_from(a, b);
    if (!from) {
      RC_ASSERT(!(a.after(1e9) < b.after(1e9)));
      return;
    }
    const double n = static_cast<double>(*from);
    RC_ASSERT(a.after(n) < b.after(n));
    RC_ASSERT(a.after(1e9) < b.after(1e9));
    RC_ASSERT(*from == 0 || !(a.after(n - 1) < b.after(n - 1)));
  }));
}

TEST(BreakEven, CompiledAgainstEager) {
  const RunCost eager{0.9, 0.116};
  const RunCost compiled{20.9, 0.1};
  const BreakEven even = break_even(eager, compiled);
  EXPECT_EQ(even.leader_cheaper_from, 1251);
  EXPECT_EQ(even.contender_cheaper_from, std::nullopt);
  EXPECT_EQ(break_even(compiled, eager).contender_cheaper_from, 1251);
}

}  // namespace
}  // namespace bakeoff::stats
