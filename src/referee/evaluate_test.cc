#include "referee/evaluate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "ir/op_table.h"
#include "ir/text.h"
#include "referee/dropout.h"
#include "referee/ops.h"
#include "zoo/op_cases.h"
#include "zoo/zoo.h"

namespace bakeoff::referee {
namespace {

using ::testing::HasSubstr;

ir::Workload parsed(const std::string& text) {
  auto workload = ir::parse(text);
  EXPECT_TRUE(workload) << workload.error().text();
  return *workload;
}

TEST(Referee, HasEveryOp) {
  for (const ir::OpInfo& row : ir::op_table()) EXPECT_NE(find_functions(row.op), nullptr) << row.name;
}

TEST(Referee, ComputesALineByHand) {
  const auto w = parsed(
      "workload w(x: f32[N,2], t: f32[N,1]) {\n p = linear(x; weight=l.w[1,2], bias=l.b[1])\n"
      " loss = mse(p, t)\n}");
  const auto e =
      evaluate(w, {{{1, 2}, {2, -1}}, {{1}, {0.5}}}, {Tensor{{2, 2}, {1, 2, 3, 4}}, Tensor{{2, 1}, {0, 1}}});
  ASSERT_TRUE(e);
  EXPECT_EQ(e->prediction, (Tensor{{2, 1}, {0.5, 2.5}}));
  EXPECT_DOUBLE_EQ(e->loss, (0.25 + 2.25) / 2);
  EXPECT_EQ(e->gradients[0], (Tensor{{1, 2}, {0.5 * 1 + 1.5 * 3, 0.5 * 2 + 1.5 * 4}}));
  EXPECT_EQ(e->gradients[1], (Tensor{{1}, {2.0}}));
}

TEST(Referee, SharedParametersAddUpTheirGradients) {
  const auto w = parsed(
      "workload w(x: f32[N,1], t: f32[N,1]) {\n a = linear(x; weight=s[1,1])\n"
      " b = linear(a; weight=s[1,1])\n loss = mse(b, t)\n}");
  const auto e = evaluate(w, {{{1, 1}, {3}}}, {Tensor{{1, 1}, {2}}, Tensor{{1, 1}, {8}}});
  ASSERT_TRUE(e);
  EXPECT_DOUBLE_EQ(e->loss, 100);                                 // (s^2 x - t)^2
  EXPECT_DOUBLE_EQ(e->gradients[0].data[0], 2 * 10 * 2 * 3 * 2);  // 2 (s^2 x - t) 2 s x
}

TEST(Referee, GivesAwayEachGradientOnceItIsComplete) {
  // s is read by two nodes, and l.w by two slots of one; u reaches nothing.
  const auto w = parsed(
      "workload w(x: f32[N,3,2], t: f32[N,3,2]) {\n a = linear(x; weight=s[2,2], bias=l.b[2])\n"
      " u = linear(a; weight=u[3,2])\n b = linear(a; weight=s[2,2])\n"
      " n = lstm(b; weight_ih=l.w[8,2], weight_hh=l.w[8,2])\n loss = mse(n, t)\n}");
  tensor::Rng rng(4);
  const auto weights = zoo::random_weights(w, rng);
  const auto inputs = zoo::random_inputs(w, 3, rng);
  const auto kept = evaluate(w, weights, inputs);
  ASSERT_TRUE(kept) << kept.error().text();
  Weights taken(weights.size());
  EvalOptions options;
  options.take_gradient = [&](ir::ParamId id, const Tensor& gradient) {
    auto& place = taken[static_cast<size_t>(id)];
    EXPECT_TRUE(place.data.empty()) << id;
    place = gradient;
  };
  const auto given = evaluate(w, weights, inputs, options);
  ASSERT_TRUE(given);
  EXPECT_EQ(taken, kept->gradients);
  for (const Tensor& gradient : given->gradients) EXPECT_TRUE(gradient.data.empty());
}

TEST(Referee, KeepsActivationsAndSkipsGradientsOnRequest) {
  const auto w = parsed(
      "workload w(x: i32[N,2], y: i32[N]) {\n f = reshape(x) shape=N,2,1\n"
      " e = embedding(f; weight=t[3,2])\n z = flatten(e)\n loss = softmax_cross_entropy(z, y)\n}");
  const auto e = evaluate(w, {{{3, 2}, {0, 1, 2, 3, 4, 5}}}, {IntTensor{{1, 2}, {2, 0}}, IntTensor{{1}, {1}}},
                          {.gradients = false, .activations = true});
  ASSERT_TRUE(e);
  EXPECT_TRUE(e->gradients.empty());
  ASSERT_EQ(e->activations.size(), 6u);
  EXPECT_EQ(std::get<IntTensor>(e->activations[2]), (IntTensor{{1, 2, 1}, {2, 0}}));
  EXPECT_EQ(std::get<Tensor>(e->activations[4]), (Tensor{{1, 4}, {4, 5, 0, 1}}));
  EXPECT_EQ(std::get<Tensor>(e->activations[4]), e->prediction);
}

const char kBatchNorm[] =
    "workload w(x: f32[N,1], t: f32[N,1]) {\n"
    " h = batch_norm(x; weight=b.w[1], bias=b.b[1], mean=b.m[1], var=b.v[1]) eps=0.5 momentum=0.25\n"
    " loss = mse(h, t) reduction=sum\n}";
const Weights kBatchNormWeights = {{{1}, {2}}, {{1}, {1}}, {{1}, {10}}, {{1}, {4}}};

TEST(Referee, UpdatesRunningStatisticsInBothConventions) {
  const auto w = parsed(kBatchNorm);
  const Inputs inputs = {Tensor{{3, 1}, {1, 2, 6}}, Tensor{{3, 1}, {0, 0, 0}}};
  const auto e = evaluate(w, kBatchNormWeights, inputs);
  ASSERT_TRUE(e);  // mean 3, squares 4 + 1 + 9
  EXPECT_DOUBLE_EQ(e->running.biased[2].data[0], 0.75 * 10 + 0.25 * 3);
  EXPECT_DOUBLE_EQ(e->running.unbiased[2].data[0], 0.75 * 10 + 0.25 * 3);
  EXPECT_DOUBLE_EQ(e->running.biased[3].data[0], 0.75 * 4 + 0.25 * 14 / 3);
  EXPECT_DOUBLE_EQ(e->running.unbiased[3].data[0], 0.75 * 4 + 0.25 * 14 / 2);
  EXPECT_TRUE(e->running.biased[0].data.empty());
  EXPECT_NEAR(e->prediction.data[2], 2 * 3 / std::sqrt(14.0 / 3 + 0.5) + 1, 1e-15);
}

TEST(Referee, UsesRunningStatisticsOutsideTraining) {
  const auto w = parsed(kBatchNorm);
  const Inputs inputs = {Tensor{{1, 1}, {6}}, Tensor{{1, 1}, {0}}};
  const auto e = evaluate(w, kBatchNormWeights, inputs, {.train = false});
  ASSERT_TRUE(e);
  EXPECT_NEAR(e->prediction.data[0], 2 * (6 - 10) / std::sqrt(4.5) + 1, 1e-15);
  EXPECT_TRUE(e->running.biased[2].data.empty());
  const auto one = evaluate(w, kBatchNormWeights, inputs);
  ASSERT_FALSE(one);
  EXPECT_THAT(one.error().text(), HasSubstr("h = batch_norm: one value per channel"));
}

// As TensorFlow's own sums in float32 do: 4e-5 for 177,608 squares of normal numbers.
TEST(Referee, LongSumsInFloat32LoseMoreThanOneRounding) {
  const auto w = parsed(kBatchNorm);
  constexpr int64_t kRows = 200'000;
  Tensor x{{kRows, 1}, {}};
  for (int64_t i = 0; i < kRows; ++i) x.data.push_back(std::sin(static_cast<double>(i)));
  const Inputs inputs = {x, tensor::zeros({kRows, 1})};
  const auto exact = evaluate(w, kBatchNormWeights, inputs, {.gradients = false});
  const auto rounded = evaluate(w, kBatchNormWeights, inputs, {.gradients = false, .round_to_float32 = true});
  ASSERT_TRUE(exact && rounded);
  const double variance = exact->running.biased[3].data[0] - 3;  // 3 = 0.75 * 4
  const double lost = std::abs(rounded->running.biased[3].data[0] - 3 - variance) / variance;
  EXPECT_GT(lost, 3e-6);
  EXPECT_LT(lost, 1e-3);
}

TEST(Referee, DropsWhatTheMaskSays) {
  const auto w = parsed(
      "workload w(x: f32[N,50], t: f32[N,50]) {\n l = linear(x; weight=w[50,50])\n"
      " h = dropout(l) rate=0.25\n loss = mse(h, t)\n}");
  Tensor identity = tensor::zeros({50, 50});
  for (size_t i = 0; i < 50; ++i) identity.data[i * 51] = 1;
  const Inputs inputs = {tensor::full({40, 50}, 3.0), tensor::zeros({40, 50})};
  const auto masked = evaluate(w, {identity}, inputs, {.dropout = DropoutMasks{.seed = 7, .step = 2}});
  ASSERT_TRUE(masked);
  int kept = 0;
  for (uint64_t i = 0; i < 2000; ++i) {
    const bool alive = survives(7, 2, 1, i, 0.25);
    kept += alive ? 1 : 0;
    ASSERT_DOUBLE_EQ(masked->prediction.data[i], alive ? 4.0 : 0.0);
  }
  EXPECT_NEAR(kept, 1500, 100);  // five standard deviations
  EXPECT_EQ(evaluate(w, {identity}, inputs)->prediction, std::get<Tensor>(inputs[0]));
  EXPECT_EQ(evaluate(w, {identity}, inputs, {.train = false, .dropout = DropoutMasks{7, 2}})->prediction,
            std::get<Tensor>(inputs[0]));
  EXPECT_NE(evaluate(w, {identity}, inputs, {.dropout = DropoutMasks{7, 3}})->prediction, masked->prediction);
}

TEST(Referee, DropsTheWeightsOfAttention) {
  const auto w = parsed(
      "workload w(x: f32[N,5,2,1], t: f32[N,5,2,1]) {\n"
      " h = attention(x, x, x) rate=0.25\n loss = mse(h, t)\n}");
  const Inputs inputs = {tensor::full({40, 5, 2, 1}, 3.0), tensor::zeros({40, 5, 2, 1})};
  const auto masked = evaluate(w, {}, inputs, {.dropout = DropoutMasks{.seed = 7, .step = 2}});
  ASSERT_TRUE(masked);
  // All weights are a fifth; the mask is N,heads,T,S.
  for (uint64_t n = 0; n < 40; ++n) {
    for (uint64_t t = 0; t < 5; ++t) {
      for (uint64_t head = 0; head < 2; ++head) {
        double kept = 0;
        for (uint64_t s = 0; s < 5; ++s)
          kept += survives(7, 2, 0, ((n * 2 + head) * 5 + t) * 5 + s, 0.25) ? 1 : 0;
        ASSERT_NEAR(masked->prediction.data[(n * 5 + t) * 2 + head], kept * 3.0 / 5 / 0.75, 1e-12);
      }
    }
  }
  for (const EvalOptions& off : {EvalOptions{}, EvalOptions{.train = false, .dropout = DropoutMasks{7, 2}}}) {
    const auto whole = evaluate(w, {}, inputs, off);
    ASSERT_TRUE(whole);
    for (const double x : whole->prediction.data) ASSERT_NEAR(x, 3, 1e-12);
  }
}

TEST(Referee, StaysFiniteOnHugeLogits) {
  const auto w = parsed(
      "workload w(x: f32[N,3], y: i32[N]) {\n z = linear(x; weight=w[3,3])\n"
      " loss = softmax_cross_entropy(z, y) reduction=sum\n}");
  const Weights identity = {{{3, 3}, {1, 0, 0, 0, 1, 0, 0, 0, 1}}};
  const auto e =
      evaluate(w, identity, {Tensor{{2, 3}, {1e3, -1e3, 1e3, 0, -1e3, 1}}, IntTensor{{2}, {1, 0}}});
  ASSERT_TRUE(e);
  EXPECT_NEAR(e->loss, 2000 + std::log(2.0) + std::log(1 + std::exp(1.0)), 1e-12);
  for (const double g : e->gradients[0].data) EXPECT_TRUE(std::isfinite(g));
  EXPECT_DOUBLE_EQ(e->gradients[0].data[0], 500);  // (1/2 - 0) 1e3 of the first row, 0 of the second
}

const char kCtc[] =
    "workload w(x: f32[N,4,3], y: i32[N,3]) {\n z = linear(x; weight=w[3,3])\n loss = ctc(z, y) reduction=sum\n}";
const Weights kIdentity = {{{3, 3}, {1, 0, 0, 0, 1, 0, 0, 0, 1}}};

TEST(Referee, CtcOfUniformFramesCountsPaths) {
  const auto w = parsed(kCtc);
  const auto loss = [&](std::vector<int64_t> labels) {
    return evaluate(w, kIdentity, {tensor::zeros({1, 4, 3}), IntTensor{{1, 3}, std::move(labels)}})->loss;
  };
  const double all = 4 * std::log(3.0);
  EXPECT_NEAR(loss({-1, -1, -1}), all, 1e-12);                  // blanks alone
  EXPECT_NEAR(loss({1, -1, -1}), all - std::log(10.0), 1e-12);  // where it begins and ends
  EXPECT_NEAR(loss({1, 1, -1}), all - std::log(5.0), 1e-12);    // one frame longer: 1, 1, 1 and a blank
  EXPECT_NEAR(loss({1, 2, -1}), all - std::log(15.0), 1e-12);
  EXPECT_NEAR(loss({1, 1, 2}), all, 1e-12);  // 1, blank, 1, 2
}

TEST(Referee, CtcStaysFiniteOnHugeLogits) {
  const auto w = parsed(kCtc);
  // The only path of 1 1 2 is 1, blank, 1, 2; every frame is sure of another class.
  const Tensor x{{1, 4, 3}, {1e3, 0, 0, 0, 1e3, 0, 1e3, 0, 0, 1e3, 0, 0}};
  const auto e = evaluate(w, kIdentity, {x, IntTensor{{1, 3}, {1, 1, 2}}});
  ASSERT_TRUE(e);
  EXPECT_NEAR(e->loss, 4000, 1e-9);
  for (const double g : e->gradients[0].data) EXPECT_TRUE(std::isfinite(g));
  EXPECT_TRUE(std::isnan(
      evaluate(w, kIdentity, {tensor::full({1, 4, 3}, NAN), IntTensor{{1, 3}, {1, 2, -1}}})->loss));
}

TEST(Referee, CtcRefusesRowsThatItsFramesDoNotHold) {
  const auto w = parsed(kCtc);
  const std::pair<std::vector<int64_t>, const char*> rows[] = {
      {{1, 1, 1},
       "input 'y', row 1: its labels take 5 frames, a blank between equal neighbours included, of 4"},
      {{1, -1, 2}, "input 'y', row 1: label 2 behind the padding of -1"},
      {{1, 0, 2}, "input 'y', row 1: 0 is outside 1..2 and -1"},
      {{1, 3, 2}, "input 'y', row 1: 3 is outside 1..2 and -1"},
      {{1, -2, -1}, "input 'y', row 1: -2 is outside 1..2 and -1"},
  };
  for (const auto& [row, message] : rows) {
    IntTensor y{{2, 3}, {1, 2, 1}};
    y.data.insert(y.data.end(), row.begin(), row.end());
    const auto e = evaluate(w, kIdentity, {tensor::zeros({2, 4, 3}), y});
    ASSERT_FALSE(e);
    EXPECT_THAT(e.error().text(), HasSubstr(message));
  }
}

// A computed place that does not exist: frameworks drop it, fail or read elsewhere.
TEST(Referee, PlacesBeyondTheLastOneGiveNan) {
  for (const char* op : {"gather(x, i) axis=1", "scatter_add(x, i) axis=1 size=2"}) {
    const auto w = parsed("workload w(x: f32[N,2], p: f32[N,2], t: f32[N,2]) {\n i = cast(p) to=i32\n h = " +
                          std::string(op) + "\n l = linear(h; weight=w[2,2])\n loss = mse(l, t)\n}");
    for (const double place : {1.0, 2.0, -1.0}) {
      const auto e = evaluate(w, {tensor::full({2, 2}, 1.0)},
                              {Tensor{{1, 2}, {1, 2}}, Tensor{{1, 2}, {0, place}}, tensor::zeros({1, 2})});
      ASSERT_TRUE(e) << e.error().text();
      EXPECT_EQ(std::isnan(e->loss), place != 1) << op;
    }
  }
}

TEST(Referee, PassesNanOn) {
  for (const char* op : {"relu(x)", "max_pool2d(x) kernel=2,2 stride=1,1", "gelu(x)", "softmax(x) axis=1"}) {
    const auto w = parsed("workload w(x: f32[N,1,2,2], t: f32[N,4]) {\n h = " + std::string(op) +
                          "\n f = flatten(h)\n l = linear(f; weight=w[4," + (op[0] == 'm' ? "1" : "4") +
                          "])\n loss = mse(l, t)\n}");
    Weights weights = {tensor::full(w.parameters[0].shape, 1.0)};
    const auto e = evaluate(w, weights, {Tensor{{1, 1, 2, 2}, {1, NAN, 3, 2}}, tensor::zeros({1, 4})});
    ASSERT_TRUE(e) << e.error().text();
    EXPECT_TRUE(std::isnan(e->loss)) << op;
  }
}

TEST(Referee, DoesNotDependOnTheNumberOfThreads) {
  for (const char* name : {"mnist_cnn", "residual_cnn", "mlp_deep"}) {
    SCOPED_TRACE(name);
    const auto workload = *zoo::build(name);
    tensor::Rng rng(3);
    const auto weights = zoo::random_weights(workload, rng);
    const auto inputs = zoo::random_inputs(workload, 37, rng);
    const auto one = evaluate(workload, weights, inputs, {.dropout = DropoutMasks{1, 1}, .threads = 1});
    ASSERT_TRUE(one) << one.error().text();
    for (const int threads : {2, 5}) {
      const auto many =
          evaluate(workload, weights, inputs, {.dropout = DropoutMasks{1, 1}, .threads = threads});
      EXPECT_EQ(many->loss, one->loss);
      EXPECT_EQ(many->gradients, one->gradients);
      EXPECT_EQ(many->running.unbiased, one->running.unbiased);
    }
  }
}

TEST(Referee, RefusesWhatDoesNotFit) {
  const auto w = parsed(
      "workload w(x: f32[N,2], ids: i32[N,2], y: i32[N]) {\n t = transpose(ids) perm=0,1\n"
      " e = embedding(t; weight=tab[5,1])\n f = flatten(e)\n s = add(x, f)\n"
      " loss = softmax_cross_entropy(s, y)\n}");
  const Weights weights = {tensor::zeros({5, 1})};
  const Tensor x = tensor::zeros({2, 2});
  const IntTensor ids{{2, 2}, {0, 1, 4, 2}}, y{{2}, {0, 1}};
  const auto message = [&](const Weights& given, const Inputs& inputs) {
    const auto e = evaluate(w, given, inputs);
    return e ? std::string("no error") : e.error().text();
  };
  EXPECT_EQ(message(weights, {x, ids, y}), "no error");
  EXPECT_EQ(message(weights, {x, ids, IntTensor{{2}, {0, 2}}}), "input 'y', row 1: 2 is outside 0..1");
  EXPECT_EQ(message(weights, {x, IntTensor{{2, 2}, {0, 1, 2, 5}}, y}),
            "input 'ids', row 1: 5 is outside 0..4");
  EXPECT_EQ(message(weights, {x, IntTensor{{2, 2}, {0, -1, 2, 3}}, y}),
            "input 'ids', row 0: -1 is outside 0..4");
  EXPECT_THAT(message(weights, {x, ids}), HasSubstr("has 3 inputs, got 2"));
  EXPECT_THAT(message(weights, {x, ids, IntTensor{{3}, {0, 1, 1}}}),
              HasSubstr("'y' must be i32[N] with N = 2"));
  EXPECT_THAT(message(weights, {ids, ids, y}), HasSubstr("'x' must hold floats"));
  EXPECT_THAT(message(weights, {x, x, y}), HasSubstr("'ids' must hold integers"));
  EXPECT_THAT(message(weights, {tensor::zeros({0, 2}), ids, y}), HasSubstr("'x' must be"));
  EXPECT_THAT(message(weights, {Tensor{{2, 2}, {1}}, ids, y}), HasSubstr("with 1 elements"));
  EXPECT_THAT(message({}, {x, ids, y}), HasSubstr("1 parameters, got weights for 0"));
  EXPECT_THAT(message({tensor::zeros({5})}, {x, ids, y}), HasSubstr("'tab' must be [5,1], is [5]"));
}

}  // namespace
}  // namespace bakeoff::referee
