#include "emit/layout.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "ir/text.h"
#include "ir/verify.h"
#include "zoo/zoo.h"

namespace bakeoff::emit {
namespace {

using ir::Shape;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using Ints = std::vector<int64_t>;

struct Planned {
  ir::Workload workload;
  LayoutPlan plan;

  Order held(std::string_view value) const {
    for (int id = 0; id < workload.value_count(); ++id) {
      if (workload.value_name(id) == value) return plan.values[static_cast<size_t>(id)];
    }
    ADD_FAILURE() << "no value " << value;
    return Order::kCanonical;
  }
  const ParamLayout& param(std::string_view name) const {
    return plan.params[static_cast<size_t>(workload.find_parameter(name))];
  }
  // "value <- input" for every conversion.
  std::vector<std::string> conversions() const {
    std::vector<std::string> all;
    for (size_t n = 0; n < workload.nodes.size(); ++n) {
      const ir::Node& node = workload.nodes[n];
      for (size_t i = 0; i < node.inputs.size(); ++i) {
        if (plan.converts(workload, static_cast<int>(n), i)) {
          all.push_back(node.output + " <- " + workload.value_name(node.inputs[i]));
        }
      }
    }
    return all;
  }
};

Planned plan(const ir::Workload& workload, const LayoutOptions& options = {}) {
  return {workload, plan_layout(workload, *ir::infer(workload), options)};
}

Planned plan(const std::string& text, const LayoutOptions& options = {}) {
  const auto workload = ir::parse(text);
  EXPECT_TRUE(workload) << workload.error().text();
  return plan(*workload, options);
}

const Order kNchw = Order::kCanonical;
const Order kNhwc = Order::kChannelsLast;

TEST(Layout, AClassTokenTakesItsRowsFromAPictureAndNotItsOrder) {
  const Planned p = plan(R"(workload w(x: f32[N,3,8,8], y: i32[N]) {
  patches = conv2d(x; weight=w[6,3,4,4]) stride=4,4 pad=0,0,0,0 dilation=1,1 groups=1
  flat = reshape(patches) shape=N,6,4
  rows = transpose(flat) perm=0,2,1
  token = parameter(; weight=token[1,1,6])
  first = expand(token, x) shape=N,1,6
  all = concat(first, rows) axis=1
  normed = layer_norm(all; weight=n.weight[6], bias=n.bias[6]) dims=1 eps=1e-06
  one = slice(normed) axis=1 begin=0 end=1 step=1
  logits = flatten(one)
  loss = softmax_cross_entropy(logits, y) reduction=mean label_smoothing=0
}
)");
  EXPECT_EQ(p.held("x"), kNhwc);
  for (const char* value : {"first", "rows", "all"}) EXPECT_EQ(p.held(value), kNchw) << value;
  EXPECT_EQ(p.held("flat"), kNhwc) << "N,4,6, as the patches lie";
  EXPECT_THAT(p.conversions(), IsEmpty());
}

// As networks of patches go back to pictures: x.transpose(1, 2).reshape(B, C, H, W).
TEST(Layout, AReshapeOfPlacesKeepsTheOrderWhereItsReadersDo) {
  const auto text = [](const std::string& reader, int width) {
    return fmt::format(R"(workload w(x: f32[N,4,6], y: i32[N,2,{1}]) {{
  turned = transpose(x) perm=0,2,1
  picture = reshape(turned) shape=N,6,2,2
  mixed = conv2d(picture; weight=w[5,6,1,1]) stride=1,1 pad=0,0,0,0 dilation=1,1 groups=1
  rows = reshape(mixed) shape=N,5,4
  {0}
  logits = reshape(back) shape=N,2,{1},5
  loss = softmax_cross_entropy(logits, y) reduction=mean label_smoothing=0
}}
)",
                       reader, width);
  };
  const Planned p = plan(text("back = transpose(rows) perm=0,2,1", 2));
  for (const char* value : {"turned", "picture", "rows"}) EXPECT_EQ(p.held(value), kNhwc) << value;
  EXPECT_THAT(p.conversions(), IsEmpty());
  // A product of matrices reads canonical rows: they are turned once, not by each reader.
  const Planned q = plan(text("back = matmul(rows, x)", 3));
  EXPECT_EQ(q.held("rows"), kNchw);
  EXPECT_THAT(q.conversions(), ElementsAre("rows <- mixed"));
}

TEST(Layout, CnnNeedsNoConversionAndPermutesTheRowsOfTheFirstLinear) {
  const Planned cnn = plan(*zoo::build("mnist_cnn"));
  EXPECT_THAT(cnn.conversions(), ElementsAre());
  EXPECT_EQ(cnn.held("x"), kNhwc);
  EXPECT_EQ(cnn.held("y"), kNchw);
  EXPECT_EQ(cnn.param("conv1.weight"), (ParamLayout{.perm = {2, 3, 1, 0}}));
  EXPECT_EQ(cnn.param("fc1.weight"),
            (ParamLayout{.view = {128, 64, 8, 8}, .perm = {2, 3, 1, 0}, .reshape = {4096, 128}}));
  EXPECT_EQ(cnn.param("fc2.weight"), (ParamLayout{.perm = {1, 0}}));
  EXPECT_TRUE(cnn.param("fc1.bias").identity());
}

TEST(Layout, ResidualAddsStayChannelsLast) {
  const Planned net = plan(*zoo::build("residual_cnn"));
  EXPECT_THAT(net.conversions(), ElementsAre());
  EXPECT_EQ(net.param("block2.down.conv.weight"), (ParamLayout{.perm = {2, 3, 1, 0}}));
  EXPECT_EQ(net.param("fc.weight"), (ParamLayout{.perm = {1, 0}}));
}

TEST(Layout, WithoutSpatialOpsEverythingIsCanonical) {
  const Planned net = plan(R"(workload w(x: f32[N,2,3,4], t: f32[N,2,3,5]) {
    h = softmax(x) axis=1
    p = linear(h; weight=fc.weight[5,4])
    loss = mse(p, t)
  })");
  EXPECT_THAT(net.conversions(), ElementsAre());
  EXPECT_EQ(net.held("x"), kNchw);
}

TEST(Layout, ConcatOfMixedOrdersConvertsTheCanonicalOne) {
  const Planned net = plan(R"(workload w(x: f32[N,3,4,4], f: f32[N,32], y: i32[N]) {
    a = conv2d(x; weight=c.weight[2,3,1,1])
    r = reshape(f) shape=N,2,4,4
    j = concat(a, r) axis=1
    g = global_avg_pool2d(j)
    loss = softmax_cross_entropy(g, y)
  })");
  EXPECT_THAT(net.conversions(), ElementsAre("j <- r"));
  EXPECT_EQ(net.held("j"), kNhwc);
  EXPECT_EQ(physical_axis(net.held("j"), 1, 4), 3);
}

TEST(Layout, InputsAreLoadedTheWayTheirOpsReadThem) {
  const Planned net = plan(R"(workload w(x: f32[N,3,4,4], m: f32[N,3,4,4], k: f32[N,2,1,1], y: i32[N]) {
    a = mul(x, m)
    b = pad(a) pad=0,0,1,1,0,0 value=0.5
    c = conv2d(b; weight=c.weight[2,3,1,1])
    d = mul(c, k)
    g = global_avg_pool2d(d)
    loss = softmax_cross_entropy(g, y)
  })");
  EXPECT_THAT(net.conversions(), ElementsAre());
  EXPECT_EQ(net.held("m"), kNhwc);
  EXPECT_EQ(net.held("k"), kNhwc);
}

TEST(Layout, CanonicalOpsGetConvertedInputs) {
  const Planned net = plan(R"(workload w(x: f32[N,3,4,4], y: i32[N]) {
    a = conv2d(x; weight=c.weight[2,3,1,1])
    n = layer_norm(a; weight=n.weight[4], bias=n.bias[4]) dims=1
    l = linear(n; weight=l.weight[4,4])
    b = conv2d(l; weight=d.weight[2,2,1,1])
    g = global_avg_pool2d(b)
    loss = softmax_cross_entropy(g, y)
  })");
  EXPECT_THAT(net.conversions(), ElementsAre("n <- a", "b <- l"));
}

TEST(Layout, TransposeAbsorbsTheOrder) {
  const Planned net = plan(R"(workload w(x: f32[N,3,4,5], y: i32[N]) {
    a = conv2d(x; weight=c.weight[2,3,1,1])
    t = transpose(a) perm=0,2,3,1
    n = layer_norm(t; weight=n.weight[2], bias=n.bias[2]) dims=1
    u = transpose(n) perm=0,3,1,2
    r = relu(u)
    b = conv2d(r; weight=d.weight[2,2,1,1])
    g = global_avg_pool2d(b)
    loss = softmax_cross_entropy(g, y)
  })");
  EXPECT_THAT(net.conversions(), ElementsAre());
  EXPECT_EQ(net.held("t"), kNchw);
  EXPECT_EQ(net.held("u"), kNhwc);
  EXPECT_TRUE(is_identity(physical_perm(kNhwc, kNchw, {0, 2, 3, 1})));
  EXPECT_TRUE(is_identity(physical_perm(kNchw, kNhwc, {0, 3, 1, 2})));
  EXPECT_EQ(physical_perm(kNhwc, kNhwc, {0, 1, 3, 2}), (Ints{0, 2, 1, 3}));
  EXPECT_EQ(physical_perm(kNchw, kNchw, {0, 2, 3, 1}), (Ints{0, 2, 3, 1}));
}

TEST(Layout, FlattenKeepsItsOrderThroughElementwiseOpsIntoLinears) {
  const Planned net = plan(R"(workload w(x: f32[N,3,2,2], y: i32[N]) {
    a = conv2d(x; weight=c.weight[4,3,1,1])
    f = reshape(a) shape=N,16
    r = relu(f)
    d = dropout(r) rate=0.5
    p = linear(d; weight=p.weight[5,16])
    q = linear(r; weight=q.weight[5,16])
    s = add(p, q)
    loss = softmax_cross_entropy(s, y)
  })");
  EXPECT_THAT(net.conversions(), ElementsAre());
  EXPECT_EQ(net.held("f"), Order::kFlatLast);
  EXPECT_EQ(net.held("d"), Order::kFlatLast);
  EXPECT_EQ(net.param("q.weight"),
            (ParamLayout{.view = {5, 4, 2, 2}, .perm = {2, 3, 1, 0}, .reshape = {16, 5}}));
}

TEST(Layout, FlattenSharedWithAnotherOpIsConverted) {
  const Planned net = plan(R"(workload w(x: f32[N,3,2,2], y: i32[N]) {
    a = conv2d(x; weight=c.weight[4,3,1,1])
    f = flatten(a)
    p = linear(f; weight=p.weight[16,16])
    s = add(p, f)
    loss = softmax_cross_entropy(s, y)
  })");
  EXPECT_THAT(net.conversions(), ElementsAre("f <- a"));
  EXPECT_EQ(net.held("f"), kNchw);
  EXPECT_EQ(net.param("p.weight"), (ParamLayout{.perm = {1, 0}}));
}

TEST(Layout, FlattenOfOnePixelOrOneChannelCostsNothing) {
  const Planned net = plan(R"(workload w(x: f32[N,3,4,4], y: i32[N]) {
    a = conv2d(x; weight=c.weight[16,3,4,4])
    b = conv2d(x; weight=d.weight[1,3,1,1])
    f = flatten(a)
    g = flatten(b)
    s = add(f, g)
    loss = softmax_cross_entropy(s, y)
  })");
  EXPECT_THAT(net.conversions(), ElementsAre());
  EXPECT_EQ(net.held("f"), kNchw);
}

TEST(Layout, PooledChannelsComeBackAsAPictureOfOnePixel) {
  const Planned net = plan(R"(workload w(x: f32[N,3,4,4], y: i32[N]) {
    a = conv2d(x; weight=c.weight[4,3,1,1])
    g = global_avg_pool2d(a)
    r = reshape(g) shape=N,4,1,1
    s = conv2d(r; weight=s.weight[4,4,1,1])
    m = mul(a, s)
    p = global_avg_pool2d(m)
    loss = softmax_cross_entropy(p, y)
  })");
  EXPECT_THAT(net.conversions(), ElementsAre());
  EXPECT_EQ(net.held("r"), Order::kChannelsLast);
}

TEST(Layout, ChannelsGoLastForNothingWhereTheyAreLast) {
  const Planned net = plan(R"(workload w(x: f32[N,3,4,4], y: i32[N]) {
    a = conv2d(x; weight=c.weight[4,3,1,1])
    t = transpose(a) perm=0,2,3,1
    n = layer_norm(t; weight=n.weight[4], bias=n.bias[4])
    b = transpose(n) perm=0,3,1,2
    s = add(a, b)
    u = transpose(s) perm=0,2,3,1
    m = layer_norm(u; weight=m.weight[4], bias=m.bias[4])
    f = flatten(m)
    loss = softmax_cross_entropy(f, y)
  })");
  EXPECT_THAT(net.conversions(), ElementsAre());
  EXPECT_EQ(net.held("b"), Order::kChannelsLast);
  EXPECT_EQ(net.held("n"), Order::kCanonical);
}

TEST(Layout, TiedLinearWeightIsPermutedOnlyWhereAllUsesAgree) {
  const std::string head = R"(workload w(x: f32[N,3,2,2], z: f32[N,16], y: i32[N]) {
    a = conv2d(x; weight=c.weight[4,3,1,1])
    b = conv2d(x; weight=d.weight[4,3,1,1])
    f = flatten(a)
    g = flatten(b)
    p = linear(f; weight=t.weight[5,16])
    q = linear(g; weight=t.weight[5,16])
  )";
  const Planned agree = plan(head + "s = add(p, q)\n loss = softmax_cross_entropy(s, y)\n}");
  EXPECT_THAT(agree.conversions(), ElementsAre());
  EXPECT_FALSE(agree.param("t.weight").view.empty());
  const Planned differ = plan(head + R"(r = linear(z; weight=t.weight[5,16])
    s = add(p, q)
    u = add(s, r)
    loss = softmax_cross_entropy(u, y)
  })");
  EXPECT_THAT(differ.conversions(), ElementsAre("f <- a", "g <- b"));
  EXPECT_EQ(differ.param("t.weight"), (ParamLayout{.perm = {1, 0}}));
}

TEST(Layout, TableOfAnEmbeddingStaysCanonical) {
  const Planned net = plan(R"(workload w(x: f32[N,3,2,2], i: i32[N], y: i32[N]) {
    e = embedding(i; weight=t.weight[5,16])
    a = conv2d(x; weight=c.weight[4,3,1,1])
    f = flatten(a)
    s = add(e, f)
    p = linear(f; weight=t.weight[5,16])
    q = linear(s; weight=t.weight[5,16])
    u = add(p, q)
    loss = softmax_cross_entropy(u, y)
  })");
  EXPECT_TRUE(net.param("t.weight").identity());
  EXPECT_THAT(net.conversions(), ElementsAre("f <- a"));
  const Planned only = plan(R"(workload w(x: f32[N,3,2,2], i: i32[N], y: i32[N]) {
    e = embedding(i; weight=t.weight[16,16])
    a = conv2d(x; weight=c.weight[4,3,1,1])
    f = flatten(a)
    p = linear(f; weight=t.weight[16,16])
    u = add(p, e)
    loss = softmax_cross_entropy(u, y)
  })");
  EXPECT_TRUE(only.param("t.weight").identity());
  EXPECT_THAT(only.conversions(), ElementsAre("f <- a"));
}

TEST(Layout, BlockingOneFlattenBlocksThoseTiedToIt) {
  // f cannot keep its order (tied to z), so u, tied to f through the second weight, cannot either.
  const Planned net = plan(R"(workload w(x: f32[N,3,2,2], z: f32[N,16], y: i32[N]) {
    a = conv2d(x; weight=c.weight[4,3,1,1])
    b = conv2d(x; weight=d.weight[4,3,1,1])
    f = flatten(a)
    u = flatten(b)
    p = linear(f; weight=t.weight[5,16])
    q = linear(z; weight=t.weight[5,16])
    v = linear(f; weight=s.weight[5,16])
    w = linear(u; weight=s.weight[5,16])
    s1 = add(p, q)
    s2 = add(v, w)
    s = add(s1, s2)
    loss = softmax_cross_entropy(s, y)
  })");
  EXPECT_THAT(net.conversions(), ElementsAre("f <- a", "u <- b"));
}

TEST(Layout, MseFollowsItsPrediction) {
  const Planned net = plan(R"(workload w(x: f32[N,3,4,4], t: f32[N,2,4,4]) {
    p = conv2d(x; weight=c.weight[2,3,1,1])
    loss = mse(p, t)
  })");
  EXPECT_THAT(net.conversions(), ElementsAre());
  EXPECT_EQ(net.held("t"), kNhwc);
  const auto json = nlohmann::json::parse(layout_json(net.workload, net.plan, {"c.weight"}));
  EXPECT_EQ(json["output"]["perm"], nlohmann::json({0, 2, 3, 1}));
}

TEST(Layout, CrossEntropyOfAPictureIsCanonical) {
  const Planned net = plan(R"(workload w(x: f32[N,3,4,4], y: i32[N,2,4]) {
    p = conv2d(x; weight=c.weight[2,3,1,1])
    loss = softmax_cross_entropy(p, y)
  })");
  EXPECT_THAT(net.conversions(), ElementsAre("loss <- p"));
  EXPECT_EQ(layout_json(net.workload, net.plan, {"c.weight"}).find("output"), std::string::npos);
}

TEST(Layout, DepthwiseKernelsWhereTheFrameworkWantsThem) {
  const std::string text = R"(workload w(x: f32[N,3,4,4], y: i32[N]) {
    a = conv2d(x; weight=c.weight[6,1,2,2]) groups=3
    b = conv2d(a; weight=d.weight[4,3,2,2]) groups=2 stride=2,1
    g = global_avg_pool2d(b)
    loss = softmax_cross_entropy(g, y)
  })";
  const LayoutOptions options{.depthwise_kernel = [](const ir::Node&) { return true; }};
  const Planned depthwise = plan(text, options);
  EXPECT_EQ(depthwise.param("c.weight"), (ParamLayout{.view = {3, 2, 2, 2}, .perm = {2, 3, 0, 1}}));
  EXPECT_EQ(stored_shape(depthwise.param("c.weight"), {6, 1, 2, 2}), (Shape{2, 2, 3, 2}));
  EXPECT_TRUE(depthwise.plan.depthwise[0]);
  EXPECT_FALSE(depthwise.plan.depthwise[1]);
  const Planned grouped = plan(text);
  EXPECT_EQ(stored_shape(grouped.param("c.weight"), {6, 1, 2, 2}), (Shape{2, 2, 1, 6}));
  EXPECT_EQ(stored_shape(grouped.param("d.weight"), {4, 3, 2, 2}), (Shape{2, 2, 3, 4}));
}

TEST(Layout, JsonNamesTargetsAndSteps) {
  const Planned cnn = plan(*zoo::build("mnist_cnn"));
  std::vector<std::string> targets;
  for (const auto& parameter : cnn.workload.parameters) targets.push_back(parameter.name);
  targets[0] = "conv1_weight";
  const auto json = nlohmann::json::parse(layout_json(cnn.workload, cnn.plan, targets));
  EXPECT_EQ(json.size(), 6U);  // six weights; biases keep name and layout
  EXPECT_EQ(json["conv1.weight"],
            nlohmann::json::parse(R"({"target": "conv1_weight", "perm": [2, 3, 1, 0]})"));
  EXPECT_EQ(json["fc1.weight"], nlohmann::json::parse(R"({"target": "fc1.weight", "view": [128, 64, 8, 8],
                                                          "perm": [2, 3, 1, 0], "reshape": [4096, 128]})"));
}

TEST(Layout, NothingToSayGivesNoFile) {
  const LayoutOptions kept{.transpose_linear = false};
  const Planned mlp = plan(*zoo::build("mlp_small"), kept);
  std::vector<std::string> targets;
  for (const auto& parameter : mlp.workload.parameters) targets.push_back(parameter.name);
  EXPECT_EQ(layout_json(mlp.workload, mlp.plan, targets), "");
}

}  // namespace
}  // namespace bakeoff::emit
