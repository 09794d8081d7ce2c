#include "emit/keras/keras.h"

#include <gtest/gtest.h>

#include "../tests/golden.h"
#include "../tests/golden_models.h"
#include "ir/text.h"
#include "zoo/zoo.h"

namespace bakeoff::emit {
namespace {

using ir::DecayForm;
using ir::EpsForm;
using ir::Optimizer;
using ir::OptimizerKind;
using ir::Track;

Settings settings(const std::string& backend = "tensorflow", const std::string& jit = "auto",
                  const std::string& steps = "1") {
  return {{"backend", backend}, {"jit_compile", jit}, {"steps_per_execution", steps}};
}

Result<Emitted> emit_text(const std::string& text, const ir::Training& training,
                          const Settings& chosen = settings()) {
  const Result<ir::Workload> workload = ir::parse(text);
  if (!workload) return workload.error();
  return keras_framework().emit({*workload, training, chosen, "train_keras.py"});
}

Emitted emit_zoo(const std::string& name, const ir::Training& training, const Settings& chosen = settings()) {
  const Result<Emitted> result =
      keras_framework().emit({*zoo::build(name), training, chosen, "train_keras.py"});
  EXPECT_TRUE(result.has_value()) << (result ? "" : result.error().text());
  return result ? *result : Emitted{};
}

void expect_goldens(const std::string& name, const Emitted& emitted) {
  expect_golden("keras/" + name + ".py", emitted.source);
  expect_golden("keras/" + name + ".layout.json", emitted.layout_json);
}

// A small model with an optimizer of choice.
std::string source_with(const Optimizer& optimizer, Track track = Track::kEqualised) {
  return emit_zoo("mlp_small", {.track = track, .optimizer = optimizer, .batch = 8}).source;
}

TEST(Keras, SplitsBatchesOverDevicesOnJax) {
  for (const std::string backend : {"jax", "tensorflow", "torch"}) {
    Settings two = settings(backend);
    two["devices"] = "2";
    const auto made =
        keras_framework().emit({*zoo::build("mlp_small"), adam_training(), two, "train_keras.py"});
    if (backend == "jax") {
      expect_golden("keras/devices.py", made->source);
    } else {
      ASSERT_FALSE(made) << backend;
      EXPECT_TRUE(holds(made.error().text(), "splits a batch on JAX, not on " + backend))
          << made.error().text();
    }
  }
  Settings eager = settings("jax", "false");
  eager["devices"] = "2";
  EXPECT_FALSE(keras_framework().emit({*zoo::build("mlp_small"), adam_training(), eager, "train_keras.py"}));
}

TEST(Keras, WritesTheNetworksAsTheirGoldens) {
  for (const std::string name : {"alexnet_small", "bert_small", "lstm_lm_tied_small"}) {
    expect_goldens(name, emit_zoo(name, adam_training()));
  }
  expect_goldens("bert_small_jax", emit_zoo("bert_small", adam_training(), settings("jax")));
  expect_goldens("sequences", emit_text(kSequencesModel, adam_training()).value());
  expect_goldens("sequences_jax", emit_text(kSequencesModel, adam_training(), settings("jax")).value());
}

TEST(Keras, TakesAllPlacesOfAnAxisInOneStatement) {
  const std::string text = emit_text(kStackedAttentionModel, adam_training(), settings("jax"))->source;
  for (const char* part : {"q, k, v = ops.unstack(h, axis=2)", "[:, 4]"})
    EXPECT_NE(text.find(part), std::string::npos) << part << text;
}

TEST(Keras, CallsWhatAttentionReadsByItsNames) {
  const std::string text = emit_text(kFusedAttentionModel, adam_training(), settings("jax"))->source;
  for (const char* part : {"q, k, v = ops.split(h, 3, axis=2)",
                           "h = attention(q, k, v, mask=window_mask(5, 3))", "return ops.add(x, h)"})
    EXPECT_NE(text.find(part), std::string::npos) << part << text;
}

TEST(Keras, DropsTheWeightsOfAttention) {
  for (const char* backend : {"jax", "tensorflow"}) {
    const std::string text = emit_text(kDroppedAttentionModel, adam_training(), settings(backend))->source;
    EXPECT_TRUE(holds(text, "attention(heads, heads, heads, rate=0.25)")) << text;
    EXPECT_TRUE(holds(text, "weights = layers.Dropout(rate)(weights)")) << text;
  }
}

// Layers are made in front of the loop, in which each iteration calls them.
TEST(Keras, PrintsALoopThatAnImporterHasUnrolled) {
  const std::string loop = R"(    start = Full([5], 0.0)(x)
    h1 = start
    parts = []
    a = layers.Dense(5, use_bias=False, name="a")
    b = layers.Dense(5, use_bias=False, name="b")
    for t in range(3):
        f1 = x[:, t]
        a1 = a(f1)
        b1 = b(h1)
        m1 = ops.add(a1, b1)
        h1 = ops.tanh(m1)
        parts.append(h1)
    all = ops.stack(parts, axis=1)
)";
  const std::string source = emit_text(kDecoderModel, adam_training()).value().source;
  EXPECT_TRUE(holds(source, loop)) << source;
}

TEST(Keras, WritesEveryInputPipelineAsItsGolden) {
  Settings chosen = settings();
  chosen["input"] = "tf_data";
  expect_goldens("input_tf_data", emit_zoo("mnist_cnn", mnist_training(), chosen));
  expect_goldens("input_tf_data_as_is", emit_zoo("mnist_cnn", mnist_training(Track::kAsIs), chosen));
  chosen = settings("jax");
  chosen["input"] = "py_dataset";
  expect_goldens("input_py_dataset_jax", emit_zoo("mnist_cnn", mnist_training(), chosen));
  expect_goldens("input_py_dataset_jax_as_is", emit_zoo("mnist_cnn", mnist_training(Track::kAsIs), chosen));
}

TEST(Keras, WritesPrecisionsAsTheirGoldens) {
  Settings chosen = settings();
  chosen["precision"] = "float16";
  expect_goldens("precision_float16", emit_zoo("mnist_cnn", mnist_training(), chosen));
  chosen["tf32"] = "true";
  expect_goldens("precision_float16_tf32_as_is", emit_zoo("mnist_cnn", mnist_training(Track::kAsIs), chosen));
  chosen = settings("jax");
  chosen["precision"] = "float16";
  expect_goldens("precision_float16_alexnet_jax", emit_zoo("alexnet_small", adam_training(), chosen));
  expect_goldens("precision_float16_sequences_jax",
                 emit_text(kSequencesModel, adam_training(), chosen).value());
  for (const std::string backend : {"jax", "torch"}) {
    chosen = settings(backend);
    chosen["precision"] = "bfloat16";
    chosen["tf32"] = "true";
    expect_goldens("precision_bfloat16_tf32_" + backend, emit_zoo("mlp_small", adam_training(), chosen));
  }
}

TEST(Keras, WritesWhatSurroundsAnUpdate) {
  expect_golden("keras/updates.py", emit_zoo("mlp_small", updates_training(1)).source);
  expect_golden("keras/updates_torch.py",
                emit_zoo("mlp_small", updates_training(1), settings("torch", "false")).source);
}

TEST(Keras, RefusesWhatFitCannotDo) {
  const auto refused =
      keras_framework().emit({*zoo::build("mlp_small"), updates_training(2), settings(), "train_keras.py"});
  ASSERT_FALSE(refused);
  EXPECT_TRUE(holds(refused.error().text(), "remove optimizer.accumulate")) << refused.error().text();
  ir::Training clips = adam_training();
  clips.optimizer.clip_norm = 1;
  const ir::Workload words = *zoo::build("lstm_lm_tied_small");
  EXPECT_FALSE(keras_framework().emit({words, clips, settings(), "train_keras.py"})) << "sparse gradients";
  EXPECT_TRUE(keras_framework().emit({words, clips, settings("jax"), "train_keras.py"}));
  ir::Workload frozen = words;  // has no gradient there
  for (ir::Parameter& p : frozen.parameters)
    p.frozen = p.name.starts_with("tokens") || p.name.starts_with("decoder");
  const auto kept = keras_framework().emit({frozen, clips, settings(), "train_keras.py"});
  EXPECT_TRUE(kept) << kept.error().text();
}

TEST(Keras, RefusesTfDataWhereTensorFlowIsNot) {
  Settings chosen = settings("torch");
  chosen["input"] = "tf_data";
  const auto refused =
      keras_framework().emit({*zoo::build("mlp_small"), mnist_training(), chosen, "train_keras.py"});
  ASSERT_FALSE(refused);
  EXPECT_TRUE(holds(refused.error().text(), "tf.data needs TensorFlow")) << refused.error().text();
}

// `full` presets are not trained in tests: that they are emitted at all is tested here.
TEST(Keras, WritesEveryWorkloadOfTheZoo) {
  for (const zoo::Entry& entry : zoo::entries()) {
    SCOPED_TRACE(entry.name);
    EXPECT_FALSE(emit_zoo(entry.name, adam_training()).source.empty());
  }
}

TEST(Keras, WritesTheZooAsItsGoldens) {
  expect_goldens("mnist_cnn", emit_zoo("mnist_cnn", mnist_training()));
  expect_goldens("mnist_cnn_jax_as_is",
                 emit_zoo("mnist_cnn", mnist_training(Track::kAsIs), settings("jax", "true", "4")));
  expect_goldens("mlp_deep_torch", emit_zoo("mlp_deep", adam_training(), settings("torch", "false")));
  expect_goldens("mlp_deep_as_is", emit_zoo("mlp_deep", adam_training(Track::kAsIs)));
  ir::Training sgd = mnist_training();
  sgd.optimizer = {
      .kind = OptimizerKind::kSgd, .lr = 0.1, .momentum = 0.9, .nesterov = true, .weight_decay = 5e-4};
  expect_goldens("residual_cnn_jax", emit_zoo("residual_cnn", sgd, settings("jax")));
}

TEST(Keras, WritesEveryOtherOpAsItsGolden) {
  const Result<Emitted> emitted = emit_text(kAllSortsModel, adam_training());
  ASSERT_TRUE(emitted.has_value()) << emitted.error().text();
  expect_goldens("all_sorts", *emitted);
}

TEST(Keras, ShowsItsSettings) {
  const std::string text = emit_zoo("mlp_small", mnist_training(), settings("jax", "false", "7")).source;
  EXPECT_TRUE(holds(text, "os.environ[\"KERAS_BACKEND\"] = \"jax\"\n"));
  EXPECT_TRUE(holds(text, "jit_compile=False"));
  EXPECT_TRUE(holds(text, "steps_per_execution=7"));
  EXPECT_EQ(keras_framework().environment(settings("jax")), "jax");
}

TEST(Keras, RejectsStepsPerExecutionOnTorch) {
  const Result<Emitted> result = keras_framework().emit(
      {*zoo::build("mlp_small"), mnist_training(), settings("torch", "auto", "2"), "t.py"});
  ASSERT_FALSE(result.has_value());
  EXPECT_EQ(result.error().message, "Keras on torch runs one step per execution");
}

TEST(Keras, UsesStockOptimizersWhereTheyFit) {
  EXPECT_TRUE(holds(source_with({.kind = OptimizerKind::kRmsprop, .eps_form = EpsForm::kInside}),
                    "optimizer = keras.optimizers.RMSprop("));
  EXPECT_TRUE(holds(source_with({.kind = OptimizerKind::kAdam, .eps_form = EpsForm::kHat}),
                    "optimizer = keras.optimizers.Adam("));
  EXPECT_TRUE(holds(
      source_with({.kind = OptimizerKind::kSgd, .weight_decay = 0.1, .decay_form = DecayForm::kDecoupled}),
      "keras.optimizers.SGD(\n        learning_rate=LEARNING_RATE, momentum=0.0, nesterov=False, "
      "weight_decay=0.1\n"));
}

TEST(Keras, NamesTheSubclassAfterTheFormKerasLacks) {
  const struct {
    Optimizer optimizer;
    const char* name;
  } cases[] = {
      {{.kind = OptimizerKind::kRmsprop, .eps_form = EpsForm::kOutside}, "RMSpropEpsOutside"},
      {{.kind = OptimizerKind::kRmsprop, .eps_form = EpsForm::kInside, .weight_decay = 0.1}, "RMSpropL2"},
      {{.kind = OptimizerKind::kAdam, .eps_form = EpsForm::kOutside}, "AdamEpsOutside"},
      {{.kind = OptimizerKind::kAdam, .eps_form = EpsForm::kInside, .weight_decay = 0.1}, "AdamEpsInsideL2"},
      {{.kind = OptimizerKind::kAdamW, .eps_form = EpsForm::kOutside, .weight_decay = 0.1},
       "AdamWEpsOutside"},
      {{.kind = OptimizerKind::kSgd, .weight_decay = 0.1}, "SGDL2"},
  };
  for (const auto& c : cases) {
    SCOPED_TRACE(c.name);
    const std::string text = source_with(c.optimizer);
    EXPECT_TRUE(holds(text, std::string("class ") + c.name + "(keras.optimizers."));
    EXPECT_TRUE(holds(text, std::string("optimizer = ") + c.name + "("));
  }
}

TEST(Keras, UpdatesAllVariablesAtOnceOnTorch) {
  for (const OptimizerKind kind : {OptimizerKind::kSgd, OptimizerKind::kRmsprop, OptimizerKind::kAdam}) {
    ir::Training training = mnist_training();
    training.optimizer = {.kind = kind, .weight_decay = 0.1};
    const std::string text = emit_zoo("mlp_small", training, settings("torch")).source;
    SCOPED_TRACE(text);
    EXPECT_TRUE(holds(text, "def _backend_update_step(self, grads, trainable_variables, learning_rate):"));
    EXPECT_TRUE(holds(text, "grads = torch._foreach_add(grads, variables, alpha=WEIGHT_DECAY)"));
    EXPECT_FALSE(holds(text, "def update_step("));
  }
  ir::Training stated = mnist_training(Track::kAsIs);
  stated.optimizer.eps_form = EpsForm::kOutside;
  stated.optimizer.stated = {"eps_form"};
  EXPECT_TRUE(holds(emit_zoo("mlp_small", stated, settings("torch")).source, "\nimport torch\n"));
}

TEST(Keras, AsIsWritesWhatTheRecipeStates) {
  Optimizer rmsprop{.kind = OptimizerKind::kRmsprop, .eps = 1e-8};
  EXPECT_TRUE(
      holds(source_with(rmsprop, Track::kAsIs), "keras.optimizers.RMSprop(learning_rate=LEARNING_RATE)\n"));
  rmsprop.stated = {"eps"};
  EXPECT_TRUE(holds(source_with(rmsprop, Track::kAsIs),
                    "keras.optimizers.RMSprop(learning_rate=LEARNING_RATE, epsilon=1e-8)\n"));
  rmsprop.stated = {"eps", "eps_form"};
  EXPECT_TRUE(holds(source_with(rmsprop, Track::kAsIs), "RMSpropEpsOutside("));
}

TEST(Keras, RejectsAHatForRmsprop) {
  const Result<Emitted> result =
      keras_framework().emit({*zoo::build("mlp_small"),
                              {.optimizer = {.kind = OptimizerKind::kRmsprop, .eps_form = EpsForm::kHat}},
                              settings(),
                              "t.py"});
  ASSERT_FALSE(result.has_value());
  EXPECT_TRUE(holds(result.error().message, "hat"));
}

TEST(Keras, RejectsATargetThatTheWorkloadComputes) {
  const Result<Emitted> result = emit_text(
      "workload w(x: f32[N,4]) {\n  a = linear(x; weight=a.weight[3,4])\n  b = linear(x; "
      "weight=b.weight[3,4])\n"
      "  loss = mse(a, b)\n}\n",
      adam_training());
  ASSERT_FALSE(result.has_value());
  EXPECT_TRUE(holds(result.error().message, "'b'")) << result.error().message;
}

TEST(Keras, RejectsAParameterThatUnlikeLayersShare) {
  const Result<Emitted> result = emit_text(
      "workload w(x: f32[N,2,5,5], y: f32[N,2,5,5]) {\n"
      "  a = conv2d(x; weight=c.weight[2,2,3,3]) pad=1,1,1,1\n"
      "  b = conv2d(a; weight=c.weight[2,2,3,3]) pad=2,2,2,2 dilation=2,2\n  loss = mse(b, y)\n}\n",
      adam_training());
  ASSERT_FALSE(result.has_value());
  EXPECT_TRUE(holds(result.error().message, "'c.weight' is shared by unlike layers ('a' and 'b')"));
}

TEST(Keras, ATableIsNotTheLayerOfALinearThatReadsIt) {
  const Result<Emitted> result = emit_text(
      "workload w(ids: i32[N,5], y: i32[N,5]) {\n  h = embedding(ids; weight=t.weight[9,4])\n"
      "  logits = linear(h; weight=t.weight[9,4])\n  loss = softmax_cross_entropy(logits, y)\n}\n",
      adam_training());
  ASSERT_TRUE(result) << result.error().text();
  EXPECT_TRUE(holds(result->source, "= DenseTiedToEmbedding(")) << result->source;
}

TEST(Keras, WritesSeveralLossesAsItsGolden) {
  const Result<Emitted> numpy = emit_text(kLossesModel, adam_training());
  ASSERT_TRUE(numpy) << numpy.error().text();
  expect_goldens("losses", *numpy);
  expect_goldens("ctc", *emit_text(kCtcModel, adam_training()));
  Settings chosen = settings();
  chosen["input"] = "tf_data";
  const Result<Emitted> dataset = emit_text(kLossesModel, adam_training(), chosen);
  ASSERT_TRUE(dataset);
  EXPECT_TRUE(holds(dataset->source, "from_tensor_slices((x, tuple(y)))")) << dataset->source;
  const Result<Emitted> computed = emit_text(
      "workload w(x: f32[N,4], y: i32[N]) {\n  a = linear(x; weight=a[3,4])\n  b = linear(x; weight=b[3,4])\n"
      "  main = softmax_cross_entropy(a, y)\n  same = mse(a, b)\n  loss = add(main, same)\n}\n",
      adam_training());
  ASSERT_FALSE(computed);
  EXPECT_TRUE(holds(computed.error().message, "but 'b' is computed by the workload 'w'"));
}

TEST(Keras, TiesALinearLayerToAnotherLayersWeight) {
  const Result<Emitted> result = emit_text(
      "workload w(x: f32[N,4], y: f32[N,4]) {\n  h1 = linear(x; weight=a.weight[4,4], bias=a.bias[4])\n"
      "  h2 = linear(h1; weight=a.weight[4,4], bias=b.bias[4])\n  loss = mse(h2, y)\n}\n",
      adam_training());
  ASSERT_TRUE(result.has_value()) << result.error().text();
  EXPECT_TRUE(holds(result->source, "    h = DenseTiedToDense(a, 4, name=\"b\")(h)\n")) << result->source;
  EXPECT_TRUE(holds(result->layout_json, "\"a.weight\": {\"target\": \"a/kernel\", \"perm\": [1, 0]}"));
}

TEST(Keras, ListsTheDefaultsThatMatterForTheWorkload) {
  const ir::Workload mlp = *zoo::build("mlp_deep");
  const ir::Training adam = adam_training();
  const std::vector<Default> lines = keras_framework().defaults({mlp, adam, settings(), "t.py"});
  const std::vector<Default> expected = {{topic::kWeightInit, "Glorot uniform"},
                                         {topic::kBiasInit, "zeros"},
                                         {topic::kEps, "1e-7"},
                                         {topic::kEpsForm, "hat: sqrt(v) + eps before the bias correction"},
                                         {topic::kWeightDecay, "0"},
                                         {topic::kBatchNormEps, "1e-3"},
                                         {topic::kBatchNormMomentum, "0.01"},
                                         {topic::kRunningVar, "biased"}};
  EXPECT_EQ(lines, expected);
}

TEST(Keras, WritesPredictionsAsTheirGoldens) {
  ir::Training training = mnist_training();
  training.scenario = ir::Scenario::kPredict;
  expect_golden("keras/predict_mnist_cnn.py", emit_zoo("mnist_cnn", training).source);
  expect_golden("keras/predict_mnist_cnn_torch.py",
                emit_zoo("mnist_cnn", training, settings("torch")).source);
  expect_golden("keras/predict_all_sorts_jax.py",
                emit_text(kAllSortsModel, training, settings("jax")).value().source);
  training.track = ir::Track::kAsIs;
  expect_golden("keras/predict_residual_cnn_as_is.py", emit_zoo("residual_cnn", training).source);
}

// Keras 2: the same emitter in its other dialect.

Settings settings_2(const std::string& jit = "false", const std::string& steps = "1") {
  return {{"jit_compile", jit}, {"steps_per_execution", steps}};
}

Emitted emit_2(const ir::Workload& workload, const ir::Training& training,
               const Settings& chosen = settings_2()) {
  const Result<Emitted> result = keras2_framework().emit({workload, training, chosen, "train_keras2.py"});
  EXPECT_TRUE(result.has_value()) << (result ? "" : result.error().text());
  return result ? *result : Emitted{};
}

void expect_goldens_2(const std::string& name, const Emitted& emitted) {
  expect_golden("keras2/" + name + ".py", emitted.source);
  expect_golden("keras2/" + name + ".layout.json", emitted.layout_json);
}

std::string source_2_with(const Optimizer& optimizer, const char* workload = "mlp_small",
                          Track track = Track::kEqualised) {
  return emit_2(*zoo::build(workload), {.track = track, .optimizer = optimizer, .batch = 8}).source;
}

TEST(Keras2, WritesWhatSurroundsAnUpdate) {
  expect_golden("keras2/updates.py", emit_2(*zoo::build("mlp_small"), updates_training(1)).source);
}

TEST(Keras2, WritesTheZooAsItsGoldens) {
  expect_goldens_2("mnist_cnn", emit_2(*zoo::build("mnist_cnn"), mnist_training()));
  expect_goldens_2("mnist_cnn_as_is",
                   emit_2(*zoo::build("mnist_cnn"), mnist_training(Track::kAsIs), settings_2("true", "4")));
  expect_goldens_2("bert_small", emit_2(*zoo::build("bert_small"), adam_training()));
  expect_goldens_2("lstm_lm_tied_small", emit_2(*zoo::build("lstm_lm_tied_small"), adam_training()));
  ir::Training sgd = mnist_training();
  sgd.optimizer = {
      .kind = OptimizerKind::kSgd, .lr = 0.1, .momentum = 0.9, .nesterov = true, .weight_decay = 5e-4};
  expect_goldens_2("residual_cnn", emit_2(*zoo::build("residual_cnn"), sgd));
}

TEST(Keras2, WritesEveryOtherOpAsItsGolden) {
  expect_goldens_2("all_sorts", emit_2(ir::parse(kAllSortsModel).value(), adam_training()));
  expect_goldens_2("sequences", emit_2(ir::parse(kSequencesModel).value(), adam_training()));
}

TEST(Keras2, WritesPredictionsAsTheirGoldens) {
  ir::Training training = mnist_training();
  training.scenario = ir::Scenario::kPredict;
  expect_golden("keras2/losses.py", emit_2(*ir::parse(kLossesModel), adam_training()).source);
  expect_golden("keras2/ctc.py", emit_2(*ir::parse(kCtcModel), adam_training()).source);
  expect_golden("keras2/predict_mnist_cnn.py", emit_2(*zoo::build("mnist_cnn"), training).source);
  training.track = ir::Track::kAsIs;
  expect_golden("keras2/predict_residual_cnn_as_is.py",
                emit_2(*zoo::build("residual_cnn"), training, settings_2("true")).source);
}

TEST(Keras2, WritesPrecisionsAsTheirGoldens) {
  Settings chosen = settings_2();
  chosen["precision"] = "float16";
  expect_goldens_2("precision_float16", emit_2(*zoo::build("mnist_cnn"), mnist_training(), chosen));
  chosen["precision"] = "bfloat16";
  expect_goldens_2("precision_bfloat16_tied",
                   emit_2(*zoo::build("lstm_lm_tied_small"), adam_training(), chosen));
  chosen["tf32"] = "true";
  expect_goldens_2("precision_bfloat16_tf32_as_is",
                   emit_2(*zoo::build("mlp_small"), adam_training(Track::kAsIs), chosen));
}

TEST(Keras2, WritesEveryWorkloadOfTheZooWithoutKeras3) {
  ir::Training predicting = adam_training();
  predicting.scenario = ir::Scenario::kPredict;
  for (const zoo::Entry& entry : zoo::entries()) {
    SCOPED_TRACE(entry.name);
    for (const ir::Training& training : {adam_training(), predicting}) {
      const std::string text = emit_2(*zoo::build(entry.name), training).source;
      EXPECT_TRUE(holds(text, "\nimport tf_keras as keras\n"));
      EXPECT_FALSE(holds(text, "ops.")) << text;
      EXPECT_FALSE(holds(text, "KERAS_BACKEND"));
    }
  }
}

TEST(Keras2, PrintsALoopThatAnImporterHasUnrolled) {
  const std::string source = emit_2(*ir::parse(kDecoderModel), adam_training()).source;
  EXPECT_TRUE(holds(source, "    start = tf.zeros((tf.shape(x)[0], 5), x.dtype)\n")) << source;
  EXPECT_TRUE(holds(source, "    for t in range(3):\n        f1 = x[:, t]\n"));
  EXPECT_TRUE(holds(source, "    all = tf.stack(parts, axis=1)\n"));
}

// As a second operand Keras on TensorFlow takes it for a bias where N is 4 by chance.
TEST(Keras, AnOperandThatLooksLikeABiasComesFirst) {
  const Result<Emitted> emitted = emit_text(R"(workload w(a: f32[N,4], b: f32[N,1], t: f32[N,4]) {
    h = add(a, b)
    loss = mse(h, t)
  })",
                                            {.batch = 8});
  ASSERT_TRUE(emitted) << emitted.error().text();
  const std::string& source = emitted->source;
  EXPECT_TRUE(holds(source, "h = ops.add(b, a)")) << source;
}

TEST(Keras2, ShowsItsSettingsAndHasAnEnvironmentOfItsOwn) {
  const std::string text = emit_2(*zoo::build("mlp_small"), mnist_training(), settings_2("true", "7")).source;
  EXPECT_TRUE(holds(text, "jit_compile=True"));
  EXPECT_TRUE(holds(text, "steps_per_execution=7"));
  EXPECT_EQ(keras2_framework().environment(settings_2()), "keras2");
}

TEST(Keras2, HasThePapersAdamStock) {
  const Optimizer outside{.kind = OptimizerKind::kAdam, .eps_form = EpsForm::kOutside};
  EXPECT_TRUE(holds(source_2_with(outside), "optimizer = keras.optimizers.Adam(\n"));
  EXPECT_TRUE(holds(source_2_with(outside), "adaptive_epsilon=True"));
  EXPECT_FALSE(holds(source_2_with(outside, "mlp_small", Track::kAsIs), "adaptive_epsilon"));
  const Optimizer hat{.kind = OptimizerKind::kAdam, .eps_form = EpsForm::kHat};
  EXPECT_FALSE(holds(source_2_with(hat), "adaptive_epsilon"));
  Optimizer decayed = outside;
  decayed.weight_decay = 0.1;
  EXPECT_TRUE(holds(source_2_with(decayed), "optimizer = AdamL2("));
  EXPECT_TRUE(holds(source_2_with(decayed), "adaptive_epsilon=True"));
}

TEST(Keras2, WritesOutTheUpdatesItLacks) {
  const struct {
    Optimizer optimizer;
    const char* name;
    const char* line;
  } cases[] = {
      {{.kind = OptimizerKind::kRmsprop, .eps_form = EpsForm::kOutside},
       "RMSpropEpsOutside",
       "step = lr * gradient / (tf.sqrt(velocity) + self.epsilon)"},
      {{.kind = OptimizerKind::kRmsprop, .momentum = 0.5, .eps_form = EpsForm::kOutside},
       "RMSpropEpsOutside",
       "momentum.assign(self.momentum * momentum + step)"},
      {{.kind = OptimizerKind::kAdam, .eps_form = EpsForm::kInside},
       "AdamEpsInside",
       "root = tf.sqrt(v + self.epsilon * tf.square(correction_2))"},
      {{.kind = OptimizerKind::kAdamW, .eps_form = EpsForm::kOutside, .weight_decay = 0.1},
       "AdamWEpsOutside",
       "root = tf.sqrt(v) + self.epsilon * correction_2"},
      {{.kind = OptimizerKind::kSgd, .weight_decay = 0.1},
       "SGDL2",
       "super().update_step(gradient, variable)"},
  };
  for (const auto& c : cases) {
    SCOPED_TRACE(c.name);
    const std::string text = source_2_with(c.optimizer);
    EXPECT_TRUE(holds(text, std::string("class ") + c.name + "(keras.optimizers.")) << text;
    EXPECT_TRUE(holds(text, "    def update_step(self, gradient, variable):\n"));
    EXPECT_TRUE(holds(text, std::string("        ") + c.line + "\n")) << text;
  }
}

// Keras 2 adds up the rows of an embedding's gradient, so that its stock optimizers are right.
TEST(Keras2, MakesGradientsDenseOnlyInSubclasses) {
  const Optimizer hat{.kind = OptimizerKind::kAdam, .eps_form = EpsForm::kHat};
  EXPECT_TRUE(holds(source_2_with(hat, "lstm_lm_small"), "optimizer = keras.optimizers.Adam("));
  const Optimizer inside{.kind = OptimizerKind::kAdam, .eps_form = EpsForm::kInside};
  EXPECT_TRUE(holds(source_2_with(inside, "lstm_lm_small"), "gradient = tf.convert_to_tensor(gradient)"));
  EXPECT_FALSE(holds(source_2_with(inside), "convert_to_tensor"));
}

TEST(Keras2, ItsFusedBatchNormKeepsTheUnbiasedVariance) {
  const auto variance = [](const ir::Workload& workload) {
    const ir::Training adam = adam_training();
    for (const Default& line : keras2_framework().defaults({workload, adam, settings_2(), "t.py"})) {
      if (line.topic == topic::kRunningVar) return line.value;
    }
    return std::string();
  };
  EXPECT_EQ(variance(*zoo::build("mlp_deep")), "biased");
  EXPECT_EQ(variance(*zoo::build("resnet18_small")), "unbiased");
  EXPECT_EQ(variance(*zoo::build("mnist_cnn")), "");
}

}  // namespace
}  // namespace bakeoff::emit
