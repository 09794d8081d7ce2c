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

// Multiply-accumulates of one forward pass over one sample.
int64_t macs(const ir::Workload& workload) {
  return ir::step_cost(workload, {.kind = ir::OptimizerKind::kSgd}, 1)->flops_forward / 2;
}

// Parameters: torchvision 0.21, resnet18 and resnet50. Multiply-accumulates: its "GFLOPS", 1.81 and 4.09; He
// et al., table 1: 1.8e9 for the 18 layers, 3.8e9 for the 50 with strides in the 1x1.
TEST(Zoo, ResNetsAreThePublishedOnes) {
  EXPECT_EQ(build("resnet18")->parameter_count(), 11'689'512);
  EXPECT_EQ(build("resnet50")->parameter_count(), 25'557'032);
  EXPECT_NEAR(static_cast<double>(macs(*build("resnet18"))), 1.81e9, 0.01e9);
  EXPECT_NEAR(static_cast<double>(macs(*build("resnet50"))), 4.09e9, 0.01e9);
}

TEST(Zoo, SmallPresetsAreSmall) {
  for (const Entry& entry : entries()) {
    if (!entry.name.ends_with("_small")) continue;
    SCOPED_TRACE(entry.name);
    const ir::Workload workload = *entry.build();
    EXPECT_LT(workload.parameter_count(), 700'000);
    EXPECT_LT(macs(workload), 10'000'000);
  }
}

TEST(Zoo, UnknownNameSuggestsTheNearest) {
  EXPECT_EQ(build("mnist_cmn").error().remedy, "did you mean 'mnist_cnn'?");
}

}  // namespace
}  // namespace bakeoff::zoo
