#include "study/training/learning_curves.h"

#include <gtest/gtest.h>

#include <cmath>

namespace bakeoff {
namespace {

TargetTrial target(const std::string& contender, int seed, std::vector<TargetLook> looks) {
  return {.contender = contender, .seed = seed, .looks = std::move(looks)};
}

TEST(TargetCurves, AreMediansOverTheSeedsWithTheirRange) {
  const auto pictures = target_curves({
      target("referee", 1, {{50, 0, 2.0, 0.5}, {100, 0, 1.0, 0.8}}),
      target("torch", 1, {{50, 1'000'000'000, 2.0, 0.5}, {100, 2'000'000'000, 1.0, 0.8}}),
      target("torch", 2, {{50, 3'000'000'000, 4.0, 0.7}}),
      target("jax", 1, {{50, 1, std::nan(""), 0.1}}),
  });
  ASSERT_EQ(pictures.size(), 4U);
  EXPECT_EQ(pictures[0].name, "loss over steps");
  ASSERT_EQ(pictures[0].curves.size(), 2U) << "a loss that is no number has no curve";
  EXPECT_EQ(pictures[0].curves[0].contender, "referee");
  const table::Curve& torch = pictures[0].curves[1];
  ASSERT_EQ(torch.points.size(), 1U) << "where a seed looked no more the others are not shown alone";
  EXPECT_EQ(torch.points[0], (table::Point{50, 3, 2, 4}));
  EXPECT_EQ(pictures[1].name, "loss over seconds");
  ASSERT_EQ(pictures[1].curves.size(), 1U) << "the referee's seconds mean nothing";
  EXPECT_EQ(pictures[1].curves[0].points[0], (table::Point{2, 3, 2, 4}));
  EXPECT_EQ(pictures[3].name, "accuracy over seconds");
}

TEST(TargetCurves, HaveNoAccuracyWhereThereAreNoClasses) {
  EXPECT_EQ(target_curves({target("torch", 1, {{50, 1, 2.0, 0}})}).size(), 2U);
  EXPECT_TRUE(target_curves({}).empty());
}

TEST(FitCurves, AreTheReportedLossesThinnedAndPlacedInTime) {
  FitTrial trial{.contender = "torch", .seed = 1};
  for (int stretch = 0; stretch < 2; ++stretch) {
    Burst burst{.ns = 10'000'000'000, .steps = 500};
    for (int i = 1; i <= 500; ++i) burst.losses[stretch * 500 + i] = 1000 - (stretch * 500 + i);
    trial.stretches.push_back(burst);
  }
  FitTrial failed{.contender = "jax", .seed = 1};
  failed.failure = Failure{Stage::kRun, "exit code 1", {}};
  const auto pictures = fit_curves({trial, failed});
  ASSERT_EQ(pictures.size(), 2U);
  ASSERT_EQ(pictures[0].curves.size(), 1U);
  const auto& steps = pictures[0].curves[0].points;
  ASSERT_EQ(steps.size(), static_cast<size_t>(kCurvePoints));
  EXPECT_EQ(steps.back().x, 1000);
  EXPECT_LT(steps.back().y, 10) << "a mean of the last steps";
  EXPECT_GT(steps.front().y, 990);
  const auto& seconds = pictures[1].curves[0].points;
  EXPECT_DOUBLE_EQ(seconds.back().x, 20);
  EXPECT_NEAR(seconds[kCurvePoints / 2 - 1].x, 10, 0.2);
}

}  // namespace
}  // namespace bakeoff
