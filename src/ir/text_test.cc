#include "ir/text.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <random>
#include <string>
#include <vector>

#include "base/files.h"
#include "ir/builder.h"
#include "ir/op_table.h"

namespace bakeoff::ir {
namespace {

constexpr const char* kMlp = R"(workload mlp(x: f32[N,100], y: i32[N]) {
  h1 = linear(x; weight=fc1.weight[128,100], bias=fc1.bias[128])
  h2 = relu(h1)
  h3 = dropout(h2) rate=0.25
  logits = linear(h3; weight=fc2.weight[10,128], bias=fc2.bias[10])
  loss = softmax_cross_entropy(logits, y) reduction=mean label_smoothing=0
}
)";

TEST(Text, DumpOfParseIsTheSameText) {
  const auto workload = parse(kMlp);
  ASSERT_TRUE(workload) << workload.error().text();
  EXPECT_EQ(dump(*workload), kMlp);
  EXPECT_EQ(workload->parameter_count(), 100 * 128 + 128 + 128 * 10 + 10);
}

TEST(Text, AttributesLeftOutTakeTheirDefaultsAndArePrinted) {
  const auto workload = parse(R"(workload w(x: f32[N,3,8,8], t: f32[N,4,6,6]) { # comment
      h = conv2d(x; weight=c.weight[4,3,3,3])   # no bias
      loss = mse(h, t)
  })");
  ASSERT_TRUE(workload) << workload.error().text();
  EXPECT_NE(dump(*workload).find("stride=1,1 pad=0,0,0,0 dilation=1,1 groups=1\n"), std::string::npos);
  EXPECT_EQ(*parse(dump(*workload)), *workload);
}

TEST(Text, RealsSurviveExactly) {
  Builder b("w");
  const auto x = b.input("x", {DType::kF32, {kBatch, 7}});
  const auto t = b.input("t", {DType::kF32, {kBatch, 7}});
  const auto h = b.batch_norm(x, "bn", 1.0 / 3.0 * 1e-9, 0.1 + 1e-17);
  const auto workload = b.finish(b.apply(Op::kMse, {h, t}));
  ASSERT_TRUE(workload);
  EXPECT_EQ(*parse(dump(*workload)), *workload);
}

const std::string kLayers = R"(workload w(x: f32[N,4], y: f32[N,4]) {
  half = constant() value=0.5
  block layers(x_2) {
    up = linear(x_2; weight=.up.weight[8,4], bias=.up.bias[8])
    act = relu(up)
    half_2 = mul(act, half)
    down = linear(half_2; weight=.down.weight[4,8])
  }
  net.layers.0 = layers(x)
  sum = add(x, net_layers_0_down)
  net.layers.1 = layers(sum)
  last = linear(net_layers_1_down; weight=head.weight[4,4])
  loss = mse(last, y) reduction=mean
}
)";

TEST(Text, PartsThatRepeatAreOneBlock) {
  const auto w = parse(kLayers);
  ASSERT_TRUE(w) << w.error().text();
  EXPECT_EQ(w->nodes[4].output, "net_layers_0_down");
  EXPECT_EQ(w->nodes[6].output, "net_layers_1_up");
  EXPECT_EQ(w->nodes[6].inputs, std::vector<ValueId>{w->output_of(5)});
  EXPECT_EQ(w->parameters[3].name, "net.layers.1.up.weight");
  EXPECT_EQ(dump(*w), kLayers);
  const auto changed = [&](const std::string& from, const std::string& to) {
    std::string text = kLayers;
    text.replace(text.find(from), from.size(), to);
    return text;
  };
  // One that differs in a number is no repetition.
  auto other = *w;
  other.nodes[6].attributes.clear();
  other.nodes[7].op = Op::kTanh;
  EXPECT_EQ(dump(other).find("block"), std::string::npos);
  for (const auto& [from, to, said] : std::vector<std::array<std::string, 3>>{
           {"block layers(", "block relu(", "'relu' is an op"},
           {"layers(sum)", "layers(sum, x)", "f:11: expected ')', got ','"},
           {"layers(sum)", "layers()", "expected a value's name"},
           {"layers(sum)", "layers(summ)", "'summ' is not defined"},
           {"layers(x_2) {", "layers(x_2, x_2) {", "has two inputs 'x_2'"},
           {"relu(up)", "relu(upp)", "f:5: 'upp' is not defined"},
           {"relu(up)", "layers(up)", "a block is called in a block"},
           {"relu(up)", "relu(up) {", "a block stands in a block"},
           {"weight=head.weight", "weight=.head", "begins with a dot"},
           {"net.layers.1 =", "net.layers.0 = layers(sum)\n  net.layers.1 =", "net_layers_0_up"},
           {"  half = ", "  block other() {\n  }\n  half = ", "'other' is never called"}}) {
    const auto bad = parse(changed(from, to), "f");
    ASSERT_FALSE(bad) << to;
    EXPECT_NE(bad.error().text().find(said), std::string::npos) << bad.error().text() << "\n" << said;
  }
}

// Names that a block's body could confuse: a value of the workload that is called like one inside.
TEST(Text, NamesInABlockMeanWhatTheyMeant) {
  const char* line =
      "  {0}_a = linear({1}; weight={0}.w[4,4])\n  {0}_b = mul({0}_a, b)\n"
      "  {0}_x = add({0}_b, a)\n  {0}_c = relu({0}_x)\n";
  std::string text = "workload w(a: f32[N,4], y: f32[N,4]) {\n  b = tanh(a)\n  z = relu(b)\n";
  text += fmt::format(fmt::runtime(line), "one", "z") + fmt::format(fmt::runtime(line), "two", "one_b");
  const auto w = parse(text + "  loss = mse(two_c, y) reduction=mean\n}\n");
  ASSERT_TRUE(w) << w.error().text();
  EXPECT_NE(dump(*w).find("block one(x_2, x_3, x_4) {"), std::string::npos) << dump(*w);
  EXPECT_EQ(*parse(dump(*w)), *w) << dump(*w);
  // The block stands before its first call, whatever the paths are called.
  text = "workload w(a: f32[N,4], y: f32[N,4]) {\n  b = tanh(a)\n  z = relu(b)\n";
  text += fmt::format(fmt::runtime(line), "two", "z") + fmt::format(fmt::runtime(line), "one", "two_b");
  const auto turned = parse(text + "  loss = mse(one_c, y) reduction=mean\n}\n");
  ASSERT_TRUE(turned);
  const auto again = parse(dump(*turned));
  ASSERT_TRUE(again) << again.error().text() << dump(*turned);
  EXPECT_EQ(*again, *turned);
}

// Layers of random nodes under paths, most of them repeated, with names that inputs of blocks like to have.
std::string random_layers(std::mt19937& dice) {
  const auto draw = [&](int n) { return static_cast<int>(dice() % static_cast<unsigned>(n)); };
  std::string text = "workload w(x: f32[N,4], y: f32[N,4]) {\n  a = tanh(x)\n";
  std::vector<std::string> known = {"x", "a"};
  const int layers = 2 + draw(3);
  for (int nth = 0; nth < layers; ++nth) {
    const auto kind = static_cast<unsigned>(dice());
    for (int copy = 0; copy < 2 + draw(2); ++copy) {
      std::mt19937 same(kind);
      const auto pick = [&](int n) { return static_cast<int>(same() % static_cast<unsigned>(n)); };
      const std::string path = fmt::format("{}.{}", nth == 1 ? "x" : "p", 10 * nth + copy);
      std::vector<std::string> inside = {known[static_cast<size_t>(draw(static_cast<int>(known.size())))],
                                         "a"};
      for (int node = 0; node < 3 + pick(5) % 4; ++node) {
        const char* leaf = std::array{"a", "x", "x_2", "b", "out", "w", "y_2"}[static_cast<size_t>(node)];
        const auto& from = inside[static_cast<size_t>(pick(static_cast<int>(inside.size())))];
        const auto& other = draw(9) == 0 ? known.back() : inside.back();
        std::string name = path + "." + leaf, value = name;
        std::replace(value.begin(), value.end(), '.', '_');
        text += pick(2) == 0 ? fmt::format("  {} = linear({}; weight={}[4,4])\n", value, from, name)
                             : fmt::format("  {} = add({}, {})\n", value, from, other);
        inside.push_back(value);
      }
      known.push_back(inside.back());
    }
  }
  return text + fmt::format("  loss = mse({}, y) reduction=mean\n}}\n", known.back());
}

TEST(Text, RandomLayersComeBackAsTheyWere) {
  int folded = 0;
  for (unsigned seed = 1; seed <= 400; ++seed) {
    std::mt19937 dice(seed);
    const std::string text = random_layers(dice);
    const auto w = parse(text);
    ASSERT_TRUE(w) << w.error().text() << "\n" << text;
    const std::string written = dump(*w);
    folded += written.find("block ") != std::string::npos ? 1 : 0;
    const auto again = parse(written);
    ASSERT_TRUE(again) << "seed " << seed << ": " << again.error().text() << "\n" << written;
    ASSERT_EQ(*again, *w) << "seed " << seed << "\n" << written;
  }
  EXPECT_GT(folded, 50);
}

struct BadText {
  const char* what;
  const char* text;
  const char* where;
  const char* message;
  const char* remedy;
};

TEST(Text, ValuesOfFrozenParametersStandInTheText) {
  const std::string head =
      "workload w(x: f32[N,3], y: f32[N,3]) {\n  p = parameter(; weight=mask[1,5] frozen)\n";
  const std::string rest =
      "  s = slice(p) axis=1 begin=0 end=3 step=1\n  values = mul(x, s)\n  loss = mse(values, y) reduction=mean\n";
  const std::string text = head + rest + "  values mask: 0*2 -1.5 0.1*2\n}\n";
  const auto workload = parse(text);
  ASSERT_TRUE(workload) << workload.error().text();
  EXPECT_EQ(workload->parameters[0].values, (std::vector<double>{0, 0, -1.5, 0.1, 0.1}));
  EXPECT_NE(dump(*workload).find("values mask: 0*2 -1.5 0.1*2\n"), std::string::npos);
  EXPECT_EQ(*parse(dump(*workload)), *workload);
  for (const auto& [line, said] : std::vector<std::pair<std::string, std::string>>{
           {"values mask: 0*4", "'mask' needs 5 values, got 4"},
           {"values mask: 0*6", "'mask' has more than 5 values"},
           {"values mask: 0*99999999999999", "more than 5 values"},
           {"values mask: 0*-1", "more than 5 values"},
           {"values task: 0*5", "'task' is no parameter"},
           {"values mask: 0*5\n values mask: 0*5", "'mask' has values already"},
           {"values mask: 0 x", "'x' is no number"}}) {
    const auto wrong = parse(head + rest + line + "\n}\n", "my.ir");
    ASSERT_FALSE(wrong) << line;
    EXPECT_NE(wrong.error().text().find(said), std::string::npos) << wrong.error().text();
  }
  const auto huge = parse(
      "workload w(x: f32[N,3], y: f32[N,3]) {\n  h = linear(x; weight=m[2000000000,3] frozen)\n"
      "  loss = mse(h, y)\n  values m: 0*9\n}\n");
  ASSERT_FALSE(huge);
  EXPECT_NE(huge.error().message.find("a text holds"), std::string::npos);
}

TEST(Text, InitialValuesOfTrainedParametersStandInTheText) {
  const auto of = [](const char* first, const char* second) {
    return parse(fmt::format("workload w(x: f32[N,3], y: f32[N,3]) {{\n  a = linear(x; weight=w[3,3]{})\n"
                             "  b = linear(a; weight=w[3,3]{})\n  loss = mse(b, y)\n}}",
                             first, second),
                 "f");
  };
  const auto w = of(" init=0.1", " init=0.1");
  ASSERT_TRUE(w) << w.error().text();
  EXPECT_EQ(w->parameters[0].init, 0.1);
  EXPECT_EQ(*parse(dump(*w)), *w);
  for (const auto& [first, second, message] : {std::tuple{" init=0.1", "", "another init"},
                                               {" init=-1", " init=-1", "from 0 on"},
                                               {" init=nan", " init=nan", " init"},
                                               {" frozen init=1", " frozen init=1", "from 0 on"},
                                               {" init=x", " init=x", "no number"},
                                               {" init", " init", "expected '='"}}) {
    const auto bad = of(first, second);
    ASSERT_FALSE(bad) << first;
    EXPECT_NE(bad.error().text().find(message), std::string::npos) << bad.error().text();
  }
}

TEST(Text, ErrorsNameLineAndRemedy) {
  const BadText cases[] = {
      {"unknown op", "workload w(x: f32[N,2], t: f32[N,2]) {\n  h = rellu(x)\n}", "f:2", "unknown op 'rellu'",
       "did you mean 'relu'?"},
      {"undefined value", "workload w(x: f32[N,2]) {\n  hidden = relu(x)\n  b = relu(hiden)\n}", "f:3",
       "'hiden' is not defined before this line", "did you mean 'hidden'?"},
      {"unknown attribute", "workload w(x: f32[N,2]) {\n h = dropout(x) rat=0.5\n}", "f:2",
       "dropout has no attribute 'rat'", "did you mean 'rate'?"},
      {"bad number", "workload w(x: f32[N,2]) {\n h = dropout(x) rate=half\n}", "f:2", "'half' is no number",
       "docs/ir.md describes this language, and `bakeoff show mlp_small` shows a workload in it"},
      {"bad slot", "workload w(x: f32[N,2]) {\n h = linear(x; weigt=w[2,2])\n}", "f:2",
       "linear has no parameter 'weigt'", "did you mean 'weight'?"},
      {"shapes",
       "workload w(x: f32[N,2], y: i32[N]) {\n h = relu(x)\n h2 = linear(h; weight=w[2,3])\n"
       " loss = softmax_cross_entropy(h2, y)\n}",
       "f:3", "does not fit the last axis", "`bakeoff ops --markdown` says what linear takes"},
      {"end", "workload w(x: f32[N,2]) {\n h = relu(x", "f:2", "expected ')', got the end of the text",
       "docs/ir.md describes this language, and `bakeoff show mlp_small` shows a workload in it"},
      {"type", "workload w(x: f64[N,2]) {", "f:1", "unknown type 'f64'", "use f32 or i32"},
  };
  for (const BadText& c : cases) {
    SCOPED_TRACE(c.what);
    const auto result = parse(c.text, "f");
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().where, c.where);
    EXPECT_NE(result.error().message.find(c.message), std::string::npos) << result.error().text();
    EXPECT_EQ(result.error().remedy, c.remedy);
  }
}

TEST(Text, LossesAreNamedWithTheirAttributes) {
  const auto loss = parse_loss("softmax_cross_entropy,label_smoothing=0.1,ignore_index=-100");
  ASSERT_TRUE(loss) << loss.error().text();
  EXPECT_EQ(loss->op, "softmax_cross_entropy");
  EXPECT_EQ(loss->attributes, "reduction=mean label_smoothing=0.1 ignore_index=-100");
  EXPECT_EQ(parse_loss("l1")->attributes, "reduction=mean");
  EXPECT_TRUE(parse_loss("mse,reduction=sum"));
  EXPECT_EQ(parse_loss("ctc,reduction=sum")->op, "ctc");
  const std::pair<const char*, const char*> bad[] = {
      {"msee", "'msee' is no loss"},
      {"relu", "'relu' is no loss"},
      {"", "'' is no loss"},
      {"mse,ignore_index=1", "mse has no attribute 'ignore_index'"},
      {"softmax_cross_entropy,smoothing=0.1", "has no attribute 'smoothing'"},
      {"softmax_cross_entropy,label_smoothing=2", "label_smoothing must lie in [0, 1)"},
      {"softmax_cross_entropy,ignore_index=x", "'x' is no number"},
      {"softmax_cross_entropy,ignore_index", "expected '='"},
      {"ctc,blank=1", "ctc has no attribute 'blank'"},
      {"mse,reduction=none", "must be one of mean, sum"},
      {"mse,} workload", "'mse,} workload'"},
  };
  for (const auto& [text, message] : bad) {
    const auto result = parse_loss(text);
    ASSERT_FALSE(result) << text;
    EXPECT_NE(result.error().message.find(message), std::string::npos) << result.error().text();
    EXPECT_FALSE(result.error().remedy.empty());
  }
  EXPECT_EQ(parse_loss("binary_cross_entropy").error().remedy, "did you mean 'bce_with_logits'?");
  EXPECT_EQ(parse_loss("categorical_crossentropy").error().remedy, "did you mean 'softmax_cross_entropy'?");
}

TEST(Text, AnyPrefixOfAWorkloadIsAnErrorNotACrash) {
  const std::string text = kMlp;
  for (size_t n = 0; n + 2 < text.size(); ++n) EXPECT_FALSE(parse(text.substr(0, n))) << n;
}

TEST(OpTable, NamesAreUniqueAndRowsComplete) {
  for (const OpInfo& row : op_table()) {
    SCOPED_TRACE(row.name);
    EXPECT_EQ(find_op(row.name), &row);
    EXPECT_FALSE(row.doc.empty());
    EXPECT_NE(row.shape, nullptr);
    EXPECT_EQ(row.integer_input >= 0, row.bound != nullptr);
    EXPECT_NE(ops_markdown().find("| `" + row.name + "` |"), std::string::npos);
  }
}

TEST(OpTable, DocsAreMadeFromIt) {
  const auto docs = read_file(std::string(BAKEOFF_SOURCE_DIR) + "/docs/ops.md");
  ASSERT_TRUE(docs) << docs.error().text();
  EXPECT_EQ(*docs, ops_markdown()) << "run: bakeoff ops --markdown > docs/ops.md";
}

// The text between "```ir" and "```", of every such block.
std::vector<std::string> examples_of(const std::string& page) {
  const std::string open = "```ir\n", close = "```\n";
  std::vector<std::string> all;
  for (size_t at = 0; (at = page.find(open, at)) != std::string::npos;) {
    at += open.size();
    const size_t end = page.find(close, at);
    all.push_back(page.substr(at, end - at));
    at = end;
  }
  return all;
}

TEST(Text, ExamplesOfTheDocsAreRight) {
  const auto page = read_file(std::string(BAKEOFF_SOURCE_DIR) + "/docs/ir.md");
  ASSERT_TRUE(page) << page.error().text();
  const auto examples = examples_of(*page);
  EXPECT_GE(examples.size(), 6U);
  for (const std::string& example : examples) {
    const auto workload = parse(example, "docs/ir.md");
    ASSERT_TRUE(workload) << workload.error().text() << "\n" << example;
    EXPECT_EQ(*parse(dump(*workload)), *workload);
  }
  // The message that the page shows.
  const auto wrong = parse("workload w(x: f32[N,2]) {\n\n  h = rellu(x)\n}", "my.ir");
  ASSERT_FALSE(wrong);
  EXPECT_NE(page->find("bakeoff: " + wrong.error().text() + "\n"), std::string::npos) << wrong.error().text();
}

}  // namespace
}  // namespace bakeoff::ir
