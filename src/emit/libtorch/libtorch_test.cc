#include "emit/libtorch/libtorch.h"

#include <gtest/gtest.h>

#include <map>

#include "../tests/golden.h"
#include "../tests/golden_models.h"
#include "emit/libtorch/cpp.h"
#include "ir/text.h"
#include "zoo/op_cases.h"
#include "zoo/zoo.h"

namespace bakeoff::emit {
namespace {

using ir::DecayForm;
using ir::EpsForm;
using ir::OptimizerKind;
using ir::Track;

std::string emitted(const ir::Workload& workload, const ir::Training& training,
                    const std::string& channels_last = "false") {
  const Request request{workload, training, {{"channels_last", channels_last}}, "train_libtorch.cc"};
  const Result<Emitted> result = libtorch_framework().emit(request);
  EXPECT_TRUE(result.has_value()) << (result ? "" : result.error().text());
  if (!result) return "";
  EXPECT_EQ(result->layout_json, "");
  EXPECT_EQ(result->beside.count("CMakeLists.txt"), 1u);
  return result->source;
}

std::string of_zoo(const std::string& name, const ir::Training& training,
                   const std::string& channels_last = "false") {
  return emitted(*zoo::build(name), training, channels_last);
}

std::string of_text(const std::string& text, const ir::Training& training,
                    const std::string& channels_last = "false") {
  const Result<ir::Workload> workload = ir::parse(text);
  EXPECT_TRUE(workload.has_value()) << (workload ? "" : workload.error().text());
  return workload ? emitted(*workload, training, channels_last) : "";
}

std::string in_half(const std::string& name, const std::string& precision, const ir::Training& training) {
  const ir::Workload workload = *zoo::build(name);
  const Request request{
      workload, training, {{"channels_last", "false"}, {"precision", precision}}, "train_libtorch.cc"};
  return libtorch_framework().emit(request).value().source;
}

TEST(Libtorch, WritesWhatSurroundsAnUpdate) {
  expect_golden("libtorch/updates.cc", of_zoo("mlp_small", updates_training(4)));
}

TEST(Libtorch, TakesAllPlacesOfAnAxisInOneStatement) {
  const std::string text = of_text(kStackedAttentionModel, adam_training());
  for (const char* part : {"const auto parts = x.unbind(2);", ".select(1, 4)"})
    EXPECT_NE(text.find(part), std::string::npos) << part << text;
}

TEST(Libtorch, CallsWhatAttentionReadsByItsNames) {
  const std::string text = of_text(kFusedAttentionModel, adam_training());
  for (const char* part : {"const auto parts = h.chunk(3, 2);", "Tensor k = parts[1];",
                           "h = attention(q, k, v, mask).flatten(2);"})
    EXPECT_NE(text.find(part), std::string::npos) << part << text;
}

TEST(Libtorch, DropsTheWeightsOfAttention) {
  const std::string text = of_text(kDroppedAttentionModel, adam_training());
  EXPECT_NE(text.find("is_training() ? dropout->options.p() : 0.0"), std::string::npos) << text;
}

TEST(Libtorch, PrintsALoopThatAnImporterHasUnrolled) {
  const std::string source = of_text(kDecoderModel, adam_training());
  EXPECT_TRUE(holds(source, R"(    Tensor h = x.new_zeros({x.size(0), 5});
    std::vector<Tensor> parts;
    for (int64_t t = 0; t < 3; ++t) {
      Tensor u = x.select(1, t);
      u = a(u);
      h = torch::tanh(u + b(h));
      parts.push_back(h);
    }
    x = torch::stack(parts, 1).flatten(1);
)")) << source;
}

TEST(Libtorch, CallsTheCellsThatAnExporterHasTakenApart) {
  std::map<std::string, int> found;
  for (uint64_t seed = 0; seed < 100; ++seed) {
    tensor::Rng rng(seed);
    const ir::Workload workload = zoo::random_loop(rng);
    const std::string source = emitted(workload, adam_training());
    for (const std::string type : {"LSTM", "GRU", "RNN"})
      found[type] += source.find("nn::" + type + "Cell cell{") == std::string::npos ? 0 : 1;
    EXPECT_EQ(source.find("cell->"), std::string::npos) << source;
  }
  EXPECT_GT(found["LSTM"], 8);
  EXPECT_GT(found["GRU"], 8);
  EXPECT_GT(found["RNN"], 8);
}

TEST(Libtorch, WritesPrecisionsAsTheirGoldens) {
  expect_golden("libtorch/precision_bfloat16.cc", in_half("mnist_cnn", "bfloat16", mnist_training()));
  expect_golden("libtorch/precision_float16_as_is.cc",
                in_half("lstm_lm_tied_small", "float16", adam_training(Track::kAsIs)));
}

TEST(Libtorch, WritesTheZooAsItsGoldens) {
  expect_golden("libtorch/mnist_cnn.cc", of_zoo("mnist_cnn", mnist_training()));
  expect_golden("libtorch/losses.cc", of_text(kLossesModel, adam_training()));
  expect_golden("libtorch/ctc.cc", of_text(kCtcModel, adam_training()));
  expect_golden("libtorch/mnist_cnn_channels_last_as_is.cc",
                of_zoo("mnist_cnn", mnist_training(Track::kAsIs), "true"));
  expect_golden("libtorch/mlp_deep.cc", of_zoo("mlp_deep", adam_training()));
  ir::Training sgd = mnist_training();
  sgd.optimizer = {
      .kind = OptimizerKind::kSgd, .lr = 0.1, .momentum = 0.9, .nesterov = true, .weight_decay = 5e-4};
  expect_golden("libtorch/residual_cnn.cc", of_zoo("residual_cnn", sgd));
}

TEST(Libtorch, WritesTheNetworksAsTheirGoldens) {
  for (const std::string name : {"alexnet_small", "bert_small", "lstm_lm_tied_small"}) {
    expect_golden("libtorch/" + name + ".cc", of_zoo(name, adam_training()));
  }
  expect_golden("libtorch/sequences.cc", of_text(kSequencesModel, adam_training()));
  expect_golden("libtorch/sequences_as_is.cc", of_text(kSequencesModel, mnist_training(Track::kAsIs)));
}

// `full` presets are not trained in tests: that they are emitted at all is tested here.
TEST(Libtorch, WritesEveryWorkloadOfTheZoo) {
  for (const zoo::Entry& entry : zoo::entries()) {
    SCOPED_TRACE(entry.name);
    EXPECT_FALSE(of_zoo(entry.name, adam_training()).empty());
  }
}

TEST(Libtorch, WritesEveryOtherOpAsItsGolden) {
  expect_golden("libtorch/all_sorts.cc", of_text(kAllSortsModel, adam_training()));
  const std::string text = of_text(kAllSortsModel, mnist_training(Track::kAsIs), "true");
  expect_golden("libtorch/all_sorts_as_is.cc", text);
  EXPECT_FALSE(holds(text, ".eps("));
}

// From "class" on: the forms that torch::optim lacks. tests/op_parity executes them against the referee.
TEST(Libtorch, WritesEveryOptimizerAsItsGolden) {
  const double lr = 0.01;
  const auto sgd = OptimizerKind::kSgd, rmsprop = OptimizerKind::kRmsprop, adam = OptimizerKind::kAdam,
             adamw = OptimizerKind::kAdamW;
  const auto decoupled = DecayForm::kDecoupled;
  const auto inside = EpsForm::kInside, hat = EpsForm::kHat;
  const std::pair<const char*, ir::Optimizer> cases[] = {
      {"sgd", {.kind = sgd, .lr = lr}},
      {"sgd_momentum_decoupled",
       {.kind = sgd, .lr = lr, .momentum = 0.9, .weight_decay = 0.1, .decay_form = decoupled}},
      {"rmsprop_l2", {.kind = rmsprop, .lr = lr, .momentum = 0.5, .eps = 1e-3, .weight_decay = 0.1}},
      {"rmsprop_decoupled",
       {.kind = rmsprop, .lr = lr, .eps = 1e-3, .weight_decay = 0.1, .decay_form = decoupled}},
      {"rmsprop_inside", {.kind = rmsprop, .lr = lr, .rho = 0.8, .eps = 1e-3, .eps_form = inside}},
      {"rmsprop_inside_momentum_l2",
       {.kind = rmsprop, .lr = lr, .momentum = 0.9, .eps = 1e-3, .eps_form = inside, .weight_decay = 0.1}},
      {"adam_l2", {.kind = adam, .lr = lr, .eps = 1e-3, .weight_decay = 0.1}},
      {"adam_inside_l2", {.kind = adam, .lr = lr, .eps = 1e-3, .eps_form = inside, .weight_decay = 0.1}},
      {"adam_hat_l2", {.kind = adam, .lr = lr, .eps = 1e-3, .eps_form = hat, .weight_decay = 0.1}},
      {"adam_decoupled", {.kind = adam, .lr = lr, .eps = 1e-3, .weight_decay = 0.1, .decay_form = decoupled}},
      {"adamw", {.kind = adamw, .lr = lr, .beta1 = 0.8, .eps = 1e-3, .weight_decay = 0.1}},
      {"adamw_inside", {.kind = adamw, .lr = lr, .eps = 1e-3, .eps_form = inside, .weight_decay = 0.1}},
      {"adamw_hat", {.kind = adamw, .lr = lr, .eps = 1e-3, .eps_form = hat, .weight_decay = 0.1}},
  };
  std::string all;
  for (const auto& [name, optimizer] : cases) {
    SCOPED_TRACE(name);
    ir::Training training = adam_training();
    training.optimizer = optimizer;
    const std::string text = of_zoo("mlp_small", training);
    const size_t begin = text.find("TORCH_MODULE"), end = text.find("Tensor train_step");
    ASSERT_LT(begin, end);
    all += std::string("// ") + name + "\n" + text.substr(begin, end - begin);
  }
  expect_golden("libtorch/optimizers.txt", all);
}

TEST(Libtorch, AsIsLeavesUnstatedKeysToLibtorch) {
  ir::Training training = adam_training(Track::kAsIs);
  training.optimizer = {.kind = OptimizerKind::kAdam,
                        .lr = 0.01,
                        .eps = 1e-3,
                        .eps_form = EpsForm::kInside,
                        .weight_decay = 0.1};
  const std::string plain = of_zoo("mlp_small", training);
  EXPECT_TRUE(holds(plain, "options(kLearningRate);\n  return torch::optim::Adam(")) << plain;
  EXPECT_FALSE(holds(plain, "weights.safetensors"));
  EXPECT_TRUE(holds(plain, "torch::randperm"));
  EXPECT_FALSE(holds(plain, "TF32"));
  training.optimizer.stated = {"beta2", "eps_form"};
  training.optimizer.beta2 = 0.95;
  const std::string stated = of_zoo("mlp_small", training);
  EXPECT_TRUE(holds(stated, "class AdamEpsInside"));
  EXPECT_TRUE(holds(stated, "options.betas({0.9, 0.95}).eps(1e-8).weight_decay(0.0);")) << stated;
}

TEST(Libtorch, EverySettingIsVisible) {
  const ir::Training training = mnist_training();
  EXPECT_NE(of_zoo("mnist_cnn", training, "true"), of_zoo("mnist_cnn", training, "false"));
}

TEST(Libtorch, SharesOneModuleBetweenEqualNodesOnly) {
  const std::string text = of_text(
      "workload m(x: f32[N,3], y: i32[N]) {\n"
      " a = linear(x; weight=fc.weight[3,3], bias=fc.bias[3])\n b = relu(a)\n"
      " c = linear(b; weight=fc.weight[3,3], bias=fc.bias[3])\n"
      " d = linear(c; weight=fc.weight[3,3])\n loss = softmax_cross_entropy(d, y)\n}",
      adam_training());
  EXPECT_TRUE(
      holds(text, "x = torch::relu(fc(x));\n    x = fc(x);\n    return torch::linear(x, fc->weight);"))
      << text;
}

// Inputs that only the loss or nobody reads; a member, an input and a keyword of one name; numbers as names.
TEST(Libtorch, WritesStrangeNamesAndComputedTargets) {
  expect_golden("libtorch/strange_names.cc",
                of_text("workload class.1(model: f32[N,4], class: f32[N,4], unused: i32[N,2]) {\n"
                        " a = linear(model; weight=0.in.weight[4,4], bias=0.in.bias[4])\n"
                        " b = linear(class; weight=1.kernel[4,4], bias=1.shift.0[4])\n"
                        " c = relu(b)\n dead = add(a, c)\n s = add(a, model)\n m = mul(s, c)\n"
                        " t = layer_norm(c; weight=scale[4], bias=shift[4])\n loss = mse(m, t)\n}",
                        adam_training(Track::kAsIs)));
  expect_golden("libtorch/sequence_labels.cc",
                of_text("workload tagger(tags: i32[N,7], words: i32[N,7]) {\n"
                        " e = embedding(words; weight=words.weight[11,6])\n"
                        " z = linear(e; weight=tags.weight[5,6], bias=tags.bias[5])\n"
                        " loss = softmax_cross_entropy(z, tags)\n}",
                        adam_training()));
}

TEST(Libtorch, BreaksLongStatementsWhereClangFormatDoes) {
  CodeWriter out(2);
  libtorch::statement(out, "short(a, b);");
  libtorch::call(out, "const Tensor result = torch::some_function",
                 {"a_rather_long_argument", "another_argument_of_some_length", "{1, 2, 3}", "last"}, ";");
  EXPECT_EQ(out.text(),
            "short(a, b);\n"
            "const Tensor result = torch::some_function(a_rather_long_argument, "
            "another_argument_of_some_length,\n"
            "                                           {1, 2, 3}, last);\n");
}

TEST(Libtorch, ListsItsDefaults) {
  const Result<ir::Workload> workload = ir::parse(kAllSortsModel);
  std::string text;
  for (const OptimizerKind kind :
       {OptimizerKind::kSgd, OptimizerKind::kRmsprop, OptimizerKind::kAdam, OptimizerKind::kAdamW}) {
    ir::Training training = adam_training(Track::kAsIs);
    training.optimizer.kind = kind;
    const Request request{*workload, training, {{"channels_last", "false"}}, "t.cc"};
    for (const Default& line : libtorch_framework().defaults(request)) {
      text += ir::name(kind) + " | " + line.topic + " | " + line.value + "\n";
    }
  }
  expect_golden("torch/defaults.txt", text);  // torch and libtorch are one library
}

}  // namespace
}  // namespace bakeoff::emit
