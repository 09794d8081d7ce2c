#include "parity/proof_variants.h"

#include <gtest/gtest.h>

#include "emit/emit.h"
#include "evidence/precision.h"
#include "plan/lane.h"

namespace bakeoff {
namespace {

TEST(GateVariants, SaysWhatTheProcessorEmulates) {
  const std::string zen4 = "avx2 fma avx512f avx512_bf16";
  EXPECT_EQ(precision_support("float32", "cpu", zen4), "");
  EXPECT_EQ(precision_support("bfloat16", "cpu", zen4),
            "this CPU has AVX512_BF16 for bfloat16; a framework that does not use it emulates");
  EXPECT_EQ(precision_support("float16+tf32", "cpu", zen4),
            "emulated: this CPU has neither AVX512_FP16 nor AMX-FP16, so float16 is converted to float32 and "
            "back");
  EXPECT_EQ(precision_support("bfloat16", "cpu", "avx2"),
            "emulated: this CPU has neither AVX512_BF16 nor AMX-BF16, so bfloat16 is converted to float32 "
            "and back");
  EXPECT_EQ(precision_support("bfloat16", "cuda:0", ""), "");
}

TEST(GateVariants, ProvesTheTwinInPlaceOfTheVariant) {
  ContenderStart plain;
  plain.script = "train_torch.py";
  EXPECT_FALSE(is_variant(plain));
  EXPECT_EQ(twin_of(plain).script, plain.script);
  ContenderStart variant = plain;
  variant.twin_script = "train_torch_float32.py";
  variant.twin_options = {{"precision", "float32"}};
  variant.worker.options = {{"precision", "bfloat16"}};
  EXPECT_TRUE(is_variant(variant));
  EXPECT_EQ(twin_of(variant).script, variant.twin_script);
  EXPECT_EQ(twin_of(variant).worker.options, variant.twin_options);
}

TEST(GateVariants, ThereIsNoTf32OnACpu) {
  const Contender tf32{.settings = {{"precision", "float16"}, {"tf32", "true"}}};
  ASSERT_TRUE(no_such_precision(tf32, "cpu:0"));
  EXPECT_EQ(no_such_precision(tf32, "cpu")->reason, "there is no TF32 on a CPU");
  EXPECT_FALSE(no_such_precision(tf32, "cuda:0"));
  EXPECT_FALSE(
      no_such_precision(Contender{.settings = {{"precision", "float16"}, {"tf32", "false"}}}, "cpu"));
}

TEST(GateVariants, FindsItsDistancesAmongTheChecks) {
  Parity parity;
  parity.checks = {{"float64 loss", "loss", 1e-15, 1e-10, true},
                   {"bfloat16 loss", "against float32", 2e-3, 0.1, true},
                   {"bfloat16 gradients", "against float32", 3e-2, 0.5, true}};
  EXPECT_EQ(loss_distance(parity), 2e-3);
  EXPECT_EQ(gradient_distance(parity), 3e-2);
  EXPECT_FALSE(gradient_distance(Parity{}));
  EXPECT_FALSE(logit_distance(parity));
  parity.checks.push_back({"bfloat16 logits", "against float32", 4e-3, 0.1, true});
  EXPECT_EQ(logit_distance(parity), 4e-3);
}

TEST(GateVariants, OfASettingsMapHaveAGroupAndATwin) {
  const emit::Settings settings = {
      {"compile", "default"}, {"precision", "float16"}, {"scaler", "true"}, {"tf32", "true"}};
  EXPECT_EQ(emit::precision_group(settings), "float16+tf32");
  EXPECT_EQ(emit::precision_group({{"compile", "off"}}), "float32");
  const emit::Settings twin = emit::float32_twin(settings);
  EXPECT_EQ(emit::precision_group(twin), "float32");
  EXPECT_EQ(twin.at("scaler"), "false");
  EXPECT_EQ(twin.at("compile"), "default");
  EXPECT_EQ(emit::float32_twin({{"donate", "true"}}), (emit::Settings{{"donate", "true"}}));
}

TEST(BatchHashes, NameTheFirstBatchThatDiffers) {
  EXPECT_TRUE(compare_batches({"a", "b"}, {"a", "b"}).passed);
  const ParityCheck other = compare_batches({"a", "b", "c"}, {"a", "c", "b"});
  EXPECT_FALSE(other.passed);
  EXPECT_EQ(other.tensor, "batch 1");
  EXPECT_FALSE(compare_batches({"a", "b"}, {"a"}).passed);
}

}  // namespace
}  // namespace bakeoff
