#include "ir/verify.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ir/bounds.h"
#include "ir/op_table.h"
#include "ir/text.h"

namespace bakeoff::ir {
namespace {

// The inferred shape of value "h" of a one-node workload.
std::string shape_of(const std::string& input, const std::string& node) {
  const std::string text = "workload w(x: " + input + ", t: f32[N,1]) {\n h = " + node +
                           "\n f = flatten(h)\n p = linear(f; weight=p.w[1,SIZE])\n loss = mse(p, t)\n}";
  for (int size = 1; size < 600; ++size) {
    std::string attempt = text;
    attempt.replace(attempt.find("SIZE"), 4, std::to_string(size));
    if (const auto workload = parse(attempt)) return to_text((*infer(*workload))[2]);
  }
  return "none";
}

TEST(Infer, NeighbouringHeadsShareKeys) {
  const auto with = [](const char* keys) {
    return parse(fmt::format(
        "workload w(q: f32[N,6,4,3], k: f32[N,{}]) {{\n h = attention(q, k, k)\n loss = mse(h, q)\n}}",
        keys));
  };
  EXPECT_TRUE(with("5,2,3")) << with("5,2,3").error().text();
  ASSERT_FALSE(with("5,3,3"));
  EXPECT_NE(with("5,3,3").error().message.find("the 4 heads of q are no multiple of the 3"),
            std::string::npos);
  EXPECT_FALSE(with("5,8,3"));
}

TEST(Infer, RefusesAttentionThatDropsAllWeights) {
  const auto all =
      parse("workload w(x: f32[N,6,3,4]) {\n h = attention(x, x, x) rate=1\n loss = mse(h, x)\n}");
  ASSERT_FALSE(all);
  EXPECT_NE(all.error().message.find("rate must lie in [0, 1)"), std::string::npos) << all.error().text();
}

TEST(Infer, GivesTheShapesOfThePapers) {
  EXPECT_EQ(shape_of("f32[N,3,9,9]", "conv2d(x; weight=c[4,3,3,3])"), "f32[N,4,7,7]");
  EXPECT_EQ(shape_of("f32[N,3,9,9]", "conv2d(x; weight=c[4,3,3,3]) stride=2,1 pad=0,1,1,1"), "f32[N,4,4,9]");
  EXPECT_EQ(shape_of("f32[N,4,9,9]", "conv2d(x; weight=c[6,2,3,3]) groups=2 dilation=2,2"), "f32[N,6,5,5]");
  EXPECT_EQ(shape_of("f32[N,4,9,9]", "max_pool2d(x) kernel=3,3 stride=2,2 pad=1,1,1,1"), "f32[N,4,5,5]");
  EXPECT_EQ(shape_of("f32[N,4,9,9]", "global_avg_pool2d(x)"), "f32[N,4]");
  EXPECT_EQ(shape_of("f32[N,4,9]", "transpose(x) perm=0,2,1"), "f32[N,9,4]");
  EXPECT_EQ(shape_of("f32[N,4,9]", "reshape(x) shape=N,3,12"), "f32[N,3,12]");
  EXPECT_EQ(shape_of("f32[N,4,9]", "pad(x) pad=0,1,2,0"), "f32[N,5,11]");
  EXPECT_EQ(shape_of("f32[N,4,9]", "concat(x, x) axis=2"), "f32[N,4,18]");
  EXPECT_EQ(shape_of("i32[N,4]", "embedding(x; weight=e[50,8])"), "f32[N,4,8]");
  EXPECT_EQ(shape_of("f32[N,6,3,4]", "attention(x, x, x) causal=true window=6"), "f32[N,6,3,4]");
  EXPECT_EQ(shape_of("f32[N,6,3]", "lstm(x; weight_ih=a[20,3], weight_hh=b[20,5], bias=c[20])"),
            "f32[N,6,5]");
  EXPECT_EQ(shape_of("f32[N,6,3]", "position_embedding(x; weight=p[9,3])"), "f32[N,6,3]");
  EXPECT_EQ(shape_of("f32[N,4,5,5]", "lrn(x) size=4"), "f32[N,4,5,5]");
}

struct BadNode {
  const char* input;
  const char* node;
  const char* message;
};

TEST(Infer, RefusesWhatDoesNotFit) {
  const BadNode cases[] = {
      {"f32[N,3,9,9]", "conv2d(x; weight=c[4,2,3,3])", "takes 2 channels"},
      {"f32[N,3,9,9]", "conv2d(x; weight=c[4,3,11,3])", "does not fit into input"},
      {"f32[N,3,9,9]", "conv2d(x; weight=c[4,3,3,3], bias=b[3])", "bias must be [4]"},
      {"f32[N,3,9,9]", "conv2d(x; weight=c[4,3,3,3]) stride=0,1", "stride must be at least 1"},
      {"f32[N,3,9,9]", "conv2d(x; weight=c[4,3,3,3]) groups=2", "does not divide"},
      {"f32[N,9]", "max_pool2d(x) kernel=2,2 stride=2,2", "needs an N,C,H,W input"},
      {"f32[N,1,9,9]", "max_pool2d(x) kernel=2,2 stride=2,2 pad=2,0,0,0", "at most half the kernel"},
      {"f32[N,1,9,9]", "max_pool2d(x) stride=2,2", "attribute 'kernel' is missing"},
      {"f32[N,1,9,9]", "max_pool2d(x) kernel=2 stride=2,2", "needs 2 numbers"},
      {"f32[N,1,9,9]", "resize(x) size=4", "size needs a number for each axis after N and C"},
      {"f32[N,1,9,9]", "resize(x) size=4,0", "size must be at least 1"},
      {"f32[N,1,9,9]", "resize(x) size=4,65537", "size must be at most 65536"},
      {"f32[N,1,9,9]", "resize(x) size=4,4 coordinates=align_corners",
       "mode=nearest needs coordinates=half_pixel or asymmetric"},
      {"f32[N,4,3]", "gru(x; weight_ih=i[6,3], weight_hh=h[6,2], bias_ih=b[6])",
       "bias_ih and bias_hh come together"},
      {"f32[N,4,3]", "gru(x; weight_ih=i[6,3], weight_hh=h[7,2])", "weight_hh must be 3U,U"},
      {"f32[N,4,3]", "rms_norm(x; weight=w[4])", "weight must be [3], is [4]"},
      {"f32[N,9]", "dropout(x) rate=1", "rate must lie in [0, 1)"},
      {"f32[N,9]", "gelu(x) form=quick", "must be one of erf, tanh"},
      {"f32[N,9]", "embedding(x; weight=e[5,5])", "needs integer input"},
      {"i32[N,9]", "relu(x)", "needs float inputs"},
      {"f32[N,9]", "reshape(x) shape=3,3", "shape must start with N"},
      {"f32[N,9]", "reshape(x) shape=N,2,4", "differ in their number of elements"},
      {"f32[N,2,3]", "transpose(x) perm=1,0,2", "N first"},
      {"f32[N,2,3]", "softmax(x) axis=0", "not an axis after N"},
      {"f32[N,2,3]", "add(x)", "takes 2 input(s), got 1"},
      {"f32[N,2,3]", "batch_norm(x; weight=w[3], bias=b[3], mean=m[3], var=v[3])",
       "weight must be [2], is [3]"},
      {"f32[N,2,3]", "conv1d(x; weight=w[4,2,3,3])", "weight must be O,I,kW"},
      {"f32[N,2,3]", "conv1d(x; weight=w[4,2,5])", "kernel 5 does not fit"},
      {"f32[N,2,3]", "conv3d(x; weight=w[4,2,3,3,3])", "needs an N,C,D,H,W input"},
      {"f32[N,2,3]", "conv1d(x; weight=w[4,2,3]) stride=1,1", "needs 1 number"},
      {"f32[N,2]", "batch_norm(x; weight=w[2], bias=b[2])", "parameter 'mean' is missing"},
      {"f32[N,4,5]", "lrn(x)", "needs an N,C,H,W input"},
      {"f32[N,4,5,5]", "lrn(x) k=0", "k must be positive"},
      {"f32[N,6,3]", "position_embedding(x; weight=p[5,3])", "at least 6 rows of 3"},
      {"f32[N,6,3]", "lstm(x; weight_ih=a[20,3], weight_hh=b[20,4])", "weight_hh must be 4U,U"},
      {"f32[N,6,3]", "lstm(x; weight_ih=a[20,4], weight_hh=b[20,5])", "weight_ih must be [20,3]"},
      {"f32[N,6,3]", "attention(x, x, x)", "needs an N,T,heads,D input"},
      {"f32[N,6,3,4]", "attention(x, x)", "takes 3 to 4 inputs, got 2"},
      {"f32[N,6,3,4]", "attention(x, x, x, x)", "the last key must be i32[N]"},
      {"f32[N,6,3,4]", "attention(x, x, x) window=2",
       "a window is a number of the 6 keys of causal attention"},
      {"f32[N,6,3,4]", "attention(x, x, x) causal=true window=7", "of the 6 keys of causal attention, or 0"},
      {"f32[N,6,3,4]", "attention(x, x, x, x) causal=true window=2", "takes no last key"},
      {"i32[N,6]", "embedding(x; weight=e[5,2]) padding_idx=5", "padding_idx=5 is no row of [5,2]"},
      {"i32[N,6]", "expand(x, x) shape=N,6", "needs a float"},
  };
  for (const BadNode& c : cases) {
    SCOPED_TRACE(c.node);
    const auto result = parse(
        "workload w(x: " + std::string(c.input) + ") {\n h = " + c.node + "\n loss = mse(h, h)\n}", "f");
    ASSERT_FALSE(result);
    EXPECT_NE(result.error().message.find(c.message), std::string::npos) << result.error().text();
    EXPECT_EQ(result.error().where, "f:2");
  }
}

TEST(Infer, RefusesSizesWhoseProductsOverflow) {
  const auto refusal = [](const char* shape, const char* nodes) {
    const auto made = parse(
        fmt::format("workload w(x: f32[N,{}], t: f32[N,1]) {{\n{}\n loss = mse(p, t)\n}}", shape, nodes));
    return made ? std::string() : made.error().message;
  };
  using ::testing::HasSubstr;
  const char* const kLinear = " f = flatten(x)\n p = linear(f; weight=p.w[1,4])";
  EXPECT_THAT(refusal("4611686018427387904,4", kLinear), HasSubstr("input 'x' has the shape")) << "2^64";
  EXPECT_THAT(refusal("4", " p = linear(x; weight=p.w[4611686018427387904,4])"),
              HasSubstr("parameter 'p.w' has the shape"));
  EXPECT_THAT(refusal("1,9,9", " p = resize(x) size=65536,65536"),
              HasSubstr("more than 2147483648 numbers in a row"));
  EXPECT_THAT(refusal("3,8,8", " p = max_pool2d(x) kernel=2,2 stride=9223372036854775807,2"),
              HasSubstr("'stride' is beyond"));
}

TEST(Infer, RepeatsANumberInThePrecisionOfAFloat) {
  const auto of = [](const std::string& rows) {
    return parse("workload w(x: i32[N,6], z: f32[N,2]) {\n c = constant() value=0\n h = expand(c, " + rows +
                     ") shape=N,2\n loss = mse(h, z)\n}",
                 "f");
  };
  EXPECT_TRUE(of("z"));
  const auto refused = of("x");
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("it must be a float"), std::string::npos) << refused.error().text();
}

struct BadLosses {
  const char* nodes;  // two values h and aux, inputs y and t
  const char* message;
  int line;
};

TEST(Infer, TakesWeightedSumsOfLossesAloneAndLast) {
  const std::string head = "workload w(x: f32[N,3], y: i32[N], t: f32[N,3]) {\n h = relu(x)\n";
  const BadLosses cases[] = {
      {" z = relu(h)", "the last node must be a loss, or the sum of several", 3},
      {" a = mse(h, t)\n z = relu(h)\n loss = mse(z, t)", "losses come last", 4},
      {" a = mse(h, t)\n b = l1(h, t)", "is no part of the last value", 3},
      {" a = mse(h, t)\n b = mse(a, a)", "a loss does not read a loss", 4},
      {" a = mse(h, t)\n loss = add(a, h)", "it adds losses alone", 4},
      {" a = mse(h, t)\n c = constant() value=2\n loss = add(a, c)", "it adds losses alone", 5},
      {" a = mse(h, t)\n loss = mul(a, a)", "multiplies a loss by a finite constant", 4},
      {" a = mse(h, t)\n c = constant() value=inf\n loss = mul(a, c)", "finite constant", 5},
      {" a = mse(h, t)\n c = constant() value=1e200\n b = mul(a, c)\n loss = mul(c, b)", "must be finite", 6},
      {" a = mse(h, t)\n c = constant() value=2", "the last node must be a loss", 4},
      {" a = softmax_cross_entropy(h, y) ignore_index=99999999", "ignore_index must lie in", 3},
  };
  for (const BadLosses& c : cases) {
    SCOPED_TRACE(c.nodes);
    const auto result = parse(head + c.nodes + "\n}", "f");
    ASSERT_FALSE(result);
    EXPECT_NE(result.error().message.find(c.message), std::string::npos) << result.error().text();
    EXPECT_EQ(result.error().where, "f:" + std::to_string(c.line));
  }
}

TEST(Losses, TermsAndOutputs) {
  const auto w = parse(
      "workload w(x: f32[N,3], y: i32[N], t: f32[N,3]) {\n"
      " h = linear(x; weight=a[3,3])\n g = linear(h; weight=b[3,3])\n k = constant() value=0.5\n"
      " main = softmax_cross_entropy(h, y) ignore_index=-1\n aux = mse(g, t)\n far = l1(g, h)\n"
      " two = add(aux, aux)\n half = mul(k, two)\n m = constant() value=-3\n minus = mul(far, m)\n"
      " all = add(main, half)\n loss = add(all, minus)\n}");
  ASSERT_TRUE(w) << w.error().text();
  std::vector<std::pair<std::string, double>> terms;
  for (const LossTerm& t : loss_terms(*w))
    terms.emplace_back(w->nodes[static_cast<size_t>(t.node)].output, t.weight);
  EXPECT_EQ(terms, (std::vector<std::pair<std::string, double>>{{"main", 1}, {"aux", 1}, {"far", -3}}));
  EXPECT_EQ(w->model_end(), 3);
  EXPECT_EQ(w->value_name(w->prediction()), "h");
  ASSERT_EQ(w->outputs().size(), 2);
  EXPECT_EQ(w->value_name(w->outputs()[1]), "g");
  for (const OpInfo& row : op_table())
    EXPECT_EQ(is_loss(row.op), row.op >= Op::kSoftmaxCrossEntropy) << row.name;
}

TEST(Bounds, AllowTheIgnoredLabelWhereAllReadersDo) {
  const std::string head =
      "workload w(x: i32[N,2]) {\n e = embedding(x; weight=t[9,5])\n p = linear(e; weight=p[5,5])\n";
  const auto bound = [&](const std::string& losses) {
    const auto w = parse(head + losses + "\n}");
    return w ? to_text(*row_bounds(*w, 0)[0]) : w.error().text();
  };
  EXPECT_EQ(bound("loss = softmax_cross_entropy(p, x) ignore_index=-100"),
            "0..4");  // the table has no such row
  EXPECT_EQ(bound("loss = softmax_cross_entropy(p, x) ignore_index=7"), "0..4 and 7");
  EXPECT_EQ(bound("loss = softmax_cross_entropy(p, x) ignore_index=2"), "0..4");
  EXPECT_EQ(bound("a = softmax_cross_entropy(p, x) ignore_index=7\n"
                  "b = softmax_cross_entropy(p, x) ignore_index=6\nloss = add(a, b)"),
            "0..4");
}

TEST(Infer, PlacesHaveTheAxesBeforeTheirOwn) {
  const auto message = [](const std::string& inputs, const std::string& node) {
    const auto w = parse("workload w(" + inputs + ", t: f32[N,6]) {\n h = " + node +
                         "\n f = flatten(h)\n loss = mse(f, t)\n}");
    if (w) return to_text(*row_bounds(*w, 1)[0]);
    return w.error().message;
  };
  const auto expect = [&](const std::string& inputs, const std::string& node, const std::string& part) {
    EXPECT_NE(message(inputs, node).find(part), std::string::npos) << message(inputs, node);
  };
  expect("x: f32[N,5,2], p: i32[N,3]", "gather(x, p) axis=1", "0..4");
  expect("x: f32[N,3,2], p: i32[N,3]", "scatter_add(x, p) axis=1 size=3", "0..2");
  expect("x: f32[N,2,5], p: i32[N,2,3]", "gather(x, p) axis=2", "0..4");
  expect("x: f32[N,5,2], p: i32[N,3]", "gather(x, p) axis=0", "not an axis other than N");
  expect("x: f32[N,5,2], p: i32[N,3]", "gather(x, p) axis=2", "before axis 2, and one more");
  expect("x: f32[N,2,5], p: i32[N,3,5]", "gather(x, p) axis=2", "before axis 2, and one more");
  expect("x: f32[N,5,2], p: f32[N,3]", "gather(x, p) axis=1", "needs integers as places");
  expect("x: i32[N,5,2], p: i32[N,3]", "gather(x, p) axis=1", "needs a float");
  expect("x: f32[N,5,2], p: i32[N,3]", "scatter_add(x, p) axis=1 size=3", "are not one for each");
  expect("x: f32[N,3,2], p: i32[N,3]", "scatter_add(x, p) axis=1 size=0", "at least 1");
}

struct BadCtc {
  const char* inputs;
  const char* nodes;
  const char* message;
};

TEST(Infer, CtcTakesLabelsOfItsOwn) {
  const BadCtc cases[] = {
      {"x: f32[N,4,3], y: i32[N]", " loss = ctc(x, y)", "labels must be N,L for logits [N,4,3], are [N]"},
      {"x: f32[N,4], y: i32[N,4]", " loss = ctc(x, y)", "logits must be N,T,C with at least 2 classes"},
      {"x: f32[N,4,1], y: i32[N,4]", " loss = ctc(x, y)", "logits must be N,T,C with at least 2 classes"},
      {"x: f32[N,4,3], y: f32[N,4]", " loss = ctc(x, y)", "needs float logits and integer labels"},
      {"x: f32[N,4,3], y: i32[N,4]", " z = slice(y) axis=1 begin=0 end=2\n loss = ctc(x, z)",
       "labels must be an input of the workload"},
      {"x: f32[N,4,3], y: i32[N,4]", " e = embedding(y; weight=t[3,3])\n s = add(x, e)\n loss = ctc(s, y)",
       "its labels 'y' are padded with -1, so that no other op can read them"},
  };
  for (const BadCtc& c : cases) {
    const auto result = parse(std::string("workload w(") + c.inputs + ") {\n" + c.nodes + "\n}");
    ASSERT_FALSE(result) << c.nodes;
    EXPECT_NE(result.error().message.find(c.message), std::string::npos) << result.error().text();
  }
}

TEST(Bounds, CtcHasFramesForItsLabels) {
  const auto two = parse(
      "workload w(x: f32[N,9,5], y: i32[N,4]) {\n s = slice(x) axis=1 begin=0 end=5\n"
      " k = slice(s) axis=2 begin=0 end=4\n a = ctc(x, y)\n b = ctc(k, y)\n loss = add(a, b)\n}");
  ASSERT_TRUE(two) << two.error().text();
  EXPECT_EQ(to_text(*row_bounds(*two, 1)[3]), "1..3 and -1");
  EXPECT_EQ(ctc_frames(*two, 1), 5);
  EXPECT_EQ(ctc_frames(*two, 0), std::nullopt);
  const auto misfit = [](std::vector<int64_t> row) { return ctc_misfit(row, 5); };
  EXPECT_EQ(misfit({1, 1, 1, -1}), "");
  EXPECT_EQ(misfit({-1, -1, -1, -1}), "");
  EXPECT_EQ(misfit({1, 1, 1, 2}),
            "its labels take 6 frames, a blank between equal neighbours included, of 5");
  EXPECT_EQ(misfit({-1, 2, -1, -1}), "label 2 behind the padding of -1");
  std::vector<int64_t> drawn = {1, 1, 1, 2};
  end_labels(drawn, 4, 5);
  EXPECT_EQ(drawn, (std::vector<int64_t>{1, 1, 1, -1}));
  end_labels(drawn, 1, 5);
  EXPECT_EQ(drawn, (std::vector<int64_t>{1, -1, -1, -1}));
}

}  // namespace
}  // namespace bakeoff::ir
