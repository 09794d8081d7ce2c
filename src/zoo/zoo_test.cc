#include "zoo/zoo.h"

#include <gtest/gtest.h>

#include "ir/cost.h"
#include "ir/text.h"

namespace bakeoff::zoo {
namespace {

TEST(Zoo, EveryWorkloadSurvivesItsTextForm) {
  for (const Entry& entry : entries()) {
    SCOPED_TRACE(entry.name);
    const auto workload = build(entry.name);
    ASSERT_TRUE(workload) << workload.error().text();
    EXPECT_EQ(workload->name, entry.name);
    const auto again = ir::parse(ir::dump(*workload));
    ASSERT_TRUE(again) << again.error().text();
    EXPECT_EQ(*again, *workload);
  }
}

TEST(Zoo, MnistCnnIsTheOneOfTheStudies) {
  const auto cnn = *build("mnist_cnn");
  EXPECT_EQ(cnn.parameter_count(), 563'018);
  // 12.5 GFLOP a step at batch 256, forward and backward.
  const auto cost = *ir::step_cost(cnn, {.kind = ir::OptimizerKind::kRmsprop}, 256);
  EXPECT_NEAR(static_cast<double>(cost.flops()), 12.4e9, 0.1e9);
}

TEST(Zoo, UnknownNameSuggestsTheNearest) {
  EXPECT_EQ(build("mnist_cmn").error().remedy, "did you mean 'mnist_cnn'?");
}

}  // namespace
}  // namespace bakeoff::zoo
