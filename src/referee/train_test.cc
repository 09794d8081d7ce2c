#include "referee/train.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "ir/text.h"
#include "referee/init.h"
#include "zoo/op_cases.h"
#include "zoo/zoo.h"

namespace bakeoff::referee {
namespace {

TEST(Train, FollowsTheClosedFormOfALine) {
  // loss (w x - t)^2 with x = 2, t = 3: w - 1.5 shrinks by 1 - 2 lr x^2 at every step.
  const auto w = *ir::parse(
      "workload w(x: f32[N,1], t: f32[N,1]) {\n p = linear(x; weight=w[1,1])\n loss = mse(p, t)\n}");
  const std::vector<Inputs> batches(7, {tensor::Tensor{{1, 1}, {2}}, tensor::Tensor{{1, 1}, {3}}});
  const auto run = train(w, {.kind = ir::OptimizerKind::kSgd, .lr = 0.05}, {{{1, 1}, {5}}}, batches);
  ASSERT_TRUE(run);
  ASSERT_EQ(run->losses.size(), 7u);
  for (size_t k = 0; k < 7; ++k) {
    EXPECT_NEAR(run->losses[k], std::pow(2 * 3.5 * std::pow(0.6, k), 2), 1e-12);
  }
  EXPECT_NEAR(run->weights[0].data[0], 1.5 + 3.5 * std::pow(0.6, 7), 1e-13);
}

TEST(Train, CarriesTheRunningStatisticsOfTheChosenForm) {
  const auto w = *zoo::build("mlp_deep");
  tensor::Rng rng(1);
  std::vector<Inputs> batches;
  for (int k = 0; k < 3; ++k) batches.push_back(zoo::random_inputs(w, 8, rng));
  const Weights start = initial_weights(w, 1);
  const auto unbiased = train(w, {.kind = ir::OptimizerKind::kAdam}, start, batches);
  const auto biased = train(w, {.kind = ir::OptimizerKind::kAdam}, start, batches,
                            {.running_variance = VarianceForm::kBiased});
  ASSERT_TRUE(unbiased && biased);
  EXPECT_EQ(unbiased->losses, biased->losses) << "training reads batch statistics only";
  const auto var = static_cast<size_t>(w.find_parameter("bn1.running_var"));
  const auto mean = static_cast<size_t>(w.find_parameter("bn1.running_mean"));
  const double kept = std::pow(0.9, 3);  // of the initial 1
  const double a = biased->weights[var].data[0] - kept, b = unbiased->weights[var].data[0] - kept;
  EXPECT_NEAR(b / a, 8.0 / 7, 1e-12);
  EXPECT_EQ(unbiased->weights[mean], biased->weights[mean]);
  EXPECT_NE(unbiased->weights[mean], start[mean]);
}

TEST(Train, EndsWhereItIsAskedTo) {
  const auto w = *zoo::build("mlp_deep");
  tensor::Rng rng(2);
  const std::vector<Inputs> batches(3, zoo::random_inputs(w, 4, rng));
  size_t steps = 0;
  const TrainOptions options{.watch = [&](size_t, const Evaluation&) { ++steps; },
                             .stop = [&] { return steps == 2; }};
  const auto run = train(w, {.kind = ir::OptimizerKind::kSgd}, initial_weights(w, 1), batches, options);
  ASSERT_FALSE(run);
  EXPECT_EQ(run.error().message, "interrupted");
  EXPECT_EQ(steps, 2u);
}

TEST(Train, DrawsNewDropoutMasksAtEveryStep) {
  const auto w = *zoo::build("mlp_deep");
  tensor::Rng rng(2);
  const std::vector<Inputs> batches(3, zoo::random_inputs(w, 16, rng));
  const ir::Optimizer still{.kind = ir::OptimizerKind::kSgd, .lr = 0};
  const auto off = train(w, still, initial_weights(w, 1), batches);
  EXPECT_EQ(off->losses[0], off->losses[1]);
  const auto on = train(w, still, initial_weights(w, 1), batches, {.dropout_seed = 3});
  EXPECT_NE(on->losses[0], on->losses[1]);
  EXPECT_NE(on->losses[1], on->losses[2]);
}

TEST(Train, LearnsARuleFromItsSamples) {
  const auto w = *zoo::build("mlp_small");
  tensor::Rng rng(4);
  Inputs inputs = zoo::random_inputs(w, 64, rng);
  const auto& x = std::get<tensor::Tensor>(inputs[0]);
  auto& y = std::get<tensor::IntTensor>(inputs[1]);
  for (size_t r = 0; r < 64; ++r) y.data[r] = x.data[r * 100] > 0 ? 1 : 0;
  const std::vector<Inputs> batches(30, inputs);
  const auto run = train(w, {.kind = ir::OptimizerKind::kAdam, .lr = 3e-3}, initial_weights(w, 1), batches);
  ASSERT_TRUE(run);
  EXPECT_LT(run->losses.back(), 0.05 * run->losses.front());
}

TEST(Train, ReportsABadBatch) {
  const auto w = *zoo::build("mlp_small");
  tensor::Rng rng(5);
  std::vector<Inputs> batches(2, zoo::random_inputs(w, 4, rng));
  std::get<tensor::IntTensor>(batches[1][1]).data[3] = 10;
  const auto run = train(w, {}, initial_weights(w, 1), batches);
  ASSERT_FALSE(run);
  EXPECT_THAT(run.error().text(), ::testing::HasSubstr("input 'y', row 3: 10 is outside 0..9"));
}

}  // namespace
}  // namespace bakeoff::referee
