#include "emit/torch/torch.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "../tests/golden.h"
#include "../tests/golden_models.h"
#include "ir/text.h"
#include "zoo/op_cases.h"
#include "zoo/zoo.h"

namespace bakeoff::emit {
namespace {

using ir::DecayForm;
using ir::EpsForm;
using ir::OptimizerKind;
using ir::Track;

Settings settings(const std::string& compile = "off", const std::string& channels_last = "false") {
  return {{"compile", compile}, {"channels_last", channels_last}, {"optimizer_impl", "default"}};
}

std::string emitted(const ir::Workload& workload, const ir::Training& training, const Settings& chosen) {
  const Request request{workload, training, chosen, "train_torch.py"};
  const Result<Emitted> result = torch_framework().emit(request);
  EXPECT_TRUE(result.has_value()) << (result ? "" : result.error().text());
  if (!result) return "";
  EXPECT_EQ(result->layout_json, "");
  return result->source;
}

std::string of_zoo(const std::string& name, const ir::Training& training,
                   const Settings& chosen = settings()) {
  return emitted(*zoo::build(name), training, chosen);
}

std::string of_text(const std::string& text, const ir::Training& training,
                    const Settings& chosen = settings()) {
  const Result<ir::Workload> workload = ir::parse(text);
  EXPECT_TRUE(workload.has_value()) << (workload ? "" : workload.error().text());
  return workload ? emitted(*workload, training, chosen) : "";
}

TEST(Torch, WritesTheNetworksAsTheirGoldens) {
  for (const std::string name : {"resnet18_small", "alexnet_small", "bert_small", "lstm_lm_tied_small"}) {
    expect_golden("torch/" + name + ".py", of_zoo(name, adam_training()));
  }
  expect_golden("torch/sequences.py", of_text(kSequencesModel, adam_training()));
  expect_golden("torch/losses.py", of_text(kLossesModel, adam_training()));
  expect_golden("torch/ctc.py", of_text(kCtcModel, adam_training()));
  expect_golden("torch/sequences_as_is.py", of_text(kSequencesModel, mnist_training(Track::kAsIs)));
}

Settings devices(const std::string& parallel) {
  Settings chosen = settings();
  chosen["devices"] = "4";
  chosen["parallel"] = parallel;
  return chosen;
}

TEST(Torch, WritesScriptsForSeveralDevices) {
  expect_golden("torch/devices_data.py", of_text(kLossesModel, adam_training(), devices("data")));
  expect_golden("torch/devices_batch_norm.py", of_zoo("mlp_deep", adam_training(), devices("data")));
  expect_golden("torch/devices_fsdp.py", of_zoo("bert_small", adam_training(), devices("fsdp")));
}

TEST(Torch, SaysWhatSeveralDevicesCannot) {
  const auto refusal = [](const std::string& workload, ir::Training training, Settings chosen) {
    const auto model = *zoo::build(workload);
    const auto made = torch_framework().emit({model, training, std::move(chosen), "train_torch.py"});
    return made ? "" : made.error().text();
  };
  const auto with = [](const std::string& name, const std::string& value,
                       const std::string& parallel = "data") {
    Settings chosen = devices(parallel);
    chosen[name] = value;
    return chosen;
  };
  const ir::Training plain = adam_training();
  ir::Training averages = plain, parts = plain;
  averages.optimizer.ema = 0.99;
  parts.optimizer.accumulate = 2;
  EXPECT_EQ(refusal("mlp_small", plain, devices("data")), "");
  EXPECT_EQ(refusal("mlp_small", averages, devices("data")), "");
  EXPECT_EQ(refusal("resnet18_small", plain, devices("data")), "");
  EXPECT_THAT(refusal("resnet18_small", plain, with("compile", "default")),
              ::testing::HasSubstr("batch norm"));
  EXPECT_THAT(refusal("mlp_small", parts, devices("data")), ::testing::HasSubstr("optimizer.accumulate"));
  EXPECT_THAT(refusal("mlp_small", averages, devices("fsdp")), ::testing::HasSubstr("optimizer.ema"));
  EXPECT_THAT(refusal("mlp_small", adam_training(Track::kAsIs), devices("data")),
              ::testing::HasSubstr("the as-is track is not written"));
  EXPECT_THAT(refusal("mlp_small", plain, with("input", "dataset")), ::testing::HasSubstr("preloaded"));
  for (const char* compile : {"max-autotune", "cuda_graphs"})
    EXPECT_THAT(refusal("mlp_small", plain, with("compile", compile)), ::testing::HasSubstr(compile));
  EXPECT_THAT(refusal("mlp_small", plain, with("devices", "1", "fsdp")),
              ::testing::HasSubstr("set devices = 2 or more"));
}

TEST(Torch, LeavesOutTheRowThatPads) {
  const std::string text =
      "workload w(ids: i32[N,3], y: f32[N,3,2]) {\n e = embedding(ids; weight=e.weight[9,2]) padding_idx=4\n"
      " loss = mse(e, y)\n}";
  EXPECT_TRUE(holds(of_text(text, adam_training()), "self.e = nn.Embedding(9, 2, padding_idx=4)\n"));
}

TEST(Torch, PrintsALoopFromAStateOfZeros) {
  const std::string source = of_text(kDecoderModel, adam_training());
  EXPECT_TRUE(holds(source, "        h = x.new_zeros(x.shape[0], 5)\n")) << source;
  EXPECT_TRUE(holds(source, "        for t in range(3):\n")) << source;
}

TEST(Torch, CallsAModuleThatIsAllOfTheModel) {
  const std::string source = of_text(
      "workload wrap(x: f32[N,4], y: f32[N,4]) {\n  a = linear(x; weight=net.a.weight[4,4])\n  b = tanh(a)\n"
      "  c = linear(b; weight=net.b.weight[4,4])\n  loss = mse(c, y)\n}\n",
      adam_training());
  EXPECT_TRUE(holds(source, "        self.net = Net()\n")) << source;
  EXPECT_TRUE(holds(source, "        return self.net(x)\n")) << source;
}

TEST(Torch, WritesWhatSurroundsAnUpdate) {
  expect_golden("torch/updates.py", of_zoo("mlp_small", updates_training(4)));
}

// Layers whose names are places, and what lies between them.
TEST(Torch, WritesDirectionsAndLayersAsOneModule) {
  const auto model = [](const std::string& name, const std::string& more) {
    const auto node = [&](const std::string& out, const std::string& in, int width, const std::string& end,
                          const std::string& reverse) {
      return fmt::format(
          "  {0} = gru({1}; weight_ih={2}.weight_ih_{4}[12,{3}], weight_hh={2}.weight_hh_{4}[12,4]) "
          "reverse={5}\n",
          out, in, name, width, end, reverse);
    };
    const std::string nodes = node("a", "x", 3, "l0", "false") + node("b", "x", 3, "l0_reverse", "true") +
                              "  c = concat(a, b) axis=2\n" + node("d", "c", 8, "l1", "false") +
                              node("e", "c", 8, "l1_reverse", "true") + "  f = concat(d, e) axis=2\n";
    return of_text("workload m(x: f32[N,5,3], y: f32[N,5,8]) {\n" + nodes + more + "}\n", adam_training());
  };
  const std::string one =
      "nn.GRU(\n            3, 4, bias=False, batch_first=True, num_layers=2, bidirectional=True";
  const std::string whole = model("rnn", "  z = tanh(f)\n  loss = mse(z, y)\n");
  EXPECT_TRUE(holds(whole, "self.rnn = " + one)) << whole;
  EXPECT_TRUE(holds(whole, "self.rnn(x)[0]")) << whole;
  // What is read between the layers is no module's.
  const std::string read = model("rnn", "  z = add(f, c)\n  loss = mse(z, y)\n");
  EXPECT_FALSE(holds(read, "num_layers")) << read;
  EXPECT_FALSE(holds(read, "bidirectional")) << read;
}

// One step of an nn.LSTMCell as torch.export gives it, with a text in place of another one.
std::string lstm_cell(const std::string& from = "", const std::string& to = "") {
  std::string nodes =
      "  h = linear(x; weight=h.weight[4,3])\n  c = linear(x; weight=c.weight[4,3])\n"
      "  a = linear(x; weight=cell.weight_ih[16,3], bias=cell.bias_ih[16])\n"
      "  b = linear(h; weight=cell.weight_hh[16,4], bias=cell.bias_hh[16])\n  s = add(a, b)\n";
  for (int i = 0; i < 4; ++i)
    nodes += fmt::format("  g{} = slice(s) axis=1 begin={} end={} step=1\n", i, 4 * i, 4 * i + 4);
  nodes +=
      "  f = sigmoid(g1)\n  kept = mul(f, c)\n  n = tanh(g2)\n  i = sigmoid(g0)\n  made = mul(i, n)\n"
      "  d = add(kept, made)\n  t = tanh(d)\n  o = sigmoid(g3)\n  z = mul(o, t)\n  loss = mse(z, y)\n";
  for (size_t at = 0; !from.empty() && (at = nodes.find(from, at)) != std::string::npos; at += to.size())
    nodes.replace(at, from.size(), to);
  return "workload m(x: f32[N,3], y: f32[N,4]) {\n" + nodes + "}\n";
}

TEST(Torch, CallsTheCellsThatAnExporterHasTakenApart) {
  const std::string source = of_text(lstm_cell(), adam_training());
  EXPECT_TRUE(holds(source, "self.cell = nn.LSTMCell(3, 4)\n")) << source;
  EXPECT_TRUE(holds(source, ", _ = self.cell(x, (h, u))\n")) << source;
  for (const auto& [from, to] : std::map<std::string, std::string>{
           {"mul(f, c)", "mul(c, f)"}, {"mse(z, y)", "mse(w, y)"}, {"add(a, b)", "add(b, a)"}}) {
    std::string text = lstm_cell(from, to);
    if (to == "mse(w, y)") text.replace(text.find("  loss"), 0, "  w = add(z, d)\n");
    EXPECT_TRUE(holds(of_text(text, adam_training()), "self.cell(")) << text;
  }
}

TEST(Torch, LeavesWhatOnlyLooksLikeACell) {
  const std::map<std::string, std::string> others = {
      {"i = sigmoid(g0)", "i = sigmoid(g1)"},
      {"begin=4 end=8", "begin=5 end=9"},
      {"  n = tanh(g2)\n", "  n = tanh(g2)\n  q = neg(x)\n"},
      {"loss = mse(z, y)", "w = add(z, kept)\n  loss = mse(w, y)"},
      {"loss = mse(z, y)\n",
       "v = linear(x; weight=cell.weight_ih[16,3])\n  w = mean(v) axes=1 keepdims=true\n"
       "  u = add(z, w)\n  loss = mse(u, y)\n"},
      {"loss = mse(z, y)\n", "v = linear(z; weight=cell.more[4,4])\n  loss = mse(v, y)\n"},
      {"cell.bias_hh", "cell.bias_hx"},
      {"  b = linear(h;", "  b = linear(c;"}};
  for (const auto& [from, to] : others) {
    SCOPED_TRACE(to);
    const std::string source = of_text(lstm_cell(from, to), adam_training());
    const bool states_alike = to.ends_with("(c;");  // h and c may be the same
    EXPECT_EQ(holds(source, "nn.LSTMCell"), states_alike) << source;
  }
}

TEST(Torch, FindsTheCellsOfRandomDecoders) {
  int found = 0;
  for (uint64_t seed = 0; seed < 100; ++seed) {
    tensor::Rng rng(seed);
    const ir::Workload workload = zoo::random_loop(rng);
    if (workload.find_parameter("cell.weight_ih") + workload.find_parameter("decoder.cell.weight_ih") < -1)
      continue;
    const std::string source = emitted(workload, adam_training(), settings());
    EXPECT_TRUE(holds(source, "self.cell = nn.") && holds(source, "self.cell(")) << source;
    EXPECT_FALSE(holds(source, "self.cell.")) << source;
    ++found;
  }
  EXPECT_GT(found, 30);
}

TEST(Torch, MakesZerosInTheClassThatReadsThem) {
  const std::string inside = of_text(two_cells("zeros"), adam_training());
  EXPECT_TRUE(holds(inside, "x: Tensor) -> Tensor:\n        h = x.new_zeros(x.shape[0], 4)\n")) << inside;
  EXPECT_TRUE(holds(inside, "        x = self.a(x)\n        return self.b(x)\n")) << inside;
  // A class that is handed its state in one place takes it in all.
  const std::string given = of_text(two_cells("x"), adam_training());
  EXPECT_TRUE(holds(given, "class Block(nn.Module):")) << given;
  EXPECT_TRUE(holds(given, "        h = x.new_zeros(x.shape[0], 4)\n        h = self.a(x, h)\n")) << given;
}

// Parts of two linear layers each.
std::string of_parts(const std::vector<std::string>& paths) {
  std::string nodes, in = "x";
  for (size_t i = 0; i < paths.size(); ++i) {
    nodes += fmt::format(
        "  a{0} = linear({1}; weight={2}.in.weight[8,4])\n  b{0} = relu(a{0})\n"
        "  c{0} = linear(b{0}; weight={2}.out.weight[4,8])\n",
        i, in, paths[i]);
    in = fmt::format("c{}", i);
  }
  return of_text("workload m(x: f32[N,4], y: f32[N,4]) {\n" + nodes + "  loss = mse(" + in + ", y)\n}\n",
                 adam_training());
}

TEST(Torch, NamesClassesByWhatTheirPathsHaveInCommon) {
  const std::map<std::string, std::vector<std::string>> names = {
      {"Resnet", {"resnets.0", "resnets.1"}},
      {"Patch", {"patches.0", "patches.1"}},
      {"Entry", {"entries.0", "entries.1"}},
      {"SelfAttention", {"attention.self", "attention.self_2"}},
      {"Attn", {"self_attn", "cross_attn"}},
      {"Image", {"from_image_to", "image_of"}},
      {"Block", {"a", "b"}}};
  for (const auto& [name, paths] : names) {
    const std::string source = of_parts(paths);
    EXPECT_TRUE(holds(source, "class " + name + "(nn.Module):")) << source;
  }
}

TEST(Torch, HoldsModulesInListsAndByAttributes) {
  const std::string same = of_text(
      "workload m(x: f32[N,4], y: f32[N,4]) {\n  a = linear(x; weight=c.0.0.weight[4,4])\n"
      "  b = layer_norm(a; weight=c.0.1.weight[4], bias=c.0.1.bias[4])\n  p = abs(b)\n"
      "  c = linear(p; weight=c.1.0.weight[4,4])\n  d = layer_norm(c; weight=c.1.1.weight[4], bias=c.1.1.bias[4])\n"
      "  w = parameter(; weight=outer.inner.table[1,4])\n  e = add(d, w)\n  loss = mse(e, y)\n}\n",
      adam_training());
  EXPECT_TRUE(holds(same, "self.c = nn.ModuleList(\n            [\n                nn.Sequential(\n"))
      << same;
  EXPECT_TRUE(holds(same, "                )\n                for _ in range(2)\n            ]\n")) << same;
  EXPECT_TRUE(holds(same, "torch.abs(self.c[0](x))")) << same;
  EXPECT_TRUE(holds(same, "self.outer.inner.table = nn.Parameter(torch.empty(1, 4))")) << same;
  EXPECT_TRUE(holds(same, "+ self.outer.inner.table")) << same;
}

TEST(Torch, PutsWhatFollowsAListedLayerIntoItsSequenceAndLoops) {
  const std::string text = of_text(
      "workload m(x: f32[N,4,5], y: f32[N,4,5]) {\n  a = conv1d(x; weight=c.0.0.weight[4,4,3]) pad=1,1\n"
      "  b = group_norm(a) groups=2\n  d = leaky_relu(b) slope=0.2\n"
      "  e = conv1d(d; weight=c.1.0.weight[4,4,1])\n  f = tanh(e)\n  g = dropout(f) rate=0.5\n"
      "  w = parameter(; weight=p.weight[1,4,5])\n  h = add(g, w)\n  i = dropout(h) rate=0.5\n"
      "  j = conv1d(i; weight=last.weight[4,4,1])\n  k = dropout(j) rate=0.5\n  loss = mse(k, y)\n}\n",
      adam_training());
  for (const char* part :
       {"nn.GroupNorm(2, 4, eps=1e-5, affine=False),\n                    nn.LeakyReLU(0.2),\n",
        "nn.Tanh(),\n                    nn.Dropout(p=0.5),\n",
        "for block in self.c:\n            x = block(x)\n", "self.p = Weight(1, 4, 5)\n",
        "class Weight(nn.Module):", "self.dropout = nn.Dropout(p=0.5)\n", "x = self.dropout(x)\n",
        "return self.dropout(x)\n"})
    EXPECT_TRUE(holds(text, part)) << part << text;
}

// There and back; where others read it too, it stays.
TEST(Torch, LeavesOutATranspositionThatAttentionTakesBack) {
  const std::string shared = of_text(
      "workload m(x: f32[N,2,5,4], y: f32[N,5,2,4]) {\n  q = transpose(x) perm=0,2,1,3\n  n = neg(x)\n"
      "  k = transpose(n) perm=0,2,1,3\n  a = attention(q, k, k)\n  b = add(a, q)\n  loss = mse(b, y)\n}\n",
      adam_training());
  EXPECT_TRUE(holds(shared, "h.transpose(1, 2), x, x).transpose(1, 2)")) << shared;
  const std::string alone = of_text(
      "workload m(x: f32[N,2,5,4], y: f32[N,5,2,4]) {\n  n = neg(x)\n  q = transpose(n) perm=0,2,1,3\n"
      "  m = abs(x)\n  k = transpose(m) perm=0,2,1,3\n  o = exp(x)\n  v = transpose(o) perm=0,2,1,3\n"
      "  a = attention(q, k, v)\n  loss = mse(a, y)\n}\n",
      adam_training());
  EXPECT_TRUE(holds(alone, "F.scaled_dot_product_attention(q, k, v).transpose(1, 2)")) << alone;
}

TEST(Torch, HandsABatchNormNoSqueezedGradient) {
  const std::string text = of_text(
      "workload m(x: f32[N,4,5], y: f32[N,4,5]) {\n  a = reshape(x) shape=N,4,5,1\n"
      "  b = batch_norm(a; weight=n.weight[4], bias=n.bias[4], mean=n.running_mean[4], var=n.running_var[4])\n"
      "  z = reshape(b) shape=N,4,5\n  loss = mse(z, y)\n}\n",
      adam_training());
  EXPECT_FALSE(holds(text, "squeeze")) << text;
}

// Four steps of a decoder whose first is another: its loop reads the places by their index.
TEST(Torch, NamesNoPlacesThatALoopReads) {
  std::string text = "workload m(x: f32[N,4,8], y: f32[N,8]) {\n";
  for (int i = 0; i < 4; ++i)
    text += fmt::format("  s{0} = slice(x) axis=1 begin={0} end={1}\n  x{0} = flatten(s{0})\n", i, i + 1);
  text += "  h0 = exp(x0)\n";
  for (int i = 1; i < 4; ++i)
    text += fmt::format(
        "  a{0} = linear(h{1}; weight=a.weight[8,8])\n  b{0} = add(a{0}, x{0})\n  h{0} = tanh(b{0})\n", i,
        i - 1);
  text = of_text(text + "  loss = mse(h3, y)\n}\n", adam_training());
  EXPECT_FALSE(holds(text, "unbind")) << text;
  EXPECT_TRUE(holds(text, "x[:, 0]")) << text;
}

TEST(Torch, TakesAllPlacesOfAnAxisInOneStatement) {
  const std::string text = of_text(kStackedAttentionModel, adam_training());
  for (const char* part : {"q, k, v = x.unbind(2)", "[:, 4]"})
    EXPECT_NE(text.find(part), std::string::npos) << part << text;
}

TEST(Torch, CallsWhatAttentionReadsByItsNames) {
  const std::string text = of_text(kFusedAttentionModel, adam_training());
  for (const char* part :
       {"q, k, v = h.chunk(3, dim=2)", "q = q.unflatten(-1, (2, 4))", "return x + self.out(h)"})
    EXPECT_NE(text.find(part), std::string::npos) << part << text;
}

TEST(Torch, DropsTheWeightsOfAttention) {
  const std::string text = of_text(kDroppedAttentionModel, adam_training());
  EXPECT_TRUE(holds(text, "dropout_p=0.25 if self.training else 0.0")) << text;
  EXPECT_TRUE(holds(text, "torch.manual_seed(")) << text;
}

TEST(Torch, WritesLayersInARowAsASequence) {
  const auto model = [](const std::string& body) {
    const std::string text =
        of_text("workload m(x: f32[N,8], y: f32[N,8]) {\n" + body + "  loss = mse(z, y) reduction=mean\n}\n",
                adam_training());
    return text.substr(0, text.find("def make_model"));
  };
  const auto layer = [&](const std::string& out, const std::string& in, int at) {
    return fmt::format("  {0} = linear({1}; weight=f.{2}.weight[8,8], bias=f.{2}.bias[8])\n", out, in, at);
  };
  const std::string whole = model("  d = dropout(x) rate=0.25\n" + layer("a", "d", 1) + "  b = relu(a)\n" +
                                  layer("c", "b", 3) + "  z = gelu(c) form=tanh\n");
  EXPECT_TRUE(holds(whole,
                    "self.f = nn.Sequential(\n            nn.Dropout(p=0.25),\n            nn.Linear(8, 8),\n"
                    "            nn.ReLU(),\n            nn.Linear(8, 8),\n"
                    "            nn.GELU(approximate=\"tanh\"),\n        )"))
      << whole;
  EXPECT_TRUE(holds(whole, "return self.f(x)")) << whole;
  EXPECT_FALSE(holds(whole, "F.relu")) << whole;
  // A row without others ends with its last layer: the activation may be forward()'s own.
  const std::string two = model(layer("a", "x", 0) + layer("b", "a", 1) + "  z = relu(b)\n");
  EXPECT_TRUE(holds(two, "return F.relu(self.f(x))")) << two;
  struct Case {
    const char* why;
    std::string body;
  };
  for (const Case& c : {
           Case{"a place more than there are nodes",
                layer("a", "x", 0) + "  b = relu(a)\n" + layer("z", "b", 3)},
           {"a place less", layer("a", "x", 0) + "  b = relu(a)\n" + layer("z", "b", 1)},
           {"what lies between is no module", layer("a", "x", 0) + "  b = square(a)\n" + layer("z", "b", 2)},
           {"a value within is read outside",
            layer("a", "x", 0) + "  b = relu(a)\n" + layer("c", "b", 2) + "  z = add(c, a)\n"},
           {"a layer is called twice", layer("a", "x", 0) + "  b = relu(a)\n" + layer("c", "b", 2) +
                                           "  d = relu(c)\n" + layer("z", "d", 0)},
           {"a weight is read outside", layer("a", "x", 0) + "  b = relu(a)\n" + layer("c", "b", 2) +
                                            "  z = linear(c; weight=f.0.weight[8,8])\n"},
           {"a parameter is no layer's", layer("a", "x", 0) + "  b = relu(a)\n" + layer("c", "b", 2) +
                                             "  s = parameter(; weight=f.scale[1,8])\n  z = mul(c, s)\n"},
           {"nodes before the first layer are no modules",
            "  a = square(x)\n" + layer("b", "a", 1) + "  c = relu(b)\n" + layer("z", "c", 3)},
           {"one layer", layer("a", "x", 0) + "  z = relu(a)\n"},
       }) {
    SCOPED_TRACE(c.why);
    const std::string text = model(c.body);
    EXPECT_TRUE(holds(text, "forward")) << text;
    EXPECT_FALSE(holds(text, "Sequential")) << text;
  }
}

// `full` presets are not trained in tests: that they are emitted at all is tested here.
TEST(Torch, WritesEveryWorkloadOfTheZoo) {
  for (const zoo::Entry& entry : zoo::entries()) {
    SCOPED_TRACE(entry.name);
    EXPECT_FALSE(of_zoo(entry.name, adam_training()).empty());
  }
}

TEST(Torch, WritesTheZooAsItsGoldens) {
  expect_golden("torch/mnist_cnn.py", of_zoo("mnist_cnn", mnist_training()));
  expect_golden("torch/mnist_cnn_compiled.py",
                of_zoo("mnist_cnn", mnist_training(), settings("max-autotune", "true")));
  expect_golden("torch/mnist_cnn_as_is.py", of_zoo("mnist_cnn", mnist_training(Track::kAsIs)));
  expect_golden("torch/mlp_deep.py", of_zoo("mlp_deep", adam_training()));
  expect_golden("torch/mlp_deep_as_is.py",
                of_zoo("mlp_deep", adam_training(Track::kAsIs), settings("default")));
  ir::Training sgd = mnist_training();
  sgd.optimizer = {
      .kind = OptimizerKind::kSgd, .lr = 0.1, .momentum = 0.9, .nesterov = true, .weight_decay = 5e-4};
  expect_golden("torch/residual_cnn.py", of_zoo("residual_cnn", sgd));
}

TEST(Torch, WritesEveryInputPipelineAsItsGolden) {
  for (const std::string input : {"tensor_dataset", "dataset", "batched_index"}) {
    Settings chosen = settings();
    chosen["input"] = input;
    expect_golden("torch/input_" + input + ".py", of_zoo("mnist_cnn", mnist_training(), chosen));
    chosen["workers"] = "2";
    const std::string as_is = of_zoo("mnist_cnn", mnist_training(Track::kAsIs), chosen);
    expect_golden("torch/input_" + input + "_as_is.py", as_is);
  }
  Settings preloaded = settings();
  preloaded["input"] = "preloaded";
  expect_golden("torch/input_preloaded_as_is.py",
                of_zoo("mnist_cnn", mnist_training(Track::kAsIs), preloaded));
  EXPECT_EQ(of_zoo("mnist_cnn", mnist_training(), preloaded), of_zoo("mnist_cnn", mnist_training()));
}

TEST(Torch, WritesPrecisionsAsTheirGoldens) {
  Settings chosen = settings();
  chosen["precision"] = "bfloat16";
  expect_golden("torch/precision_bfloat16.py", of_zoo("mnist_cnn", mnist_training(), chosen));
  expect_golden("torch/precision_bfloat16_bert.py", of_zoo("bert_small", adam_training(), chosen));
  chosen["precision"] = "float16";
  chosen["scaler"] = "true";
  chosen["tf32"] = "true";
  expect_golden("torch/precision_float16_scaler_tf32.py", of_zoo("mnist_cnn", mnist_training(), chosen));
  expect_golden("torch/precision_float16_scaler_tf32_as_is.py",
                of_zoo("mnist_cnn", mnist_training(Track::kAsIs), chosen));
}

TEST(Torch, WritesCudaGraphsAsTheirGoldens) {
  Settings chosen = settings("cuda_graphs");
  ir::Training sgd = mnist_training();
  sgd.optimizer = {.kind = OptimizerKind::kSgd, .lr = 0.1, .momentum = 0.9};
  expect_golden("torch/cuda_graphs_sgd.py", of_zoo("mnist_cnn", sgd, chosen));
  ir::Training inside = mnist_training();
  inside.optimizer.eps_form = EpsForm::kInside;
  expect_golden("torch/cuda_graphs_rmsprop_inside.py", of_zoo("mnist_cnn", inside, chosen));
  chosen["precision"] = "bfloat16";
  chosen["cuda_allocator"] = "expandable_segments";
  expect_golden("torch/cuda_graphs_bfloat16_as_is.py",
                of_zoo("mnist_cnn", adam_training(Track::kAsIs), chosen));
}

TEST(Torch, RefusesWhatNoCudaGraphCanRepeat) {
  const ir::Workload workload = *zoo::build("mnist_cnn");
  const auto error = [&](const ir::Training& training, Settings chosen) {
    chosen["compile"] = "cuda_graphs";
    const auto got = torch_framework().emit({workload, training, chosen, "t.py"});
    return got ? "" : got.error().message;
  };
  EXPECT_EQ(error(adam_training(), settings()), "");
  ir::Training training = adam_training();
  training.optimizer.eps_form = EpsForm::kHat;
  EXPECT_EQ(error(training, settings()),
            "torch: AdamEpsHat counts its steps on the host, which no CUDA graph repeats");
  training.optimizer.eps_form = EpsForm::kInside;
  EXPECT_EQ(error(training, settings()),
            "torch: AdamEpsInside counts its steps on the host, which no CUDA graph repeats");
  Settings scaled = settings();
  scaled["precision"] = "float16";
  EXPECT_EQ(error(adam_training(), scaled), "");
  scaled["scaler"] = "true";
  EXPECT_EQ(error(adam_training(), scaled),
            "torch: a GradScaler asks the device in every step, which no CUDA graph can");
  training = adam_training();
  training.scenario = ir::Scenario::kPredict;
  EXPECT_EQ(error(training, settings()), "torch: compile = \"cuda_graphs\" captures training steps");
}

TEST(Torch, SetsTheAllocatorBeforeTorchIsImported) {
  for (const auto& [value, conf] : std::map<std::string, std::string>{
           {"expandable_segments", "expandable_segments:True"}, {"async", "backend:cudaMallocAsync"}}) {
    Settings chosen = settings();
    chosen["cuda_allocator"] = value;
    const std::string text = of_zoo("mnist_cnn", mnist_training(), chosen);
    EXPECT_TRUE(holds(text, "os.environ[\"PYTORCH_CUDA_ALLOC_CONF\"] = \"" + conf + "\"\n\nimport torch\n"));
  }
  EXPECT_FALSE(holds(of_zoo("mnist_cnn", mnist_training()), "import os"));
}

TEST(Torch, RefusesAScalerWithoutHalfPrecision) {
  Settings chosen = settings();
  chosen["scaler"] = "true";
  const auto refused =
      torch_framework().emit({*zoo::build("mnist_cnn"), mnist_training(), chosen, "train_torch.py"});
  ASSERT_FALSE(refused);
  EXPECT_TRUE(holds(refused.error().text(), "a GradScaler is for mixed precision")) << refused.error().text();
}

TEST(Torch, RefusesWorkersWithoutALoader) {
  Settings chosen = settings();
  chosen["workers"] = "2";
  const auto workload = zoo::build("mnist_cnn");
  const auto refused = torch_framework().emit({*workload, mnist_training(), chosen, "train_torch.py"});
  ASSERT_FALSE(refused);
  EXPECT_TRUE(holds(refused.error().text(), "preloaded tensors have no DataLoader"))
      << refused.error().text();
  EXPECT_TRUE(torch_framework().emit({*workload, mnist_training(Track::kAsIs), chosen, "train_torch.py"}));
}

TEST(Torch, WritesEveryOtherOpAsItsGolden) {
  expect_golden("torch/all_sorts.py", of_text(kAllSortsModel, adam_training()));
  const std::string text = of_text(kAllSortsModel, mnist_training(Track::kAsIs), settings("off", "true"));
  expect_golden("torch/all_sorts_as_is.py", text);
  EXPECT_FALSE(holds(text, "eps="));
}

// F.interpolate where it reads the same places, which it computes in float32: of 82 from 2 it takes place 0 for 41.
TEST(Torch, ResizesByInterpolate) {
  const std::string text = of_text(
      "workload w(x: f32[N,2,4,4], t: f32[N,2,82,7]) {\n a = resize(x) size=8,8 mode=linear "
      "coordinates=align_corners\n b = resize(a) size=16,16 mode=nearest coordinates=asymmetric\n c = resize(b) "
      "size=2,9 mode=linear coordinates=half_pixel\n d = resize(c) size=82,7 mode=nearest "
      "coordinates=asymmetric\n loss = mse(d, t)\n}",
      adam_training());
  EXPECT_TRUE(holds(text, "F.interpolate(x, size=(8, 8), mode=\"bilinear\", align_corners=True)"));
  EXPECT_TRUE(holds(text, "F.interpolate(x, scale_factor=2, mode=\"nearest\")"));
  EXPECT_TRUE(holds(text, "F.interpolate(x, size=(2, 9), mode=\"bilinear\", align_corners=False)"));
  EXPECT_TRUE(holds(text, "resize(x, size=(82, 7), mode=\"nearest\", coordinates=\"asymmetric\")"));
  EXPECT_TRUE(holds(text, "def resize("));
}

// Forms that torch.optim lacks; test_torch_adapter.py executes these against the formulas.
struct OptimizerCase {
  std::string name;
  ir::Optimizer optimizer;
};
constexpr double kLr = 0.01;
const OptimizerCase kOptimizers[] = {
    {"sgd", {.kind = OptimizerKind::kSgd, .lr = kLr}},
    {"sgd_momentum_decoupled",
     {.kind = OptimizerKind::kSgd,
      .lr = kLr,
      .momentum = 0.9,
      .weight_decay = 0.1,
      .decay_form = DecayForm::kDecoupled}},
    {"rmsprop_l2",
     {.kind = OptimizerKind::kRmsprop, .lr = kLr, .momentum = 0.5, .eps = 1e-3, .weight_decay = 0.1}},
    {"rmsprop_decoupled",
     {.kind = OptimizerKind::kRmsprop,
      .lr = kLr,
      .eps = 1e-3,
      .weight_decay = 0.1,
      .decay_form = DecayForm::kDecoupled}},
    {"rmsprop_inside",
     {.kind = OptimizerKind::kRmsprop, .lr = kLr, .rho = 0.8, .eps = 1e-3, .eps_form = EpsForm::kInside}},
    {"rmsprop_inside_momentum_l2",
     {.kind = OptimizerKind::kRmsprop,
      .lr = kLr,
      .momentum = 0.9,
      .eps = 1e-3,
      .eps_form = EpsForm::kInside,
      .weight_decay = 0.1}},
    {"adam_l2", {.kind = OptimizerKind::kAdam, .lr = kLr, .eps = 1e-3, .weight_decay = 0.1}},
    {"adam_inside_l2",
     {.kind = OptimizerKind::kAdam,
      .lr = kLr,
      .eps = 1e-3,
      .eps_form = EpsForm::kInside,
      .weight_decay = 0.1}},
    {"adam_hat_l2",
     {.kind = OptimizerKind::kAdam, .lr = kLr, .eps = 1e-3, .eps_form = EpsForm::kHat, .weight_decay = 0.1}},
    {"adam_decoupled",
     {.kind = OptimizerKind::kAdam,
      .lr = kLr,
      .eps = 1e-3,
      .weight_decay = 0.1,
      .decay_form = DecayForm::kDecoupled}},
    {"adamw", {.kind = OptimizerKind::kAdamW, .lr = kLr, .beta1 = 0.8, .eps = 1e-3, .weight_decay = 0.1}},
    {"adamw_inside",
     {.kind = OptimizerKind::kAdamW,
      .lr = kLr,
      .eps = 1e-3,
      .eps_form = EpsForm::kInside,
      .weight_decay = 0.1}},
    {"adamw_hat",
     {.kind = OptimizerKind::kAdamW, .lr = kLr, .eps = 1e-3, .eps_form = EpsForm::kHat, .weight_decay = 0.1}},
    {"rmsprop_inside_decoupled",
     {.kind = OptimizerKind::kRmsprop,
      .lr = kLr,
      .eps = 1e-3,
      .eps_form = EpsForm::kInside,
      .weight_decay = 0.1,
      .decay_form = DecayForm::kDecoupled}},
};

TEST(Torch, WritesEveryOptimizerAsItsGolden) {
  for (const OptimizerCase& c : kOptimizers) {
    SCOPED_TRACE(c.name);
    ir::Training training = adam_training();
    training.optimizer = c.optimizer;
    expect_golden("torch/optimizers/" + c.name + ".py", of_zoo("mlp_small", training));
  }
}

TEST(Torch, AsIsLeavesUnstatedKeysToTorch) {
  ir::Training training = adam_training(Track::kAsIs);
  training.optimizer = {.kind = OptimizerKind::kAdam,
                        .lr = 0.01,
                        .eps = 1e-3,
                        .eps_form = EpsForm::kInside,
                        .weight_decay = 0.1};
  EXPECT_TRUE(
      holds(of_zoo("mlp_small", training), "torch.optim.Adam(model.parameters(), lr=LEARNING_RATE)\n"));
  training.optimizer.stated = {"beta2"};
  training.optimizer.beta2 = 0.95;
  EXPECT_TRUE(holds(of_zoo("mlp_small", training), "lr=LEARNING_RATE, betas=(0.9, 0.95))\n"));
  training.optimizer.stated = {"eps_form"};
  const std::string inside = of_zoo("mlp_small", training);
  EXPECT_TRUE(holds(inside, "class AdamEpsInside"));
  EXPECT_TRUE(holds(inside, "eps=1e-8"));
  EXPECT_FALSE(holds(inside, "weights.safetensors"));
  EXPECT_TRUE(holds(inside, "shuffle=True"));
  EXPECT_FALSE(holds(inside, "fp32_precision"));
}

TEST(Torch, RefusesImplementationsThatTorchLacks) {
  ir::Training training = mnist_training();
  const ir::Workload workload = *zoo::build("mnist_cnn");
  const auto error = [&](const std::string& impl) {
    Settings chosen = settings();
    chosen["optimizer_impl"] = impl;
    const auto got = torch_framework().emit({workload, training, chosen, "t.py"});
    return got ? "" : got.error().message;
  };
  EXPECT_EQ(error("fused"), "torch: torch.optim.RMSprop has no fused form");
  EXPECT_EQ(error("foreach"), "");
  training.optimizer.eps_form = EpsForm::kInside;
  EXPECT_EQ(error("foreach"), "torch: RMSpropEpsInside is the script's own and has no foreach form");
  EXPECT_EQ(error("default"), "");
}

TEST(Torch, CachesThatGrowAreNotCompiled) {
  Settings chosen = settings();
  chosen["cache"] = "dynamic", chosen["compile"] = "default";
  const auto got = torch_framework().emit(
      {*zoo::build("mlp_small"), {.scenario = ir::Scenario::kGenerate}, chosen, "generate_torch.py"});
  ASSERT_FALSE(got);
  EXPECT_TRUE(holds(got.error().message, "a cache that grows"));
  EXPECT_EQ(got.error().remedy, "set cache = \"static\", or compile = \"off\"");
}

TEST(Torch, EverySettingIsVisible) {
  const ir::Training training = adam_training();
  const std::string plain = of_zoo("mnist_cnn", training);
  for (const Setting& setting : torch_framework().settings) {
    if (!concerns(setting, training.scenario)) continue;
    for (const std::string& value : setting.values) {
      SCOPED_TRACE(setting.name + "=" + value);
      Settings chosen = settings();
      if (setting.name == "scaler") chosen["precision"] = "float16";
      if (setting.name == "parallel") chosen["devices"] = "2";
      const std::string without = chosen == settings() ? plain : of_zoo("mnist_cnn", training, chosen);
      chosen[setting.name] = value;
      const bool same = value == setting.fallback || value == "preloaded";  // what auto is here
      EXPECT_EQ(of_zoo("mnist_cnn", training, chosen) == without, same);
    }
  }
  EXPECT_TRUE(holds(of_zoo("mnist_cnn", training, settings("default")), "    model.compile()\n"));
  Settings one = settings();
  one["devices"] = "1";
  EXPECT_EQ(of_zoo("mnist_cnn", training, one), plain);
}

TEST(Torch, RefusesNamesThatModulesCannotHold) {
  const char* cases[][2] = {
      {"workload m(x: f32[N,3], y: i32[N]) {\n z = linear(x; weight=train.weight[2,3])\n"
       " loss = softmax_cross_entropy(z, y)\n}",
       "cannot hold a layer 'train'"},
      {"workload m(x: f32[N,3], y: i32[N]) {\n z = linear(x; weight=half[2,3])\n"
       " loss = softmax_cross_entropy(z, y)\n}",
       "cannot hold a parameter 'half'"},
      {"workload m(x: f32[N,3], y: i32[N]) {\n z = linear(x; weight=w.a[3,3])\n"
       " q = linear(z; weight=w[2,3])\n loss = softmax_cross_entropy(q, y)\n}",
       "cannot hold both 'w' and 'w.a'"},
  };
  for (const auto& [text, message] : cases) {
    const Result<ir::Workload> workload = ir::parse(text);
    ASSERT_TRUE(workload.has_value()) << workload.error().text();
    const ir::Training training = adam_training();
    const Result<Emitted> result = torch_framework().emit({*workload, training, settings(), "t.py"});
    ASSERT_FALSE(result.has_value());
    EXPECT_TRUE(holds(result.error().message, message)) << result.error().message;
  }
}

TEST(Torch, SharesOneModuleBetweenEqualNodesOnly) {
  const std::string text = of_text(
      "workload m(x: f32[N,3], y: i32[N]) {\n"
      " a = linear(x; weight=fc.weight[3,3], bias=fc.bias[3])\n b = relu(a)\n"
      " c = linear(b; weight=fc.weight[3,3], bias=fc.bias[3])\n"
      " d = linear(c; weight=fc.weight[3,3])\n loss = softmax_cross_entropy(d, y)\n}",
      adam_training());
  EXPECT_TRUE(holds(
      text, "x = F.relu(self.fc(x))\n        x = self.fc(x)\n        return F.linear(x, self.fc.weight)"))
      << text;
}

// As users freeze a layer. One that is trained in part is not the module's own; frozen statistics are no module's.
TEST(Torch, FreezesWholeLayers) {
  const std::string text = of_text(
      "workload m(x: f32[N,3], y: i32[N]) {\n"
      " a = linear(x; weight=fc.weight[3,3] frozen, bias=fc.bias[3] frozen)\n"
      " b = linear(a; weight=part.weight[3,3] frozen, bias=part.bias[3])\n"
      " c = batch_norm(b; weight=bn.weight[3] frozen, bias=bn.bias[3] frozen, mean=bn.running_mean[3], "
      "var=bn.running_var[3])\n loss = softmax_cross_entropy(c, y)\n}",
      adam_training());
  EXPECT_TRUE(holds(text, "self.fc = nn.Linear(3, 3).requires_grad_(False)\n")) << text;
  EXPECT_TRUE(holds(text, "self.bn = nn.BatchNorm1d(3, eps=1e-5, momentum=0.1).requires_grad_(False)\n"))
      << text;
  EXPECT_TRUE(holds(text, "self.part.register_buffer(\"weight\", torch.empty(3, 3))\n")) << text;
}

TEST(Torch, WritesStrangeNamesAndComputedTargets) {
  expect_golden("torch/strange_names.py",
                of_text("workload lambda.1(model: f32[N,4], class: f32[N,4], unused: i32[N,2]) {\n"
                        " a = linear(model; weight=0.in.weight[4,4], bias=0.in.bias[4])\n"
                        " b = linear(class; weight=1.kernel[4,4], bias=1.shift.0[4])\n"
                        " c = relu(b)\n dead = add(a, c)\n s = add(a, model)\n m = mul(s, c)\n"
                        " t = layer_norm(c; weight=scale[4], bias=shift[4])\n loss = mse(m, t)\n}",
                        adam_training(Track::kAsIs)));
  expect_golden("torch/sequence_labels.py",
                of_text("workload tagger(a_rather_long_name_for_the_words_of_a_sentence: i32[N,7],\n"
                        "    and_one_for_the_tags_that_are_to_be_predicted: i32[N,7]) {\n"
                        " e = embedding(a_rather_long_name_for_the_words_of_a_sentence; weight=words[11,6])\n"
                        " z = linear(e; weight=tags.weight[5,6], bias=tags.bias[5])\n"
                        " loss = softmax_cross_entropy(z, and_one_for_the_tags_that_are_to_be_predicted)\n}",
                        adam_training()));
}

TEST(Torch, WritesManyInputsAsItsGolden) {
  std::string inputs = "workload crowd(";
  std::string nodes;
  for (int i = 0; i < 9; ++i) {
    const std::string n = std::to_string(i);
    inputs += "a_picture_of_channel_number_" + n + ": f32[N,1,3,3], ";
    nodes += " f" + n + " = flatten(a_picture_of_channel_number_" + n + ")\n";
  }
  const std::string concat =
      " all = concat(f0, f1, f2, f3, f4, f5, f6, f7, f8, f0, f1, f2, f3, f4, f5, f6) axis=1\n";
  expect_golden(
      "torch/crowd.py",
      of_text(inputs + "y: i32[N]) {\n" + nodes + concat +
                  " z = linear(all; weight=head.weight[4,144])\n loss = softmax_cross_entropy(z, y)\n}",
              adam_training(Track::kAsIs), settings("off", "true")));
}

TEST(Torch, ListsItsDefaults) {
  const Result<ir::Workload> workload = ir::parse(kAllSortsModel);
  std::string text;
  for (const OptimizerKind kind :
       {OptimizerKind::kSgd, OptimizerKind::kRmsprop, OptimizerKind::kAdam, OptimizerKind::kAdamW}) {
    ir::Training training = adam_training(Track::kAsIs);
    training.optimizer.kind = kind;
    for (const Default& line : torch_framework().defaults({*workload, training, settings(), "t.py"})) {
      text += ir::name(kind) + " | " + line.topic + " | " + line.value + "\n";
    }
  }
  expect_golden("torch/defaults.txt", text);
}

TEST(Torch, WritesPredictionsAsTheirGoldens) {
  ir::Training training = mnist_training();
  training.scenario = ir::Scenario::kPredict;
  expect_golden("torch/predict_mnist_cnn.py", of_zoo("mnist_cnn", training));
  expect_golden("torch/predict_all_sorts.py", of_text(kAllSortsModel, training));
  training.track = ir::Track::kAsIs;
  expect_golden("torch/predict_residual_cnn_as_is.py", of_zoo("residual_cnn", training));
}

TEST(Torch, AParameterMayBeOneNumber) {
  const std::string source = of_text(R"(workload w(x: f32[N,4], y: f32[N,4]) {
    s = parameter(; weight=s[])
    h = mul(x, s)
    loss = mse(h, y)
  })",
                                     mnist_training());
  EXPECT_TRUE(holds(source, "nn.Parameter(torch.empty(()))")) << source;
}

TEST(Torch, APredictionNeedsNoTarget) {
  ir::Training training = mnist_training();
  training.scenario = ir::Scenario::kPredict;
  const std::string source = of_text(R"(workload w(x: f32[N,4], y: f32[N,4]) {
    a = linear(x; weight=a.weight[3,4])
    b = linear(y; weight=b.weight[3,4])
    loss = mse(a, b)
  })",
                                     training);
  EXPECT_TRUE(holds(source, "    return model(x, y)[0]\n")) << source;
}

}  // namespace
}  // namespace bakeoff::emit
