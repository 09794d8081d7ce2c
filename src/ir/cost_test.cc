#include "ir/cost.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "ir/text.h"

namespace bakeoff::ir {
namespace {

TEST(StepCost, CountsTwoFlopsPerMultiplyAccumulateAndNoInputGradientAtTheFirstLayer) {
  const auto w = parse(R"(workload mlp(x: f32[N,100], y: i32[N]) {
    h1 = linear(x; weight=fc1.weight[128,100], bias=fc1.bias[128])
    h2 = relu(h1)
    logits = linear(h2; weight=fc2.weight[10,128], bias=fc2.bias[10])
    loss = softmax_cross_entropy(logits, y)
  })");
  ASSERT_TRUE(w);
  const Cost cost = *step_cost(*w, Optimizer{.kind = OptimizerKind::kAdam}, 50);
  EXPECT_EQ(cost.flops_forward, 2 * 50 * (100 * 128 + 128 * 10));
  EXPECT_EQ(cost.flops_backward, 2 * 50 * (100 * 128 + 2 * 128 * 10));
  EXPECT_EQ(cost.bytes_optimizer, 28 * (100 * 128 + 128 + 1280 + 10));
}

TEST(StepCost, ConvolutionFollowsTheFormulaPerGroup) {
  const auto w = parse(R"(workload c(x: f32[N,8,10,10], t: f32[N,12,5,5]) {
    h = conv2d(x; weight=c.weight[12,4,3,3]) stride=2,2 pad=1,1,1,1 groups=2
    loss = mse(h, t)
  })");
  ASSERT_TRUE(w) << w.error().text();
  // 2 N Ho Wo Co (Ci/g) Kh Kw
  EXPECT_EQ(step_cost(*w, Optimizer{}, 3)->flops_forward, 2 * 3 * 5 * 5 * 12 * 4 * 3 * 3);
}

TEST(StepCost, FrozenWeightsHaveNoGradient) {
  const auto cost = [](const char* weight, const char* bias) {
    return *step_cost(
        *parse(std::string("workload w(x: f32[N,6], y: f32[N,3]) {\n  a = linear(x; weight=a[4,6])\n"
                           "  b = linear(a; weight=b[3,4]") +
               weight + ", bias=c[3]" + bias + ")\n  loss = mse(b, y)\n}"),
        Optimizer{}, 1);
  };
  const Cost all = cost("", ""), bias = cost(" frozen", ""), none = cost(" frozen", " frozen");
  EXPECT_EQ(all.flops_backward - bias.flops_backward, 2 * 3 * 4);
  EXPECT_EQ(bias.flops_backward, none.flops_backward) << "a bias is a sum";
  EXPECT_EQ(all.bytes_backward - none.bytes_backward, 4 * (3 * 4 + 3));
}

TEST(CostByOp, KindsAddUpToTheStepWithoutTheOptimizer) {
  const auto w = parse(R"(workload mlp(x: f32[N,100], y: i32[N]) {
    h1 = linear(x; weight=fc1.weight[128,100], bias=fc1.bias[128])
    h2 = relu(h1)
    logits = linear(h2; weight=fc2.weight[10,128], bias=fc2.bias[10])
    loss = softmax_cross_entropy(logits, y)
  })");
  ASSERT_TRUE(w);
  const auto kinds = cost_by_op(*w, 50).value();
  ASSERT_EQ(kinds.size(), 3u);
  EXPECT_EQ(kinds[0].op, Op::kLinear);
  EXPECT_EQ(kinds[1].op, Op::kRelu);
  EXPECT_EQ(kinds[0].cost.flops_forward, 2 * 50 * (100 * 128 + 128 * 10)) << "both layers";
  EXPECT_EQ(kinds[1].cost.bytes_forward, 2 * 4 * 50 * 128);
  Cost sum;
  for (const OpCost& kind : kinds) {
    sum.flops_forward += kind.cost.flops();
    sum.bytes_forward += kind.cost.bytes();
  }
  const Cost step = *step_cost(*w, Optimizer{}, 50);
  EXPECT_EQ(sum.flops_forward, step.flops());
  EXPECT_EQ(sum.bytes_forward, step.bytes() - step.bytes_optimizer);
}

// Of 3 x 3 taps on 7 x 7 pixels with a frame of one, 19 of 21 a side meet a pixel; of causal keys 4 queries see 10 of 16.
TEST(NeededFlops, LeavesOutProductsOfPaddingAndOfKeysUnseen) {
  const auto needed = [](const std::string& text) {
    const auto workload = parse(text);
    EXPECT_TRUE(workload) << (workload ? "" : workload.error().text());
    const Training training{.scenario = Scenario::kPredict, .batch = 2};
    return std::pair(*needed_flops(*workload, training),
                     static_cast<double>(step_cost(*workload, training)->flops()));
  };
  const auto conv = needed(R"(workload m(x: f32[N,3,7,7], t: f32[N,5,7,7]) {
    y = conv2d(x; weight=c.weight[5,3,3,3]) pad=1,1,1,1
    loss = mse(y, t)
  })");
  EXPECT_NEAR(conv.first, conv.second * 19 * 19 / (21 * 21), 1e-6 * conv.second);
  const auto up = needed(R"(workload m(x: f32[N,3,4,4], t: f32[N,5,7,7]) {
    y = conv_transpose2d(x; weight=c.weight[3,5,3,3]) stride=2,2 pad=1,1,1,1
    loss = mse(y, t)
  })");
  EXPECT_NEAR(up.first, up.second * 10 * 10 / (12 * 12), 1e-6 * up.second);
  const auto attention = needed(R"(workload m(q: f32[N,4,2,8], t: f32[N,4,2,8]) {
    y = attention(q, q, q) causal=true
    loss = mse(y, t)
  })");
  EXPECT_NEAR(attention.first, attention.second * 10 / 16, 1e-6 * attention.second);
}

TEST(StepCost, AttentionHasTwoProductsAndTheirFourGradients) {
  const auto w = parse(R"(workload a(x: f32[N,6,8], t: f32[N,6,2,4]) {
    h = linear(x; weight=p.weight[8,8])
    q = reshape(h) shape=N,6,2,4
    y = attention(q, q, q)
    loss = mse(y, t)
  })");
  ASSERT_TRUE(w) << w.error().text();
  const int64_t products = 2 * 6 * 6 * 8, projection = 6 * 8 * 8;
  const Cost cost = *step_cost(*w, Optimizer{}, 3);
  EXPECT_EQ(cost.flops_forward, 2 * 3 * (projection + products));
  EXPECT_EQ(cost.flops_backward, 2 * 3 * (projection + 2 * products));
}

TEST(StepCost, LstmMultipliesInputsAndStatesAtEveryPlace) {
  const auto w = parse(R"(workload l(x: f32[N,7,3], t: f32[N,7,5]) {
    h = lstm(x; weight_ih=l.a[20,3], weight_hh=l.b[20,5])
    loss = mse(h, t)
  })");
  ASSERT_TRUE(w) << w.error().text();
  EXPECT_EQ(step_cost(*w, Optimizer{}, 2)->flops_forward, 2 * 2 * 7 * 20 * (3 + 5));
}

// Every size here is allowed; their products are beyond 64 bits.
TEST(StepCost, NoStepOfMoreThanAMachineMakesIsCounted) {
  const auto large = parse(R"(workload l(x: f32[N,65536,32768], t: f32[N,65536,65536]) {
    h = linear(x; weight=l.a[65536,32768])
    loss = mse(h, t)
  })");
  const Workload rows = parse(R"(workload l(x: f32[N,32768,32768], t: f32[N,32768,65536]) {
    h = linear(x; weight=l.a[65536,32768])
    loss = mse(h, t)
  })")
                            .value();
  EXPECT_FALSE(large) << "a row of h has more than 2^31 numbers";
  EXPECT_EQ(step_cost(rows, Optimizer{}, 1)->flops_forward, int64_t{1} << 47);
  const auto beyond = step_cost(rows, Optimizer{}, 1'000'000);
  ASSERT_FALSE(beyond);
  EXPECT_THAT(beyond.error().message, ::testing::HasSubstr("a step of 1000000 rows"));
  EXPECT_FALSE(cost_by_op(rows, 1'000'000));
  Training training{.batch = 1'000'000};
  EXPECT_FALSE(needed_flops(rows, training));
  training.batch = 1;
  EXPECT_EQ(needed_flops(rows, training).value(), std::exp2(48));
}

TEST(StepCost, ALongAxisIsNotWalked) {
  const Workload w = parse(R"(workload w(x: f32[N,1,2147483647], y: f32[N,1,1073741824]) {
    h = conv1d(x; weight=a.w[1,1,1073741824])
    loss = mse(h, y)
  })")
                         .value();
  EXPECT_EQ(needed_flops(w, Training{.batch = 1}).value(), 0);
}

TEST(StepCost, OptimizerTraffic) {
  EXPECT_EQ(optimizer_bytes_per_scalar({.kind = OptimizerKind::kSgd}), 12);
  EXPECT_EQ(optimizer_bytes_per_scalar({.kind = OptimizerKind::kSgd, .momentum = 0.9}), 20);
  EXPECT_EQ(optimizer_bytes_per_scalar({.kind = OptimizerKind::kRmsprop}), 20);
  EXPECT_EQ(optimizer_bytes_per_scalar({.kind = OptimizerKind::kAdam}), 28);
}

TEST(StepCost, APredictionIsTheForwardPassAlone) {
  const Workload workload = parse(R"(workload w(x: f32[N,5], y: i32[N]) {
    h = linear(x; weight=a.weight[4,5], bias=a.bias[4])
    logits = linear(h; weight=b.weight[3,4])
    loss = softmax_cross_entropy(logits, y)
  })")
                                .value();
  Training training{.optimizer = {.kind = OptimizerKind::kAdam}, .batch = 10};
  const Cost step = step_cost(workload, training).value();
  EXPECT_EQ(step, step_cost(workload, training.optimizer, 10).value());
  training.scenario = Scenario::kPredict;
  const Cost prediction = step_cost(workload, training).value();
  EXPECT_EQ(prediction.flops(), step.flops_forward);
  EXPECT_EQ(prediction.bytes(), step.bytes_forward);
  EXPECT_LT(prediction.flops(), step.flops());
}

}  // namespace
}  // namespace bakeoff::ir
