#include "emit/tensorflow/tensorflow.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "../tests/golden.h"
#include "../tests/golden_models.h"
#include "ir/text.h"
#include "zoo/zoo.h"

namespace bakeoff::emit {
namespace {

using ir::EpsForm;
using ir::Optimizer;
using ir::OptimizerKind;
using ir::Track;

Settings settings(const std::string& mode, const std::string& jit_compile, const std::string& steps = "1") {
  return {{"mode", mode}, {"jit_compile", jit_compile}, {"steps_per_call", steps}};
}
const Settings kFunction = settings("function", "false");
const Settings kEager = settings("eager", "false");
const Settings kXla = settings("function", "true");
const Settings kLoop = settings("function", "false", "8");

Emitted emitted(const ir::Workload& workload, const ir::Training& training,
                const Settings& settings = kFunction) {
  const Request request{workload, training, settings,
                        training.predicts() ? "predict_tensorflow.py" : "train_tensorflow.py"};
  const Result<Emitted> result = tensorflow_framework().emit(request);
  EXPECT_TRUE(result.has_value()) << (result ? "" : result.error().text());
  return result ? *result : Emitted{};
}

Emitted of_zoo(const std::string& name, const ir::Training& training, const Settings& settings = kFunction) {
  return emitted(*zoo::build(name), training, settings);
}

Emitted of_text(const std::string& text, const ir::Training& training, const Settings& settings = kFunction) {
  const Result<ir::Workload> workload = ir::parse(text);
  EXPECT_TRUE(workload.has_value()) << (workload ? "" : workload.error().text());
  return workload ? emitted(*workload, training, settings) : Emitted{};
}

TEST(TensorFlow, HandsALoopToTheGraph) {
  Settings scan = kFunction;
  scan["loops"] = "scan";
  const std::string text = of_text(kDecoderModel, adam_training(), scan).source;
  for (const char* part :
       {"= tf.TensorArray(", "        for t in tf.range(3):\n", "= parts.write(t, ", "parts.stack()"})
    EXPECT_TRUE(holds(text, part)) << part << text;
  scan["mode"] = "eager";
  const auto refused =
      tensorflow_framework().emit({*ir::parse(kDecoderModel), adam_training(), scan, "train_tensorflow.py"});
  ASSERT_FALSE(refused);
  EXPECT_TRUE(holds(refused.error().text(), "loops = scan needs mode = function")) << refused.error().text();
}

TEST(TensorFlow, SplitsBatchesOverDevices) {
  Settings two = kFunction;
  two["devices"] = "2";
  expect_golden("tensorflow/devices.py", of_text(kAllSortsModel, adam_training(), two).source);
  const std::string as_is = of_zoo("mlp_small", adam_training(Track::kAsIs), two).source;
  EXPECT_TRUE(holds(as_is, "return iter(STRATEGY.experimental_distribute_dataset(data))")) << as_is;
}

TEST(TensorFlow, StartsAProcessForEachDevice) {
  Settings two = kFunction;
  two["devices"] = two["processes"] = "2";
  expect_golden("tensorflow/processes.py", of_text(kAllSortsModel, adam_training(), two).source);
  const auto emit = [](const Settings& settings) {
    return tensorflow_framework().emit(
        {*zoo::build("mlp_small"), adam_training(), settings, "train_tensorflow.py"});
  };
  two["input"] = "tf_data";
  EXPECT_TRUE(holds(emit(two).error().text(), "each would shuffle rows for itself"));
  two["devices"] = "4";
  EXPECT_TRUE(holds(emit(two).error().text(), "processes = 2 of devices = 4")) << emit(two).error().text();
}

// Only what the devices' losses add up to.
TEST(TensorFlow, RefusesOnDevicesWhatNoSumOfThemGives) {
  Settings two = kFunction;
  two["devices"] = "2";
  const auto emit = [&](const std::string& losses, const Settings& settings) {
    const auto workload = ir::parse(
        "workload w(x: f32[N,3], y: i32[N]) {\n"
        "  z = linear(x; weight=a.weight[4,3])\n" +
        losses + "}");
    return tensorflow_framework().emit({*workload, adam_training(), settings, "train_tensorflow.py"});
  };
  const std::string mean = "  loss = softmax_cross_entropy(z, y)\n";
  EXPECT_TRUE(holds(emit(mean, two)->source, "loss = loss_fn(prediction, y) / DEVICES\n"));
  const auto sum = emit("  loss = softmax_cross_entropy(z, y) reduction=sum\n", two);
  EXPECT_TRUE(holds(sum->source, "loss = loss_fn(prediction, y)\n")) << sum->source;
  const std::pair<std::string, std::string> refused[] = {
      {"  loss = softmax_cross_entropy(z, y) ignore_index=0\n", "those that count"},
      {"  a = softmax_cross_entropy(z, y)\n  b = softmax_cross_entropy(z, y) reduction=sum\n"
       "  loss = add(a, b)\n",
       "another one a sum"}};
  for (const auto& [losses, why] : refused) {
    const auto none = emit(losses, two);
    ASSERT_FALSE(none) << losses;
    EXPECT_TRUE(holds(none.error().text(), why)) << none.error().text();
  }
  for (const auto& [name, value] :
       Settings{{"mode", "eager"}, {"jit_compile", "true"}, {"steps_per_call", "2"}}) {
    Settings other = two;
    other[name] = value;
    const auto none = emit(mean, other);
    ASSERT_FALSE(none) << name;
    EXPECT_TRUE(holds(none.error().text(), "devices above 1 need " + name)) << none.error().text();
  }
}

TEST(TensorFlow, TakesAllPlacesOfAnAxisInOneStatement) {
  const std::string text = of_text(kStackedAttentionModel, adam_training()).source;
  for (const char* part : {"q, k, v = tf.unstack(u, axis=2)", "[:, 4]"})
    EXPECT_NE(text.find(part), std::string::npos) << part << text;
}

TEST(TensorFlow, CallsWhatAttentionReadsByItsNames) {
  const std::string text = of_text(kFusedAttentionModel, adam_training()).source;
  for (const char* part :
       {"q, k, v = tf.split(h, 3, axis=2)", "h = attention(q, k, v, causal=True, window=3)", "return x + h"})
    EXPECT_NE(text.find(part), std::string::npos) << part << text;
}

TEST(TensorFlow, CastsTablesThatFilesHoldInFloat64) {
  for (const char* name : {"t", "t.table"}) {
    const std::string text = of_text(fmt::format("workload tables(x: f32[N,3], y: f32[N,3]) {{\n"
                                                 "  t = parameter(; weight={0}[1,3] frozen)\n"
                                                 "  s = add(x, t)\n  o = linear(s; weight=w[3,3])\n"
                                                 "  loss = mse(o, y)\n  values {0}: 0.1*3\n}}\n",
                                                 name),
                                     adam_training())
                                 .source;
    EXPECT_NE(text.find("array.astype(np.float32)"), std::string::npos) << text;
  }
}

// Products repeat a single head as they are.
TEST(TensorFlow, CopiesNoSingleHeadOfKeys) {
  for (const int heads : {1, 2}) {
    const std::string text = of_text(fmt::format("workload heads(x: f32[N,5,4,2], y: f32[N,5,4,2]) {{\n"
                                                 "  k = slice(x) axis=2 begin=0 end={} step=1\n"
                                                 "  w = parameter(; weight=w[1,1,4,2])\n  q = mul(x, w)\n"
                                                 "  o = attention(q, k, k)\n  loss = mse(o, y)\n}}\n",
                                                 heads),
                                     adam_training())
                                 .source;
    EXPECT_EQ(text.find("tf.repeat") == std::string::npos, heads == 1) << text;
  }
}

TEST(TensorFlow, DropsTheWeightsOfAttention) {
  const std::string text = of_text(kDroppedAttentionModel, adam_training()).source;
  for (const char* part : {" = attention(heads, heads, heads, rate=DROPOUT_RATE)",
                           "causal=True, rate=DROPOUT_RATE)", "weights = tf.nn.dropout(weights, rate=rate)"})
    EXPECT_NE(text.find(part), std::string::npos) << part << text;
}

TEST(TensorFlow, WritesWhatSurroundsAnUpdate) {
  expect_golden("tensorflow/updates.py", of_zoo("mlp_small", updates_training(4)).source);
}

TEST(TensorFlow, WritesTheNetworksAsTheirGoldens) {
  for (const std::string name : {"alexnet_small", "bert_small", "lstm_lm_tied_small"}) {
    expect_golden("tensorflow/" + name + ".py", of_zoo(name, adam_training()).source);
  }
  expect_golden("tensorflow/sequences.py", of_text(kSequencesModel, adam_training()).source);
  expect_golden("tensorflow/losses.py", of_text(kLossesModel, adam_training()).source);
  expect_golden("tensorflow/ctc.py", of_text(kCtcModel, adam_training()).source);
}

// What adds up many elements is in float32; all_sorts has most of it.
TEST(TensorFlow, WritesPrecisionsAsTheirGoldens) {
  Settings chosen = kFunction;
  chosen["precision"] = "bfloat16";
  expect_golden("tensorflow/precision_bfloat16.py", of_zoo("mnist_cnn", mnist_training(), chosen).source);
  expect_golden("tensorflow/precision_bfloat16_mlp_deep.py",
                of_zoo("mlp_deep", adam_training(), chosen).source);
  expect_golden("tensorflow/precision_bfloat16_all_sorts.py",
                of_text(kAllSortsModel, adam_training(), chosen).source);
  chosen["precision"] = "float16";
  expect_golden("tensorflow/precision_float16_alexnet.py",
                of_zoo("alexnet_small", adam_training(), chosen).source);
  expect_golden("tensorflow/precision_float16_sequences.py",
                of_text(kSequencesModel, adam_training(), chosen).source);
  chosen["tf32"] = "true";
  expect_golden("tensorflow/precision_float16_tf32_as_is.py",
                of_zoo("mlp_small", adam_training(Track::kAsIs), chosen).source);
}

TEST(TensorFlow, AddsUpSizesThatDifferInFloat32) {
  Settings chosen = kFunction;
  chosen["precision"] = "bfloat16";
  const std::string gates = of_text(kGatesModel, adam_training(), chosen).source;
  EXPECT_TRUE(holds(gates, "in_float32(tf.multiply, x, tf.cast(gate, tf.float32))\n")) << gates;
  EXPECT_TRUE(holds(gates, "in_float32(tf.add, scaled, tf.cast(gate, tf.float32))\n")) << gates;
  EXPECT_TRUE(holds(gates, "        twice = moved + moved\n")) << gates;
  const std::string alike = of_text(kComputedTargetModel, adam_training(), chosen).source;
  EXPECT_TRUE(holds(alike, "def half(")) << alike;
  EXPECT_FALSE(holds(alike, "in_float32")) << alike;
}

TEST(TensorFlow, ComputedTargetsComeBackInFloat32) {
  Settings chosen = kFunction;
  chosen["precision"] = "bfloat16";
  const std::string real = of_text(kComputedTargetModel, adam_training(), chosen).source;
  EXPECT_TRUE(holds(real, "        return tf.cast(a, tf.float32), tf.cast(b, tf.float32)\n")) << real;
  EXPECT_TRUE(holds(real, "        half_2 = half(half_2)\n")) << real;
  const std::string integers = of_text(kComputedLabelsModel, adam_training(), chosen).source;
  EXPECT_TRUE(holds(integers, "        return tf.cast(logits, tf.float32), labels\n")) << integers;
}

TEST(TensorFlow, WritesEveryInputPipelineAsItsGolden) {
  const auto with = [](Settings chosen, const char* input) {
    chosen["input"] = input;
    return chosen;
  };
  const ir::Training as_is = mnist_training(Track::kAsIs);
  const auto mnist = [](const ir::Training& training, const Settings& chosen) {
    return of_zoo("mnist_cnn", training, chosen).source;
  };
  expect_golden("tensorflow/input_tf_data.py", mnist(mnist_training(), with(kFunction, "tf_data")));
  expect_golden("tensorflow/input_tf_data_loop.py", mnist(mnist_training(), with(kLoop, "tf_data")));
  expect_golden("tensorflow/input_tf_data_as_is.py", mnist(as_is, with(kFunction, "tf_data")));
  expect_golden("tensorflow/input_preloaded_as_is.py", mnist(as_is, with(kFunction, "preloaded")));
  EXPECT_EQ(mnist(mnist_training(), with(kLoop, "preloaded")), mnist(mnist_training(), kLoop));
}

// `full` presets are not trained in tests: that they are emitted at all is tested here.
TEST(TensorFlow, WritesEveryWorkloadOfTheZoo) {
  for (const zoo::Entry& entry : zoo::entries()) {
    SCOPED_TRACE(entry.name);
    EXPECT_FALSE(of_zoo(entry.name, adam_training()).source.empty());
  }
}

TEST(TensorFlow, WritesTheZooAsItsGoldens) {
  const Emitted cnn = of_zoo("mnist_cnn", mnist_training());
  expect_golden("tensorflow/mnist_cnn.py", cnn.source);
  expect_golden("tensorflow/mnist_cnn.layout.json", cnn.layout_json);
  expect_golden("tensorflow/mnist_cnn_eager.py", of_zoo("mnist_cnn", mnist_training(), kEager).source);
  expect_golden("tensorflow/mnist_cnn_xla.py", of_zoo("mnist_cnn", mnist_training(), kXla).source);
  expect_golden("tensorflow/mnist_cnn_loop.py", of_zoo("mnist_cnn", mnist_training(), kLoop).source);
  expect_golden("tensorflow/mlp_deep_loop_as_is.py",
                of_zoo("mlp_deep", adam_training(Track::kAsIs), settings("function", "true", "8")).source);
  expect_golden("tensorflow/mnist_cnn_as_is.py", of_zoo("mnist_cnn", mnist_training(Track::kAsIs)).source);
  expect_golden("tensorflow/mlp_deep.py", of_zoo("mlp_deep", adam_training()).source);
  expect_golden("tensorflow/mlp_deep_as_is.py", of_zoo("mlp_deep", adam_training(Track::kAsIs)).source);
  ir::Training sgd = mnist_training();
  sgd.optimizer = {
      .kind = OptimizerKind::kSgd, .lr = 0.1, .momentum = 0.9, .nesterov = true, .weight_decay = 5e-4};
  expect_golden("tensorflow/residual_cnn.py", of_zoo("residual_cnn", sgd).source);
}

TEST(TensorFlow, WritesEveryOtherOpAsItsGolden) {
  expect_golden("tensorflow/all_sorts_xla.py", of_text(kAllSortsModel, adam_training(), kXla).source);
  expect_golden("tensorflow/all_sorts.layout.json", of_text(kAllSortsModel, adam_training()).layout_json);
  expect_golden("tensorflow/all_sorts.py", of_text(kAllSortsModel, adam_training()).source);
  expect_golden("tensorflow/all_sorts_as_is.py",
                of_text(kAllSortsModel, mnist_training(Track::kAsIs)).source);
}

TEST(TensorFlow, WritesEveryFormOfTheOptimizers) {
  struct Case {
    Optimizer optimizer;
    std::string want;
  };
  const Case cases[] = {
      {{.kind = OptimizerKind::kSgd}, "variable.assign_sub(LEARNING_RATE * g)"},
      {{.kind = OptimizerKind::kSgd, .momentum = 0.9, .nesterov = true},
       "variable.assign_sub(LEARNING_RATE * (g + MOMENTUM * u))"},
      {{.kind = OptimizerKind::kRmsprop}, "step = g / (tf.sqrt(square) + EPSILON)"},
      {{.kind = OptimizerKind::kRmsprop, .momentum = 0.5, .eps_form = EpsForm::kInside},
       "step = g / tf.sqrt(square + EPSILON)\n            u = MOMENTUM * velocity + step\n"},
      {{.kind = OptimizerKind::kAdam}, "step = moment / (tf.sqrt(square) + EPSILON * root)"},
      {{.kind = OptimizerKind::kAdam, .eps_form = EpsForm::kInside},
       "step = moment / tf.sqrt(square + EPSILON * root**2)"},
      {{.kind = OptimizerKind::kAdam, .eps_form = EpsForm::kHat, .weight_decay = 0.1},
       "            g = g + WEIGHT_DECAY * variable\n            moment.assign_add("},
      {{.kind = OptimizerKind::kAdamW, .weight_decay = 0.1},
       "variable.assign_sub(rate * step + LEARNING_RATE * WEIGHT_DECAY * variable)"},
  };
  for (const Case& c : cases) {
    ir::Training training = adam_training();
    training.optimizer = c.optimizer;
    const std::string source = of_zoo("mlp_small", training).source;
    EXPECT_TRUE(holds(source, c.want)) << "want " << c.want << " in\n" << source;
  }
}

TEST(TensorFlow, AsIsTakesOnlyWhatTheRecipeStates) {
  ir::Training training = mnist_training(Track::kAsIs);
  training.optimizer.eps = 1e-3;
  training.optimizer.rho = 0.5;
  training.optimizer.stated = {"rho"};
  const std::string source = of_zoo("mlp_small", training).source;
  EXPECT_TRUE(holds(source, "RHO = 0.5\nEPSILON = 1e-7\n")) << source;
}

TEST(TensorFlow, RefusesWhatDoesNotExist) {
  ir::Training training = mnist_training();
  training.optimizer.eps_form = EpsForm::kHat;
  const auto workload = *zoo::build("mlp_small");
  const Request request{workload, training, kFunction, "train_tensorflow.py"};
  EXPECT_TRUE(holds(tensorflow_framework().emit(request).error().message, "no eps_form \"hat\""));
}

TEST(TensorFlow, RefusesXlaWithoutAFunction) {
  const ir::Training training = mnist_training();
  const auto workload = *zoo::build("mlp_small");
  const Request request{workload, training, {{"mode", "eager"}, {"jit_compile", "true"}}, "t.py"};
  EXPECT_TRUE(holds(tensorflow_framework().emit(request).error().message, "needs mode = function"));
}

TEST(TensorFlow, DefaultsLeaveOutWhatIsStated) {
  const auto workload = *zoo::build("mlp_deep");
  ir::Training training = mnist_training(Track::kAsIs);
  const auto value = [&](const std::string& topic) {
    for (const Default& line : tensorflow_framework().defaults({workload, training, {}, ""})) {
      if (line.topic == topic) return line.value;
    }
    return std::string("-");
  };
  EXPECT_EQ(value(topic::kEps), "1e-7");
  EXPECT_EQ(value(topic::kBatchNormEps), "1e-3");
  training.optimizer.stated = {"eps"};
  EXPECT_EQ(value(topic::kEps), "-");
}

TEST(TensorFlow, ComputedTargetsComeFromTheForwardPass) {
  const std::string source = of_text(R"(workload w(x: f32[N,4]) {
    a = linear(x; weight=a.weight[3,4])
    b = linear(x; weight=b.weight[3,4])
    loss = mse(a, b)
  })",
                                     adam_training())
                                 .source;
  EXPECT_TRUE(holds(source, "        return a, b\n"));
  EXPECT_TRUE(holds(source, "        prediction, target = model(x)\n"));
}

TEST(TensorFlow, WritesPredictionsAsTheirGoldens) {
  ir::Training training = mnist_training();
  training.scenario = ir::Scenario::kPredict;
  expect_golden("tensorflow/predict_mnist_cnn.py", of_zoo("mnist_cnn", training).source);
  expect_golden("tensorflow/predict_mnist_cnn_xla.py", of_zoo("mnist_cnn", training, kXla).source);
  expect_golden("tensorflow/predict_all_sorts.py", of_text(kAllSortsModel, training).source);
  training.track = ir::Track::kAsIs;
  expect_golden("tensorflow/predict_residual_cnn_as_is.py", of_zoo("residual_cnn", training).source);
}

TEST(TensorFlow, APredictionNeedsNoTarget) {
  ir::Training training = mnist_training();
  training.scenario = ir::Scenario::kPredict;
  const std::string source = of_text(R"(workload w(x: f32[N,4], y: f32[N,4]) {
    a = linear(x; weight=a.weight[3,4])
    b = linear(y; weight=b.weight[3,4])
    loss = mse(a, b)
  })",
                                     training)
                                 .source;
  EXPECT_TRUE(holds(source, "def predict_step(model, x):\n    return model(x)\n")) << source;
}

// TensorFlow joins the two, and aborts where the pads of such a convolution are listed.
TEST(TensorFlow, ADepthwiseConvolutionWithABiasHasNoListOfPads) {
  const auto source = [](const std::string& attributes, const std::string& bias) {
    return of_text("workload w(x: f32[N,4,8,8], y: f32[N,4]) {\n  c = conv2d(x; weight=c.weight[4,1,3,3]" +
                       bias + ") groups=4 " + attributes +
                       "\n  p = global_avg_pool2d(c)\n  loss = mse(p, y)\n}\n",
                   mnist_training())
        .source;
  };
  const std::string bias = ", bias=c.bias[4]";
  EXPECT_TRUE(holds(source("pad=1,1,1,1", bias), "padding=\"SAME\""));
  const std::string strided = source("stride=2,2 pad=1,1,1,1", bias);
  EXPECT_TRUE(holds(strided, "padding=\"VALID\"")) << strided;
  EXPECT_TRUE(holds(strided, "tf.pad(x, [[0, 0], [1, 1], [1, 1], [0, 0]])")) << strided;
  EXPECT_TRUE(holds(source("stride=2,2 pad=1,1,1,1", ""), "padding=[[0, 0], [1, 1], [1, 1], [0, 0]]"));
}

// So that blocks which differ in their strides stay one class.
TEST(TensorFlow, ConvolutionsSaySameAllOrNone) {
  const auto source = [](const std::string& second) {
    return of_text(
               "workload w(x: f32[N,3,8,8], y: f32[N,4]) {\n  c = conv2d(x; weight=c.weight[4,3,3,3]) pad=1,1,1,1\n" +
                   ("  d = conv2d(c; weight=d.weight[4,4,3,3]) " + second) +
                   "\n  p = global_avg_pool2d(d)\n  loss = mse(p, y)\n}\n",
               mnist_training())
        .source;
  };
  EXPECT_TRUE(holds(source("stride=2,2 pad=0,1,0,1"), "self.d_weight, strides=2, padding=\"SAME\""));
  const std::string torchs = source("stride=2,2 pad=1,1,1,1");
  EXPECT_FALSE(holds(torchs, "\"SAME\"")) << torchs;
}

// Of a helper that has no default for it.
TEST(TensorFlow, AGroupedConvolutionInAClassSaysItsStride) {
  std::string nodes, in = "x";
  for (const char* part : {"a", "b"}) {
    nodes += fmt::format(
        "  {0}_1 = conv1d({1}; weight={0}.one.weight[4,2,3]) groups=2 pad=1,1\n  {0}_2 = relu({0}_1)\n"
        "  {0}_3 = conv1d({0}_2; weight={0}.two.weight[4,4,1])\n",
        part, in);
    in = fmt::format("{}_3", part);
  }
  const std::string source =
      of_text("workload w(x: f32[N,4,8], y: f32[N,4,8]) {\n" + nodes + "  loss = mse(" + in + ", y)\n}\n",
              mnist_training())
          .source;
  EXPECT_TRUE(holds(source, "conv1d_xla(\n            x, self.one_weight, stride=1,") ||
              holds(source, "conv1d_xla(x, self.one_weight, stride=1,"))
      << source;
}

// "SAME" and "VALID" are a parameter of a class like a number.
TEST(TensorFlow, ClassesTakeTheirPaddingAsAParameter) {
  std::string nodes, in = "x";
  for (const char* part : {"a", "b", "c"}) {
    const std::string size = *part == 'b' ? "4,4,1,1" : "4,4,3,3", pad = *part == 'b' ? "" : " pad=1,1,1,1";
    for (const char* layer : {"one", "two", "three"}) {
      const std::string name = fmt::format("{}_{}", part, layer);
      nodes += fmt::format("  {0} = conv2d({1}; weight={2}.{3}.weight[{4}]){5}\n", name, in, part, layer,
                           size, pad);
      in = name;
    }
  }
  const std::string source = of_text("workload w(x: f32[N,4,8,8], y: f32[N,4]) {\n" + nodes +
                                         "  p = global_avg_pool2d(" + in + ")\n  loss = mse(p, y)\n}\n",
                                     mnist_training())
                                 .source;
  EXPECT_TRUE(holds(source, "def __init__(self, weights, prefix, padding=\"VALID\"):")) << source;
  EXPECT_TRUE(holds(source, "self.b = Block(weights, \"b\")")) << source;
  EXPECT_TRUE(holds(source, "self.c = Block(weights, \"c\", padding=\"SAME\")")) << source;
}

// tf.where takes the type of its first branch: float32 of a number, also where the model is float64.
TEST(TensorFlow, ANumberAsFirstBranchHasTheTypeOfTheOther) {
  const std::string source = of_text(R"(workload w(x: f32[N,4], y: f32[N,4]) {
    zero = constant() value=0
    low = constant() value=-inf
    negative = less(x, zero)
    masked = where(negative, low, x)
    a = linear(masked; weight=a.weight[4,4])
    other = where(negative, a, zero)
    loss = mse(other, y)
  })",
                                     mnist_training())
                                 .source;
  EXPECT_TRUE(holds(source, "tf.where(negative, tf.constant(float(\"-inf\"), x.dtype), x)")) << source;
  EXPECT_TRUE(holds(source, "tf.where(negative, a, 0.0)")) << source;
}

}  // namespace
}  // namespace bakeoff::emit
