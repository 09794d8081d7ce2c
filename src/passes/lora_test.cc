#include "passes/lora.h"

#include <gtest/gtest.h>

#include <cmath>

#include "ir/cost.h"
#include "ir/text.h"
#include "referee/evaluate.h"
#include "referee/init.h"
#include "zoo/op_cases.h"
#include "zoo/zoo.h"

namespace bakeoff::passes {
namespace {

// A layer that is called twice, one before a batch norm, one that has another ending.
constexpr const char* kBase = R"(workload net(x: f32[N,3,6], y: i32[N]) {
  a = linear(x; weight=fc.weight[6,6], bias=fc.bias[6])
  b = tanh(a)
  c = linear(b; weight=fc.weight[6,6], bias=fc.bias[6])
  m = linear(c; weight=mix[5,6])
  t = transpose(m) perm=0,2,1
  n = batch_norm(t; weight=bn.weight[5], bias=bn.bias[5], mean=bn.running_mean[5], var=bn.running_var[5])
  f = flatten(n)
  out = linear(f; weight=head.out.weight[4,15])
  loss = softmax_cross_entropy(out, y)
})";

ir::Workload base() { return *ir::parse(kBase); }

size_t id_of(const ir::Workload& w, const std::string& name) {
  const ir::ParamId id = w.find_parameter(name);
  EXPECT_GE(id, 0) << name;
  return static_cast<size_t>(id);
}

// a b, or a b^T.
tensor::Tensor product(const tensor::Tensor& a, const tensor::Tensor& b, bool turned = false) {
  const int64_t inner = a.shape[1], columns = b.shape[turned ? 0 : 1];
  tensor::Tensor made = tensor::zeros({a.shape[0], columns});
  for (int64_t r = 0; r < a.shape[0]; ++r)
    for (int64_t c = 0; c < columns; ++c)
      for (int64_t i = 0; i < inner; ++i)
        made.data[static_cast<size_t>(r * columns + c)] +=
            a.data[static_cast<size_t>(r * inner + i)] *
            b.data[static_cast<size_t>(turned ? c * inner + i : i * columns + c)];
  return made;
}

tensor::Tensor transposed(const tensor::Tensor& a) {
  tensor::Tensor made = tensor::zeros({a.shape[1], a.shape[0]});
  for (int64_t r = 0; r < a.shape[0]; ++r)
    for (int64_t c = 0; c < a.shape[1]; ++c)
      made.data[static_cast<size_t>(c * a.shape[0] + r)] = a.data[static_cast<size_t>(r * a.shape[1] + c)];
  return made;
}

void expect_near(const tensor::Tensor& a, const tensor::Tensor& b, double factor) {
  ASSERT_EQ(a.shape, b.shape);
  for (size_t i = 0; i < a.data.size(); ++i)
    EXPECT_NEAR(a.data[i], factor * b.data[i], 1e-12 * (1 + tensor::norm(a))) << i;
}

TEST(Lora, WritesTwoMatricesBesideALayer) {
  const auto made =
      lora(*ir::parse("workload w(x: f32[N,4], y: f32[N,2]) {\n  h = linear(x; weight=a.fc.weight[2,4], "
                      "bias=a.fc.bias[2])\n  h_base = relu(h)\n  loss = mse(h_base, y)\n}"),
           {.rank = 2, .alpha = 6, .targets = {"fc"}});
  ASSERT_TRUE(made) << made.error().text();
  EXPECT_EQ(ir::dump(*made), R"(workload w(x: f32[N,4], y: f32[N,2]) {
  lora_scale = constant() value=3
  h_base_2 = linear(x; weight=a.fc.weight[2,4] frozen, bias=a.fc.bias[2] frozen)
  h_lora_A = linear(x; weight=a.fc_lora_A.weight[2,4] init=0.5)
  h_lora_B = linear(h_lora_A; weight=a.fc_lora_B.weight[2,2] init=0)
  h_lora = mul(h_lora_B, lora_scale)
  h = add(h_base_2, h_lora)
  h_base = relu(h)
  loss = mse(h_base, y) reduction=mean
}
)");
  EXPECT_EQ(*ir::parse(ir::dump(*made)), *made);
  EXPECT_EQ(made->parameter_count(), 2 * 4 + 2 * 2);
  EXPECT_EQ(made->frozen_count(), 2 * 4 + 2);
}

// With alpha = rank nothing is multiplied, and running statistics are those of training.
TEST(Lora, LeavesRunningStatisticsMoving) {
  const auto made = lora(base(), {.rank = 4, .alpha = 4, .targets = {"head.*"}});
  ASSERT_TRUE(made) << made.error().text();
  EXPECT_FALSE(made->has(ir::Op::kMul));
  for (const ir::Parameter& p : made->parameters) {
    const bool moves = p.name.starts_with("bn.running") || p.name.starts_with("head.out_lora");
    EXPECT_EQ(p.frozen, !moves) << p.name;
  }
}

TEST(Lora, StartsAsTheNetworkThatItWas) {
  const auto made = lora(base(), {.rank = 3, .alpha = 9, .targets = {"fc", "mix", "out"}});
  ASSERT_TRUE(made) << made.error().text();
  tensor::Rng rng(1, "lora");
  const auto inputs = zoo::random_inputs(base(), 4, rng);
  const auto before = referee::initial_weights(base(), 5), after = referee::initial_weights(*made, 5);
  EXPECT_EQ(referee::evaluate(*made, after, inputs, {})->loss,
            referee::evaluate(base(), before, inputs, {})->loss);
  const tensor::Tensor& a = after[id_of(*made, "head.out_lora_A.weight")];
  const double limit = 1 / std::sqrt(15.0),
               most = std::abs(*std::ranges::max_element(a.data, {}, [](double v) { return std::abs(v); }));
  EXPECT_LE(most, limit);
  EXPECT_GT(most, 0.9 * limit);
  EXPECT_EQ(tensor::norm(after[id_of(*made, "head.out_lora_B.weight")]), 0);
  // The gate moves B away from zero: else no gradient of A would be proven.
  const auto moved = referee::perturbed(*made, after, 1);
  EXPECT_GT(tensor::norm(moved[id_of(*made, "head.out_lora_B.weight")]), 0.1);
  const auto e = referee::evaluate(*made, moved, inputs, {});
  EXPECT_GT(tensor::norm(e->gradients[id_of(*made, "head.out_lora_A.weight")]), 1e-6);
}

// W + s B A in place of W: the same loss, dB = s dW A^T and dA = s B^T dW.
TEST(Lora, ComputesWhatMergedWeightsCompute) {
  const double scale = 5.0 / 3;
  const auto made = lora(base(), {.rank = 3, .alpha = 5, .targets = {"fc", "mix", "out"}});
  ASSERT_TRUE(made) << made.error().text();
  for (const uint64_t seed : {1, 2, 3}) {
    tensor::Rng rng(seed, "lora");
    const auto inputs = zoo::random_inputs(*made, 4, rng);
    const auto weights = zoo::random_weights(*made, rng);
    const ir::Workload plain = base();
    referee::Weights merged;
    for (const ir::Parameter& p : plain.parameters) merged.push_back(weights[id_of(*made, p.name)]);
    const std::pair<const char*, const char*> layers[] = {
        {"fc.weight", "fc"}, {"mix", "mix"}, {"head.out.weight", "head.out"}};
    const auto small = [&](const char* layer, const char* which) {
      return id_of(*made, std::string(layer) + which);
    };
    for (const auto& [name, layer] : layers) {
      const tensor::Tensor ba =
          product(weights[small(layer, "_lora_B.weight")], weights[small(layer, "_lora_A.weight")]);
      tensor::Tensor& w = merged[id_of(plain, name)];
      for (size_t i = 0; i < w.data.size(); ++i) w.data[i] += scale * ba.data[i];
    }
    const auto one = referee::evaluate(*made, weights, inputs, {}),
               whole = referee::evaluate(plain, merged, inputs, {});
    ASSERT_TRUE(one && whole);
    EXPECT_NEAR(one->loss, whole->loss, 1e-13 * whole->loss);
    for (const auto& [name, layer] : layers) {
      SCOPED_TRACE(name);
      const tensor::Tensor& dw = whole->gradients[id_of(plain, name)];
      const size_t a = small(layer, "_lora_A.weight"), b = small(layer, "_lora_B.weight");
      expect_near(one->gradients[b], product(dw, weights[a], true), scale);
      expect_near(one->gradients[a], product(transposed(weights[b]), dw), scale);
    }
    for (const char* frozen : {"fc.weight", "fc.bias", "mix", "bn.weight"})
      EXPECT_TRUE(one->gradients[id_of(*made, frozen)].data.empty()) << frozen;
  }
}

// Against central differences, in a network of attention, tied tables and norms.
TEST(Lora, GradientsOfABertAreThoseOfDifferences) {
  const auto made = lora(*zoo::build("bert_small"),
                         {.rank = 4, .alpha = 8, .targets = {"query", "encoder.?.attention.value.weight"}});
  ASSERT_TRUE(made) << made.error().text();
  EXPECT_EQ(made->parameter_count(), 4 * 2 * (64 * 4));
  tensor::Rng rng(3, "bert");
  auto weights = zoo::random_weights(*made, rng);
  const auto inputs = zoo::random_inputs(*made, 2, rng);
  const auto e = referee::evaluate(*made, weights, inputs, {});
  ASSERT_TRUE(e) << e.error().text();
  for (const char* name :
       {"encoder.0.attention.query_lora_A.weight", "encoder.1.attention.value_lora_B.weight"}) {
    const size_t id = id_of(*made, name);
    for (const size_t i : {0, 77, 255}) {
      const double kept = weights[id].data[i], step = 1e-5;
      const auto loss_at = [&](double value) {
        weights[id].data[i] = value;
        return referee::evaluate(*made, weights, inputs, {.gradients = false})->loss;
      };
      const double slope = (loss_at(kept + step) - loss_at(kept - step)) / (2 * step);
      weights[id].data[i] = kept;
      EXPECT_NEAR(e->gradients[id].data[i], slope, 1e-7 * (1 + tensor::norm(e->gradients[id])))
          << name << " " << i;
    }
  }
}

TEST(Lora, CostsNoGradientOfWhatIsFrozen) {
  const auto plain = base(), made = *lora(base(), {.rank = 2, .alpha = 2, .targets = {"out"}});
  const ir::Optimizer adam{.kind = ir::OptimizerKind::kAdam};
  const ir::Cost before = *ir::step_cost(plain, adam, 1), after = *ir::step_cost(made, adam, 1);
  const int64_t small = 2 * (15 * 2 + 2 * 4);
  EXPECT_EQ(after.flops_forward, before.flops_forward + small);
  EXPECT_EQ(after.flops_backward, small + 2 * 2 * 4) << "A and B, and through B";
  EXPECT_EQ(after.bytes_optimizer, 28 * (15 * 2 + 2 * 4));
}

struct Refused {
  const char* what;
  std::string text;
  Lora options;
  const char* message;
  const char* remedy;
};

constexpr const char* kMixed =
    "workload m(x: f32[N,1,4,4], t: i32[N,3], y: i32[N]) {\n"
    "  c = conv2d(x; weight=conv.weight[2,1,3,3]) pad=1,1,1,1\n  f = flatten(c)\n  e = embedding(t; weight=words[9,4])\n"
    "  g = flatten(e)\n  j = concat(f, g) axis=1\n  h = linear(j; weight=fc1.weight[4,44])\n"
    "  z = linear(h; weight=words[9,4])\n  loss = softmax_cross_entropy(z, y)\n}";
constexpr const char* kSquare =
    "workload s(x: f32[N,4], y: f32[N,4]) {\n  w = parameter(; weight=q[4,4])\n  a = linear(x; weight=q[4,4])\n"
    "  r = reshape(a) shape=N,1,4\n  v = reshape(w) shape=1,4,4\n  b = matmul(r, v)\n  f = flatten(b)\n  loss = mse(f, y)\n}";
constexpr const char* kBare =
    "workload b(x: f32[N,4], y: f32[N,4]) {\n  s = parameter(; weight=s[1,4])\n  a = mul(x, s)\n"
    "  loss = mse(a, y)\n}";
constexpr const char* kAlike =
    "workload a(x: f32[N,4], y: f32[N,4]) {\n  a = linear(x; weight=fc[4,4])\n"
    "  b = linear(a; weight=fc.weight[4,4])\n  loss = mse(b, y)\n}";

TEST(Lora, RefusesWithKeyAndRemedy) {
  const std::string twice = ir::dump(*lora(base(), {.rank = 2, .alpha = 2, .targets = {"fc"}}));
  const Refused cases[] = {
      {"no rank", kBase, {0, 8, {"fc"}}, "lora.rank cannot be 0", "1 or more"},
      {"a negative alpha", kBase, {2, -8, {"fc"}}, "lora.alpha cannot be -8", "above 0"},
      {"an alpha that is no number", kBase, {2, NAN, {"fc"}}, "lora.alpha cannot be nan", "above 0"},
      {"no targets", kBase, {2, 8, {}}, "lora.targets is empty", "name layers"},
      {"a slip",
       kBase,
       {2, 8, {"fcc"}},
       "'fcc' of lora.targets names no linear layer of 'net'",
       "did you mean 'fc'?"},
      {"no such layer", kBase, {2, 8, {"fc", "q_proj"}}, "'q_proj' of lora.targets", "one of: fc, mix, out"},
      {"a part of a name", kBase, {2, 8, {"ut"}}, "names no linear layer", "mean 'out'?"},
      {"a bias", kBase, {2, 8, {"fc.bias"}}, "names no linear layer", "fc"},
      {"a norm", kBase, {2, 8, {"bn"}}, "names no linear layer", "one of"},
      {"nothing", kBase, {2, 8, {""}}, "'' of lora.targets names no linear layer", "one of"},
      {"too high a rank",
       kBase,
       {5, 8, {"out"}},
       "lora.rank = 5 is above the rank that 'head.out.weight', 4 by 15",
       "set lora.rank to 4 or less"},
      {"a convolution",
       kMixed,
       {2, 8, {"conv"}},
       "names 'conv.weight', which is the weight of conv2d",
       "one of: fc1"},
      {"everything", kMixed, {2, 8, {"*"}}, "'*' of lora.targets names 'conv.weight'", "linear layers"},
      {"a tied table",
       kMixed,
       {2, 8, {"words"}},
       "'words', which is the weight of embedding and of a linear layer",
       "of their own"},
      {"a matrix read in two ways",
       kSquare,
       {2, 8, {"q"}},
       "the weight of parameter and of a linear layer",
       "no linear"},
      {"names that differ by their ending", kAlike, {2, 8, {"fc"}}, "two weights of a layer 'fc'", "rename"},
      {"LoRA twice", twice, {2, 8, {"out"}}, "'net' has LoRA already: 'fc_lora_A.weight'", "remove [lora]"},
      {"no linear layer at all", kBare, {2, 8, {"s"}}, "names no linear layer of 'b'", "remove [lora]"},
  };
  for (const Refused& c : cases) {
    SCOPED_TRACE(c.what);
    const auto workload = ir::parse(c.text);
    ASSERT_TRUE(workload) << workload.error().text();
    const auto made = lora(*workload, c.options);
    ASSERT_FALSE(made);
    EXPECT_NE(made.error().message.find(c.message), std::string::npos) << made.error().text();
    EXPECT_NE(made.error().remedy.find(c.remedy), std::string::npos) << made.error().text();
  }
}

}  // namespace
}  // namespace bakeoff::passes
