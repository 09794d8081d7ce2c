#include "reference/dropout.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "data/inputs.h"
#include "ir/builder.h"
#include "ir/text.h"
#include "plan/lane.h"
#include "plan/testing.h"
#include "reference/reference.h"
#include "tensor/rng.h"

namespace bakeoff {
namespace {

using testing::TestFolder;

constexpr int64_t kBatch = 20;

ir::Workload network(double first, double second, const char* reduction = "mean") {
  const auto text = fmt::format(R"(workload drop(x: f32[N,20], y: i32[N]) {{
  h1 = linear(x; weight=fc1.weight[32,20], bias=fc1.bias[32])
  h2 = relu(h1)
  h3 = dropout(h2) rate={}
  h4 = linear(h3; weight=fc2.weight[24,32], bias=fc2.bias[24])
  h5 = tanh(h4)
  h6 = dropout(h5) rate={}
  logits = linear(h6; weight=fc3.weight[5,24], bias=fc3.bias[5])
  loss = softmax_cross_entropy(logits, y) reduction={}
}}
)",
                                first, second, reduction);
  auto workload = ir::parse(text);
  EXPECT_TRUE(workload) << (workload ? "" : workload.error().text());
  return std::move(*workload);
}

class GateDropoutTest : public ::testing::Test {
 protected:
  void SetUp() override {
    job_.workload = network(0.3, 0.5);
    job_.training.batch = kBatch;
    job_.rows = 40;
    job_.data = folder_ / "data.safetensors";
    job_.folder = folder_.path();
    ASSERT_TRUE(testing::write_random_data(job_.workload, job_.rows, 3, job_.data));
    auto reference = make_reference(job_);
    ASSERT_TRUE(reference) << reference.error().text();
    reference_ = std::move(*reference);
    ASSERT_TRUE(has_dropout(job_.workload));
    ASSERT_FALSE(reference_.dropout.data.empty());
  }

  // The referee as a contender that runs `workload` with masks of its own.
  DropoutSteps referee(const ir::Workload& workload, uint64_t seed) {
    return [this, &workload, seed, step = uint64_t{0}](int64_t count) mutable -> Result<DropoutStep> {
      TRY(const auto inputs, read_inputs(workload, reference_.dropout.data, 1, 0, count));
      TRY(auto e, referee::evaluate(workload, reference_.weights, inputs,
                                    {.dropout = referee::DropoutMasks{.seed = seed, .step = step++}}));
      return DropoutStep{std::move(e.prediction), e.loss, std::move(e.gradients),
                         std::move(e.running.biased)};
    };
  }
  ParityCheck compare(const DropoutSteps& steps) {
    explanation_.clear();
    const auto check =
        compare_dropout(job_, reference_.dropout, steps, /*unbiased_variance=*/false, explanation_);
    EXPECT_TRUE(check) << check.error().text();
    return *check;
  }
  // A right contender whose steps are changed before they are looked at.
  ParityCheck changed(const std::function<void(DropoutStep&, int64_t count)>& change) {
    return compare([&, steps = referee(job_.workload, 77)](int64_t count) mutable -> Result<DropoutStep> {
      TRY(auto step, steps(count));
      change(step, count);
      return step;
    });
  }

  TestFolder folder_;
  GateJob job_;
  Reference reference_;
  std::string explanation_;
};

TEST_F(GateDropoutTest, OtherMasksOfTheRecipeAreNeverRefused) {
  double largest = 0;
  for (uint64_t seed = 1000; seed < 1040; ++seed) {
    const ParityCheck check = compare(referee(job_.workload, seed));
    EXPECT_TRUE(check.passed) << "seed " << seed << ": " << check.tensor << " " << check.error;
    largest = std::max(largest, check.error / check.tolerance);
  }
  EXPECT_GT(largest, 0.2) << "what is compared is random";
  EXPECT_LT(largest, 0.85) << "far from the limit";
}

TEST_F(GateDropoutTest, ALossThatIsASumIsComparedLikeAMean) {
  job_.workload = network(0.3, 0.5, "sum");
  reference_ = make_reference(job_).value();
  for (uint64_t seed = 1000; seed < 1010; ++seed)
    EXPECT_TRUE(compare(referee(job_.workload, seed)).passed) << seed;
  const ParityCheck check = changed([](DropoutStep& step, int64_t) { step.loss *= 1.2; });
  EXPECT_FALSE(check.passed);
  EXPECT_EQ(check.tensor, "dropout: loss");
}

TEST_F(GateDropoutTest, OtherRatesAreRefused) {
  for (const auto& [first, second] :
       {std::pair{0.0, 0.5}, {0.3, 0.0}, {0.2, 0.5}, {0.4, 0.5}, {0.3, 0.45}, {0.5, 0.3}, {0.3, 0.55}}) {
    const auto other = network(first, second);
    const ParityCheck check = compare(referee(other, 5));
    EXPECT_FALSE(check.passed) << first << " and " << second << ": " << check.tensor << " " << check.error;
    EXPECT_NE(explanation_, "");
  }
}

TEST_F(GateDropoutTest, MasksThatRepeatAreRefused) {
  const auto other = job_.workload;
  auto one = referee(other, 5)(kBatch);
  ASSERT_TRUE(one);
  const ParityCheck check = changed([&](DropoutStep& step, int64_t count) {
    if (count == kBatch) step = *one;
  });
  EXPECT_FALSE(check.passed);
  EXPECT_EQ(explanation_, "two training steps drew the same masks");
}

TEST_F(GateDropoutTest, ALossDividedByAFixedBatchSizeChangesNothingOfSingleRows) {
  const ParityCheck check = changed([&](DropoutStep& step, int64_t count) {
    if (count > 1) return;
    step.loss /= kBatch;
    for (auto& g : step.gradients) {
      for (double& x : g.data) x /= kBatch;
    }
  });
  EXPECT_TRUE(check.passed) << check.tensor;
}

TEST_F(GateDropoutTest, AStepThatTakesNoSingleRowIsJudgedByWholeBatches) {
  auto steps = referee(job_.workload, 9);
  const ParityCheck check = compare([&](int64_t count) -> Result<DropoutStep> {
    if (count == 1) return Error{"a batch of 20 is needed"};
    return steps(count);
  });
  EXPECT_TRUE(check.passed) << check.tensor;
}

// A softmax takes no notice of what is added to all keys: that bias has no gradient but rounding.
TEST_F(GateDropoutTest, AGradientThatIsRoundingAloneIsNotLookedAt) {
  ir::Builder b("attended");
  const auto x = b.input("x", {ir::DType::kF32, {ir::kBatch, 4, 8}});
  const auto y = b.input("y", {ir::DType::kI32, {ir::kBatch}});
  using Ints = std::vector<int64_t>;
  const auto heads = [&](const char* name) {
    return b.apply(ir::Op::kReshape, {b.linear(x, name, 8)}, {{"shape", Ints{ir::kBatch, 4, 2, 4}}});
  };
  auto h = b.apply(ir::Op::kAttention, {heads("query"), heads("key"), heads("value")});
  h = b.apply(ir::Op::kReshape, {h}, {{"shape", Ints{ir::kBatch, 32}}});
  h = b.apply(ir::Op::kDropout, {h}, {{"rate", 0.1}});
  job_.workload = b.finish(b.softmax_cross_entropy(b.linear(h, "out", 3), y)).value();
  ASSERT_TRUE(testing::write_random_data(job_.workload, job_.rows, 3, job_.data));
  reference_ = make_reference(job_).value();
  const auto bias = static_cast<size_t>(job_.workload.find_parameter("key.bias"));
  ASSERT_TRUE(reference_.dropout.idle[bias]);
  tensor::Rng rng(4);
  const ParityCheck check = changed([&](DropoutStep& step, int64_t) {
    for (double& g : step.gradients[bias].data) g += 1e-8 * rng.uniform(-1, 1);
  });
  EXPECT_TRUE(check.passed) << check.tensor;
}

TEST_F(GateDropoutTest, WhatRoundingLeavesOfAZeroIsZero) {
  tensor::Rng rng(4);
  const ParityCheck check = changed([&](DropoutStep& step, int64_t) {
    double squares = 0;
    for (const tensor::Tensor& g : step.gradients) squares += tensor::norm(g) * tensor::norm(g);
    for (tensor::Tensor& g : step.gradients) {
      for (double& x : g.data) x += 1e-7 * std::sqrt(squares) * rng.uniform(-1, 1);
    }
  });
  EXPECT_TRUE(check.passed) << check.tensor;
}

TEST_F(GateDropoutTest, AHeadThatNoMaskReachesIsComparedByItsMeanAlone) {
  job_.workload = ir::parse(
                      "workload two(x: f32[N,6], y: i32[N], t: f32[N,4]) {\n"
                      "  d = dropout(x) rate=0.3\n  logits = linear(d; weight=head[3,6])\n"
                      "  beside = linear(x; weight=aux[4,6])\n  main = softmax_cross_entropy(logits, y)\n"
                      "  aux = mse(beside, t)\n  loss = add(main, aux)\n}\n")
                      .value();
  ASSERT_TRUE(testing::write_random_data(job_.workload, job_.rows, 3, job_.data));
  reference_ = make_reference(job_).value();
  const auto aux = static_cast<size_t>(job_.workload.find_parameter("aux"));
  EXPECT_TRUE(reference_.dropout.steady[aux]);
  EXPECT_FALSE(reference_.dropout.steady[1 - aux]);
  tensor::Rng rng(4);
  const auto scaled = [&](double factor) {
    return changed([&](DropoutStep& step, int64_t) {
      for (double& g : step.gradients[aux].data) g *= factor * (1 + 1e-7 * rng.uniform(-1, 1));
    });
  };
  EXPECT_TRUE(scaled(1).passed) << scaled(1).tensor;
  EXPECT_FALSE(scaled(1.2).passed);
}

// BatchNorm undoes the scale: loss, prediction and gradients are those of the recipe, its statistics are not.
TEST_F(GateDropoutTest, AScaleThatBatchNormHidesIsSeenInItsStatistics) {
  const auto behind = [](const char* more) {
    return ir::parse(fmt::format("workload drop(x: f32[N,6], y: i32[N]) {{\n"
                                 "  a = linear(x; weight=in[16,6])\n  d = dropout(a) rate=0.4\n{}"
                                 "  h = linear({}; weight=fc[12,16])\n"
                                 "  n = batch_norm(h; weight=bn.weight[12], bias=bn.bias[12], "
                                 "mean=bn.running_mean[12], var=bn.running_var[12])\n"
                                 "  logits = linear(n; weight=head[3,12])\n"
                                 "  loss = softmax_cross_entropy(logits, y)\n}}\n",
                                 more, *more ? "s" : "d"))
        .value();
  };
  job_.workload = behind("");
  ASSERT_TRUE(testing::write_random_data(job_.workload, job_.rows, 3, job_.data));
  reference_ = make_reference(job_).value();
  for (uint64_t seed = 1; seed < 20; ++seed) {
    const ParityCheck check = compare(referee(job_.workload, seed));
    EXPECT_TRUE(check.passed) << seed << ": " << check.tensor;
  }
  const ir::Workload unscaled = behind("  k = constant() value=0.6\n  s = mul(d, k)\n");
  const ParityCheck check = compare(referee(unscaled, 5));
  EXPECT_FALSE(check.passed);
  EXPECT_THAT(check.tensor, ::testing::HasSubstr("move of bn."));
  EXPECT_FALSE(changed([](DropoutStep& step, int64_t) { step.statistics = {}; }).passed);
}

// The statistics of a BatchNorm that no mask reaches vary by rounding alone.
TEST_F(GateDropoutTest, StatisticsBeforeAllDropoutAreComparedByTheirMove) {
  job_.workload =
      ir::parse(
          "workload before(x: f32[N,6], y: i32[N]) {\n  h = linear(x; weight=in[16,6])\n"
          "  n = batch_norm(h; weight=bn.weight[16], bias=bn.bias[16], mean=bn.running_mean[16], "
          "var=bn.running_var[16])\n  d = dropout(n) rate=0.4\n"
          "  logits = linear(d; weight=head[3,16])\n  loss = softmax_cross_entropy(logits, y)\n}\n")
          .value();
  ASSERT_TRUE(testing::write_random_data(job_.workload, job_.rows, 3, job_.data));
  reference_ = make_reference(job_).value();
  tensor::Rng rng(4);
  const auto rounded = [&](double factor, double rounding) {
    return changed([&](DropoutStep& step, int64_t) {
      for (size_t p = 0; p < step.statistics.size(); ++p) {
        const auto& from = reference_.weights[p].data;
        for (size_t i = 0; i < step.statistics[p].data.size(); ++i) {
          double& value = step.statistics[p].data[i];
          value = from[i] + (value - from[i]) * factor * (1 + rounding * rng.uniform(-1, 1));
        }
      }
    });
  };
  EXPECT_TRUE(rounded(1, 0).passed) << rounded(1, 0).tensor;
  EXPECT_TRUE(rounded(1, 2e-5).passed) << rounded(1, 2e-5).tensor;
  EXPECT_FALSE(rounded(1.05, 2e-5).passed);
}

TEST_F(GateDropoutTest, WhatIsNoNumberIsRefused) {
  EXPECT_FALSE(changed([](DropoutStep& step, int64_t) { step.loss = std::nan(""); }).passed);
  EXPECT_FALSE(changed([](DropoutStep& step, int64_t) { step.gradients[0].data[3] = std::nan(""); }).passed);
  EXPECT_FALSE(changed([](DropoutStep& step, int64_t) { step.gradients[0] = {}; }).passed);
  EXPECT_FALSE(changed([](DropoutStep& step, int64_t) { step.prediction.shape = {20, 5, 1}; }).passed);
}

}  // namespace
}  // namespace bakeoff
