#include "referee/init.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "ir/builder.h"
#include "zoo/zoo.h"

namespace bakeoff::referee {
namespace {

ir::Workload sample(bool extra_layer) {
  ir::Builder b("sample");
  const auto x = b.input("x", {ir::DType::kF32, {ir::kBatch, 4, 8, 8}});
  const auto ids = b.input("ids", {ir::DType::kI32, {ir::kBatch, 40}});
  const auto y = b.input("y", {ir::DType::kI32, {ir::kBatch}});
  auto h = b.conv(x, "conv", {.channels = 8, .groups = 2});
  h = b.relu(b.batch_norm(h, "bn"));
  h = b.apply(ir::Op::kFlatten, {h});
  if (extra_layer) h = b.relu(b.linear(h, "extra", 288));
  const auto table = b.apply(ir::Op::kFlatten, {b.embedding(ids, "table", 30, 16)});
  h = b.apply(ir::Op::kConcat, {h, b.layer_norm(table, "ln")});
  return *b.finish(b.softmax_cross_entropy(b.linear(h, "fc", 10), y));
}

const tensor::Tensor& of(const ir::Workload& w, const Weights& weights, const char* name) {
  return weights[static_cast<size_t>(w.find_parameter(name))];
}

double largest(const tensor::Tensor& t) {
  double top = 0;
  for (const double x : t.data) top = std::max(top, std::abs(x));
  return top;
}

TEST(InitialWeights, FollowTheirRoles) {
  const auto w = sample(false);
  const Weights weights = initial_weights(w, 5);
  const double conv = std::sqrt(6.0 / (2 * 9 + 8 * 9)), fc = std::sqrt(6.0 / (928 + 10));
  EXPECT_LE(largest(of(w, weights, "conv.weight")), conv);
  EXPECT_GT(largest(of(w, weights, "conv.weight")), 0.9 * conv);
  EXPECT_LE(largest(of(w, weights, "fc.weight")), fc);
  EXPECT_GT(largest(of(w, weights, "fc.weight")), 0.99 * fc);
  EXPECT_LE(largest(of(w, weights, "table.weight")), 0.05);
  EXPECT_GT(largest(of(w, weights, "table.weight")), 0.045);
  for (const char* name : {"conv.bias", "fc.bias", "bn.bias", "bn.running_mean", "ln.bias"}) {
    EXPECT_EQ(largest(of(w, weights, name)), 0) << name;
  }
  for (const char* name : {"bn.weight", "bn.running_var", "ln.weight"}) {
    EXPECT_EQ(of(w, weights, name), tensor::full(of(w, weights, name).shape, 1.0)) << name;
  }
}

TEST(InitialWeights, DependOnSeedAndNameAlone) {
  const auto small = sample(false), large = sample(true);
  EXPECT_EQ(initial_weights(small, 5), initial_weights(small, 5));
  EXPECT_NE(initial_weights(small, 5), initial_weights(small, 6));
  const auto a = initial_weights(small, 5), b = initial_weights(large, 5);
  EXPECT_EQ(of(small, a, "fc.weight"), of(large, b, "fc.weight"));
  EXPECT_EQ(of(small, a, "table.weight"), of(large, b, "table.weight"));
  EXPECT_NE(of(large, b, "extra.weight").data[0], of(large, b, "conv.weight").data[0]);
  // From an independent implementation: a change of the stream would change every published number.
  EXPECT_DOUBLE_EQ(of(small, a, "fc.weight").data[0] / std::sqrt(6.0 / 938), -0.5237254863881844);
}

TEST(Perturbed, MovesEveryElementALittle) {
  const auto w = sample(false);
  const Weights before = initial_weights(w, 5), after = perturbed(w, before, 1);
  EXPECT_EQ(after, perturbed(w, before, 1));
  EXPECT_NE(after, perturbed(w, before, 2));
  for (size_t p = 0; p < before.size(); ++p) {
    SCOPED_TRACE(w.parameters[p].name);
    for (size_t i = 0; i < before[p].data.size(); ++i) {
      EXPECT_NE(after[p].data[i], before[p].data[i]);
      EXPECT_LE(std::abs(after[p].data[i] - before[p].data[i]), 0.25);
      EXPECT_TRUE(w.parameters[p].role != ir::Role::kRunningVar || after[p].data[i] > 0);
    }
  }
}

TEST(Perturbed, LeavesPlacesAlone) {
  const auto w = *ir::parse(
      "workload w(x: f32[N,4], y: f32[N,2]) {\n  p = parameter(; weight=places[2] frozen)\n"
      "  i = cast(p) to=i32\n  t = take(x, i) axis=1\n  s = parameter(; weight=scale[1,2])\n"
      "  m = mul(t, s)\n  loss = mse(m, y)\n}\n");
  const Weights before = {tensor::full({2}, 3), tensor::full({1, 2}, 3)}, after = perturbed(w, before, 1);
  EXPECT_EQ(after[0], before[0]);
  EXPECT_NE(after[1], before[1]);
}

TEST(Perturbed, LeavesValuesOfTheTextAlone) {
  const char* text =
      "workload w(x: f32[N,2], y: f32[N,2]) {\n  c = parameter(; weight=c[1,2] frozen)\n  h = mul(x, c)\n"
      "  loss = mse(h, y) reduction=mean\n}\n";
  ir::Workload w = ir::parse(text, "w.ir").value();
  const Weights before = {{{1, 2}, {3, 4}}};
  EXPECT_NE(perturbed(w, before, 1), before);
  w.parameters[0].values = {3, 4};
  EXPECT_EQ(perturbed(w, before, 1), before);
}

TEST(HeldAs, KeepsFrozenTablesThatFloat32Rounds) {
  const ir::Parameter frozen{.name = "c", .shape = {2}, .frozen = true};
  EXPECT_EQ(held_as(frozen, {{2}, {0.5, 0.1}}), tensor::DType::kF64);
  EXPECT_EQ(held_as(frozen, {{2}, {0.5, static_cast<float>(0.1)}}), tensor::DType::kF32);
  EXPECT_EQ(held_as({.name = "w", .shape = {2}}, {{2}, {0.5, 0.1}}), tensor::DType::kF32);
}

TEST(Perturbed, LeavesTablesOfPlacesAlone) {
  const auto w = *ir::parse(
      "workload w(x: i32[N,4], y: f32[N,4,2]) {\n  p = embedding(x; weight=numbers[3,1] frozen)\n"
      "  f = flatten(p)\n  i = cast(f) to=i32\n  t = embedding(i; weight=table[3,2])\n  loss = mse(t, y)\n}\n");
  const Weights before = {tensor::full({3, 1}, 2), tensor::full({3, 2}, 3)}, after = perturbed(w, before, 1);
  EXPECT_EQ(after[0], before[0]);
  EXPECT_NE(after[1], before[1]);
}

}  // namespace
}  // namespace bakeoff::referee
