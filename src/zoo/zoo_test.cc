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

// 60,965,224 is the sum over the layers of the paper's figure 2 ("60 million parameters").
// Multiply-accumulates: 724 M, Sze et al. 2017, "Efficient Processing of Deep Neural Networks", table II.
TEST(Zoo, AlexNetIsTheOneOfThePaper) {
  const auto net = *build("alexnet");
  EXPECT_EQ(net.parameter_count(), 60'965'224);
  EXPECT_EQ(macs(net), 724'406'816);
}

// 109,514,298: BertForMaskedLM of the published bert-base-uncased (Devlin et al.: "110M"). Forward FLOPs of
// the encoder at 128 tokens: 22.5e9, Sun et al. 2020, "MobileBERT", table 4, there with the elementwise work.
TEST(Zoo, BertIsTheBaseModel) {
  const auto net = *build("bert");
  EXPECT_EQ(net.parameter_count(), 109'514'298);
  const int64_t head = int64_t{128} * 768 * (768 + 30522);
  EXPECT_NEAR(static_cast<double>(2 * (macs(net) - head)), 22.5e9, 0.2e9);
}

// Zaremba et al. name the sizes alone; "20M" is in Merity et al. 2016, "Pointer Sentinel Mixture Models",
// table 2.
TEST(Zoo, LstmLanguageModelIsTheMediumOne) {
  EXPECT_EQ(build("lstm_lm")->parameter_count(), 19'775'200);
  EXPECT_EQ(build("lstm_lm_tied")->parameter_count(), 19'775'200 - 650 * 10'000);
  EXPECT_EQ(macs(*build("lstm_lm")), int64_t{35} * (2 * 4 * 650 * (650 + 650) + 650 * 10'000));
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
