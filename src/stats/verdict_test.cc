#include "stats/verdict.h"

#include <gtest/gtest.h>

#include <cmath>

namespace bakeoff::stats {
namespace {

TEST(Verdict, FollowsTheTable) {
  const double epsilon = std::log1p(0.02);
  const Interval unbounded;
  const struct {
    const char* what;
    Interval d;
    Verdict verdict;
    bool inside;
  } kCases[] = {
      {"clearly slower", {0.05, 0.09}, Verdict::kMateriallySlower, false},
      {"slower, by the margin or not", {0.01, 0.09}, Verdict::kSlower, false},
      {"slower, inside the margin", {0.001, 0.012}, Verdict::kSlower, true},
      {"starts at the margin", {epsilon, 0.1}, Verdict::kSlower, false},
      {"starts at 0", {0, 0.1}, Verdict::kUndecided, false},
      {"faster", {-0.3, -0.1}, Verdict::kFaster, false},
      {"faster, inside the margin", {-0.01, -0.001}, Verdict::kFaster, true},
      {"same", {-0.015, 0.011}, Verdict::kSame, true},
      {"exactly the margin", {-epsilon, epsilon}, Verdict::kSame, true},
      {"a point", {0, 0}, Verdict::kSame, true},
      {"sticks out above", {-0.01, 0.021}, Verdict::kUndecided, false},
      {"sticks out below", {-0.021, 0.01}, Verdict::kUndecided, false},
      {"nothing known", unbounded, Verdict::kUndecided, false},
  };
  for (const auto& row : kCases) {
    SCOPED_TRACE(row.what);
    EXPECT_EQ(judge(row.d, 0.02), row.verdict) << name(judge(row.d, 0.02));
    EXPECT_EQ(within_margin(row.d, 0.02), row.inside);
  }
}

TEST(Verdict, WithoutAMarginNothingIsSame) {
  EXPECT_EQ(judge({-1e-6, 1e-6}, 0), Verdict::kUndecided);
  EXPECT_EQ(judge({1e-6, 2e-6}, 0), Verdict::kMateriallySlower);
}

TEST(Verdict, NamesComeBack) {
  for (const Verdict verdict : {Verdict::kUndecided, Verdict::kFaster, Verdict::kSame, Verdict::kSlower,
                                Verdict::kMateriallySlower}) {
    EXPECT_EQ(verdict_of(name(verdict)), verdict);
  }
  EXPECT_EQ(name(Verdict::kMateriallySlower), "MATERIALLY SLOWER");
  EXPECT_EQ(verdict_of("slower"), std::nullopt);
}

}  // namespace
}  // namespace bakeoff::stats
