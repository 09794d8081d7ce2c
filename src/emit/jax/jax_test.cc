#include "emit/jax/jax.h"

#include <fmt/format.h>
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

Emitted emitted(const ir::Workload& workload, const ir::Training& training,
                const std::string& donate = "true", const std::string& steps = "1",
                const std::string& loops = "unrolled") {
  const Request request{workload,
                        training,
                        {{"donate", donate}, {"steps_per_call", steps}, {"loops", loops}},
                        training.predicts() ? "predict_jax.py" : "train_jax.py"};
  const Result<Emitted> result = jax_framework().emit(request);
  EXPECT_TRUE(result.has_value()) << (result ? "" : result.error().text());
  return result ? *result : Emitted{};
}

Emitted of_zoo(const std::string& name, const ir::Training& training, const std::string& donate = "true") {
  return emitted(*zoo::build(name), training, donate);
}

Emitted of_text(const std::string& text, const ir::Training& training) {
  const Result<ir::Workload> workload = ir::parse(text);
  EXPECT_TRUE(workload.has_value()) << (workload ? "" : workload.error().text());
  return workload ? emitted(*workload, training) : Emitted{};
}

TEST(Jax, HandsALoopToScan) {
  const std::string text = emitted(*ir::parse(kDecoderModel), adam_training(), "true", "1", "scan").source;
  for (const char* part : {"    def step(h, f1):\n", "        return h, h\n",
                           " parts = lax.scan(step, start, jnp.moveaxis(x, 1, 0))\n"})
    EXPECT_TRUE(holds(text, part)) << part << text;
}

TEST(Jax, RefusesToScanWhatHasNoLoop) {
  const ir::Workload workload = *zoo::build("mlp_small");
  const auto refused = jax_framework().emit(
      {workload, adam_training(), {{"donate", "true"}, {"steps_per_call", "1"}, {"loops", "scan"}}, "t.py"});
  ASSERT_FALSE(refused);
  EXPECT_TRUE(holds(refused.error().text(), "'mlp_small' has no loop")) << refused.error().text();
}

TEST(Jax, TakesAllPlacesOfAnAxisInOneStatement) {
  const std::string text = of_text(kStackedAttentionModel, adam_training()).source;
  for (const char* part : {"q, k, v = jnp.unstack(u, axis=2)", "[:, 4]"})
    EXPECT_NE(text.find(part), std::string::npos) << part << text;
}

TEST(Jax, CallsWhatAttentionReadsByItsNames) {
  const std::string text = of_text(kFusedAttentionModel, adam_training()).source;
  for (const char* part :
       {"q, k, v = jnp.split(h, 3, axis=2)", "h = attention(q, k, v, causal=True, window=3)", "return x + h",
        "def layer(params, x):"})
    EXPECT_NE(text.find(part), std::string::npos) << part << text;
}

// Heads that share keys have masks of their own.
TEST(Jax, DropsTheWeightsOfAttention) {
  const std::string text = of_text(kDroppedAttentionModel, adam_training()).source;
  for (const char* part :
       {"attention(heads, heads, heads, key=keys[0], rate=DROPOUT_RATE)", "jnp.repeat(shared, 4, axis=2)",
        "causal=True", "key=keys[1]", "weights = dropout(key, weights, rate)"})
    EXPECT_TRUE(holds(text, part)) << part << text;
}

TEST(Jax, MakesZerosInTheFunctionThatReadsThem) {
  const std::string text = of_text(two_cells("zeros"), adam_training()).source;
  EXPECT_TRUE(holds(text, "def block(params, x):\n    h = jnp.zeros((x.shape[0], 4), x.dtype)\n")) << text;
  EXPECT_TRUE(holds(text, "    x = block(below(params, \"a\"), x)\n")) << text;
  EXPECT_TRUE(holds(of_text(two_cells("x"), adam_training()).source, "def block(params, x, h):\n"));
}

TEST(Jax, WritesWhatSurroundsAnUpdate) {
  expect_golden("jax/updates.py", of_zoo("mlp_small", updates_training(4)).source);
}

TEST(Jax, FewerRowsThanOneCallEndAsIsInAnError) {
  ir::Training training = adam_training(Track::kAsIs);
  const std::string guard = "raise ValueError(\"the data has fewer rows than one call\")\n";
  EXPECT_TRUE(holds(emitted(*zoo::build("mlp_deep"), training, "true", "4").source, guard));
  EXPECT_FALSE(holds(emitted(*zoo::build("mlp_deep"), training).source, guard));
}

TEST(Jax, WritesTheNetworksAsTheirGoldens) {
  for (const std::string name : {"alexnet_small", "bert_small", "lstm_lm_tied_small"}) {
    expect_golden("jax/" + name + ".py", of_zoo(name, adam_training()).source);
  }
  expect_golden("jax/sequences.py", of_text(kSequencesModel, adam_training()).source);
  expect_golden("jax/losses.py", of_text(kLossesModel, adam_training()).source);
  expect_golden("jax/ctc.py", of_text(kCtcModel, adam_training()).source);
}

Result<Emitted> in_precision(const ir::Workload& workload, const ir::Training& training,
                             const std::string& precision, const std::string& tf32 = "false") {
  const Settings settings = {
      {"donate", "true"}, {"steps_per_call", "1"}, {"precision", precision}, {"tf32", tf32}};
  return jax_framework().emit({workload, training, settings, "train_jax.py"});
}

// What adds up many elements is in float32; all_sorts has most of it.
TEST(Jax, WritesPrecisionsAsTheirGoldens) {
  const auto source = [](const ir::Workload& workload, const ir::Training& training, const char* precision,
                         const char* tf32 = "false") {
    return in_precision(workload, training, precision, tf32)->source;
  };
  const ir::Training adam = adam_training();
  expect_golden("jax/precision_bfloat16.py", source(*zoo::build("mnist_cnn"), mnist_training(), "bfloat16"));
  expect_golden("jax/precision_bfloat16_bert.py", source(*zoo::build("bert_small"), adam, "bfloat16"));
  expect_golden("jax/precision_bfloat16_mlp_deep.py", source(*zoo::build("mlp_deep"), adam, "bfloat16"));
  expect_golden("jax/precision_bfloat16_all_sorts.py", source(*ir::parse(kAllSortsModel), adam, "bfloat16"));
  expect_golden("jax/precision_float16_alexnet.py", source(*zoo::build("alexnet_small"), adam, "float16"));
  expect_golden("jax/precision_float16_sequences.py", source(*ir::parse(kSequencesModel), adam, "float16"));
  expect_golden("jax/precision_float16_tf32_as_is.py",
                source(*zoo::build("mlp_small"), adam_training(Track::kAsIs), "float16", "true"));
}

TEST(Jax, AddsUpSizesThatDifferInFloat32) {
  const std::string gates = in_precision(*ir::parse(kGatesModel), adam_training(), "bfloat16")->source;
  EXPECT_TRUE(holds(gates, "    scaled = in_float32(jnp.multiply, x, gate)\n")) << gates;
  EXPECT_TRUE(holds(gates, "    moved = in_float32(jnp.add, scaled, gate)\n")) << gates;
  EXPECT_TRUE(holds(gates, "    twice = moved + moved\n")) << gates;
}

TEST(Jax, HasNoFunctionForFloat32WhereNothingIsAddedUp) {
  const std::string alike =
      in_precision(*ir::parse(kComputedTargetModel), adam_training(), "float16")->source;
  EXPECT_TRUE(holds(alike, "def half(")) << alike;
  EXPECT_FALSE(holds(alike, "in_float32")) << alike;
}

TEST(Jax, ComputedTargetsComeBackInFloat32) {
  const auto source = [](const char* text) {
    return in_precision(*ir::parse(text), adam_training(), "bfloat16")->source;
  };
  const std::string real = source(kComputedTargetModel);
  EXPECT_TRUE(holds(real, "    return a.astype(jnp.float32), b.astype(jnp.float32)\n")) << real;
  EXPECT_TRUE(holds(real, "    half_2 = half(half_2)\n")) << real;
  const std::string integers = source(kComputedLabelsModel);
  EXPECT_TRUE(holds(integers, "    return (logits.astype(jnp.float32), labels), stats\n")) << integers;
}

// `full` presets are not trained in tests: that they are emitted at all is tested here.
TEST(Jax, WritesEveryWorkloadOfTheZoo) {
  for (const zoo::Entry& entry : zoo::entries()) {
    SCOPED_TRACE(entry.name);
    EXPECT_FALSE(of_zoo(entry.name, adam_training()).source.empty());
  }
}

TEST(Jax, WritesTheZooAsItsGoldens) {
  const Emitted cnn = of_zoo("mnist_cnn", mnist_training());
  expect_golden("jax/mnist_cnn.py", cnn.source);
  expect_golden("jax/mnist_cnn.layout.json", cnn.layout_json);
  expect_golden("jax/mnist_cnn_not_donated.py", of_zoo("mnist_cnn", mnist_training(), "false").source);
  const auto scanned = [](const std::string& name, const ir::Training& training) {
    return emitted(*zoo::build(name), training, "true", "8").source;
  };
  expect_golden("jax/mnist_cnn_scan.py", scanned("mnist_cnn", mnist_training()));
  expect_golden("jax/mlp_deep_scan.py", scanned("mlp_deep", adam_training()));
  expect_golden("jax/mlp_deep_scan_as_is.py", scanned("mlp_deep", adam_training(Track::kAsIs)));
  expect_golden("jax/mnist_cnn_as_is.py", of_zoo("mnist_cnn", mnist_training(Track::kAsIs)).source);
  expect_golden("jax/mlp_deep.py", of_zoo("mlp_deep", adam_training()).source);
  expect_golden("jax/mlp_deep_as_is.py", of_zoo("mlp_deep", adam_training(Track::kAsIs)).source);
  ir::Training sgd = mnist_training();
  sgd.optimizer = {
      .kind = OptimizerKind::kSgd, .lr = 0.1, .momentum = 0.9, .nesterov = true, .weight_decay = 5e-4};
  expect_golden("jax/residual_cnn.py", of_zoo("residual_cnn", sgd).source);
}

TEST(Jax, WritesEveryOtherOpAsItsGolden) {
  expect_golden("jax/all_sorts.py", of_text(kAllSortsModel, adam_training()).source);
  expect_golden("jax/all_sorts_as_is.py", of_text(kAllSortsModel, mnist_training(Track::kAsIs)).source);
}

TEST(Jax, WritesTheEpsHatThatOptaxLacks) {
  ir::Training training = adam_training();
  training.optimizer = {.kind = OptimizerKind::kAdamW, .eps_form = EpsForm::kHat, .weight_decay = 0.1};
  expect_golden("jax/mlp_small_eps_hat.py", of_zoo("mlp_small", training).source);
}

TEST(Jax, StatesEveryHyperparameterOfTheEqualisedTrack) {
  struct Case {
    Optimizer optimizer;
    std::string want;
  };
  const Case cases[] = {
      {{.kind = OptimizerKind::kSgd}, "return optax.sgd(LEARNING_RATE)"},
      {{.kind = OptimizerKind::kRmsprop},
       "optax.rmsprop(LEARNING_RATE, decay=0.9, eps=1e-7, eps_in_sqrt=False)"},
      {{.kind = OptimizerKind::kRmsprop, .momentum = 0.5, .eps_form = EpsForm::kInside},
       "eps_in_sqrt=True, momentum=0.5"},
      {{.kind = OptimizerKind::kAdam}, "optax.adam(LEARNING_RATE, b1=0.9, b2=0.999, eps=1e-7)"},
      {{.kind = OptimizerKind::kAdam, .eps_form = EpsForm::kInside},
       "optax.adam(LEARNING_RATE, b1=0.9, b2=0.999, eps=0.0, eps_root=1e-7)"},
      {{.kind = OptimizerKind::kAdam, .weight_decay = 0.1},
       "        optax.add_decayed_weights(0.1),\n        optax.adam(LEARNING_RATE"},
      {{.kind = OptimizerKind::kAdam, .weight_decay = 0.1, .decay_form = DecayForm::kDecoupled},
       "        optax.add_decayed_weights(0.1),\n        optax.scale_by_learning_rate(LEARNING_RATE),\n"},
      {{.kind = OptimizerKind::kSgd,
        .momentum = 0.9,
        .weight_decay = 0.1,
        .decay_form = DecayForm::kDecoupled},
       "        optax.trace(decay=0.9, nesterov=False),\n        optax.add_decayed_weights(0.1),\n"},
  };
  for (const Case& c : cases) {
    ir::Training training = adam_training();
    training.optimizer = c.optimizer;
    const std::string source = of_zoo("mlp_small", training).source;
    EXPECT_TRUE(holds(source, c.want)) << "want " << c.want << " in\n" << source;
  }
}

TEST(Jax, AsIsStatesOnlyWhatTheRecipeStates) {
  ir::Training training = mnist_training(Track::kAsIs);
  EXPECT_TRUE(holds(of_zoo("mlp_small", training).source, "optax.rmsprop(LEARNING_RATE)\n"));
  training.optimizer.stated = {"rho"};
  EXPECT_TRUE(holds(of_zoo("mlp_small", training).source, "optax.rmsprop(LEARNING_RATE, decay=0.9)\n"));
}

TEST(Jax, RefusesWhatDoesNotExist) {
  ir::Training training = mnist_training();
  training.optimizer.eps_form = EpsForm::kHat;
  const auto workload = *zoo::build("mlp_small");
  const Request request{workload, training, {{"donate", "true"}}, "train_jax.py"};
  EXPECT_TRUE(holds(jax_framework().emit(request).error().message, "no eps_form \"hat\""));
}

TEST(Jax, DefaultsFollowOptaxAndLeaveOutWhatIsStated) {
  const auto workload = *zoo::build("mnist_cnn");
  ir::Training training = mnist_training(Track::kAsIs);
  const auto value = [&](const std::string& topic) {
    for (const Default& line : jax_framework().defaults({workload, training, {}, ""})) {
      if (line.topic == topic) return line.value;
    }
    return std::string("-");
  };
  EXPECT_EQ(value(topic::kEps), "1e-8");
  EXPECT_EQ(value(topic::kEpsForm), "inside: sqrt(v + eps)");
  EXPECT_EQ(value(topic::kBatchNormEps), "-");
  training.optimizer.stated = {"eps"};
  EXPECT_EQ(value(topic::kEps), "-");
}

TEST(Jax, ComputedTargetsComeFromTheForwardPass) {
  const std::string source = of_text(R"(workload w(x: f32[N,4]) {
    a = linear(x; weight=a.weight[3,4])
    b = linear(x; weight=b.weight[3,4])
    loss = mse(a, b)
  })",
                                     adam_training())
                                 .source;
  EXPECT_TRUE(holds(source, "    return a, b\n"));
  EXPECT_TRUE(holds(source, "    a, target = forward(params, x)\n"));
}

TEST(Jax, WritesPredictionsAsTheirGoldens) {
  ir::Training training = mnist_training();
  training.scenario = ir::Scenario::kPredict;
  expect_golden("jax/predict_mnist_cnn.py", of_zoo("mnist_cnn", training).source);
  expect_golden("jax/predict_all_sorts.py", of_text(kAllSortsModel, training).source);
  training.track = ir::Track::kAsIs;
  expect_golden("jax/predict_residual_cnn_as_is.py", of_zoo("residual_cnn", training).source);
}

TEST(Jax, PredictionsDrawNoNumbers) {
  ir::Training training = mnist_training();
  training.scenario = ir::Scenario::kPredict;
  for (const zoo::Entry& entry : zoo::entries()) {
    SCOPED_TRACE(entry.name);
    const std::string source = of_zoo(entry.name, training).source;
    EXPECT_FALSE(holds(source, "random")) << source;
    EXPECT_FALSE(holds(source, "dropout(")) << source;
  }
}

// What is frozen is carried, not differentiated, and the same in every part of a batch; dropout is not.
TEST(Jax, AddsUpPartsOfABatchBesideFrozenLayers) {
  ir::Training training = adam_training();
  training.optimizer.accumulate = 4;
  const std::string source =
      of_text(
          "workload w(x: f32[N,4], y: f32[N,4]) {\n  h = linear(x; weight=a[4,4] frozen)\n"
          "  z = linear(h; weight=b[4,4])\n  loss = mse(z, y)\n}",
          training)
          .source;
  EXPECT_TRUE(holds(source, "(loss, _), grads = grad_fn(state.params, state.stats, *part)\n")) << source;
  EXPECT_TRUE(holds(source, "return TrainState(params, stats, opt_state), loss\n")) << source;
  const ir::Workload drops = *zoo::build("mlp_deep");
  const auto refused =
      jax_framework().emit({drops, training, {{"donate", "true"}, {"steps_per_call", "1"}}, "train_jax.py"});
  ASSERT_FALSE(refused);
  EXPECT_TRUE(holds(refused.error().text(), "dropout")) << refused.error().text();
}

TEST(Jax, SplitsBatchesOverDevices) {
  const auto emit = [](const ir::Workload& workload, const ir::Training& training, const char* steps,
                       const char* parallel = "data", const char* devices = "2") {
    const Settings settings = {
        {"donate", "true"}, {"steps_per_call", steps}, {"devices", devices}, {"parallel", parallel}};
    return jax_framework().emit({workload, training, settings, "train_jax.py"});
  };
  const ir::Workload sorts = *ir::parse(kAllSortsModel), mlp = *zoo::build("mlp_small");
  expect_golden("jax/devices.py", emit(sorts, adam_training(), "1")->source);
  expect_golden("jax/devices_as_is.py", emit(mlp, adam_training(Track::kAsIs), "1")->source);
  expect_golden("jax/devices_fsdp.py", emit(mlp, adam_training(), "1", "fsdp")->source);
  EXPECT_TRUE(holds(emit(sorts, adam_training(), "1", "fsdp")->source,
                    "    return lax.with_sharding_constraint(state, split_over_devices(state)), loss\n"));
  EXPECT_FALSE(emit(mlp, adam_training(), "1", "fsdp", "1"));
  const std::string scan = emit(mlp, adam_training(), "4")->source;
  for (const char* part : {"PartitionSpec(None, \"data\")", "    data = jax.device_put(shaped, BY_ROWS)\n"})
    EXPECT_TRUE(holds(scan, part)) << part << scan;
  ir::Training parts = adam_training();
  parts.optimizer.accumulate = 2;
  const auto refused = emit(mlp, parts, "1");
  ASSERT_FALSE(refused);
  EXPECT_TRUE(holds(refused.error().text(), "devices = 2: jax: the parts")) << refused.error().text();
}

TEST(Jax, StartsAProcessForEachDevice) {
  const auto emit = [](const ir::Workload& workload, const ir::Training& training, Settings more) {
    Settings settings = {{"donate", "true"}, {"steps_per_call", "1"}, {"devices", "2"}, {"processes", "2"}};
    more.merge(settings);
    return jax_framework().emit({workload, training, more, "train_jax.py"});
  };
  const ir::Workload sorts = *ir::parse(kAllSortsModel), mlp = *zoo::build("mlp_small");
  expect_golden("jax/processes.py", emit(sorts, adam_training(), {})->source);
  const std::string as_is = emit(mlp, adam_training(Track::kAsIs), {})->source;
  EXPECT_TRUE(holds(as_is, "        yield tuple(split_rows(array[picked]) for array in arrays)\n")) << as_is;
  const std::string scan = emit(mlp, adam_training(), {{"steps_per_call", "4"}})->source;
  for (const char* part :
       {"    data = [split_rows(array) for array in shaped]\n", "if jax.process_index() == 0:\n"})
    EXPECT_TRUE(holds(scan, part)) << part << scan;
  const auto refused = emit(mlp, adam_training(), {{"devices", "4"}});
  ASSERT_FALSE(refused);
  EXPECT_EQ(
      refused.error().text(),
      "jax: processes = 2 of devices = 4: each process has one device\n  set devices = 2, or processes = 1");
}

TEST(Jax, PrintsALoopThatCarriesNothing) {
  std::string nodes, parts;
  for (int t = 0; t < 3; ++t) {
    nodes += fmt::format(
        "  s{0} = slice(x) axis=1 begin={0} end={1}\n  f{0} = flatten(s{0})\n"
        "  a{0} = linear(f{0}; weight=a[5,4])\n  h{0} = tanh(a{0})\n  p{0} = reshape(h{0}) shape=N,1,5\n",
        t, t + 1);
    parts += fmt::format("{}p{}", t == 0 ? "" : ", ", t);
  }
  const std::string text = fmt::format(
      "workload w(x: f32[N,3,4], y: f32[N,3,5]) {{\n{}  z = concat({}) axis=1\n  loss = mse(z, y)\n}}\n",
      nodes, parts);
  const std::string source = of_text(text, adam_training()).source;
  EXPECT_TRUE(holds(source, "    parts = []\n    for t in range(3):\n")) << source;
}

TEST(Jax, APredictionNeedsNoTarget) {
  ir::Training training = mnist_training();
  training.scenario = ir::Scenario::kPredict;
  const std::string source = of_text(R"(workload w(x: f32[N,4], y: f32[N,4]) {
    a = linear(x; weight=a.weight[3,4])
    b = linear(y; weight=b.weight[3,4])
    loss = mse(a, b)
  })",
                                     training)
                                 .source;
  EXPECT_TRUE(holds(source, "def predict_step(params, x):\n    return forward(params, x)\n")) << source;
  EXPECT_FALSE(holds(source, "b.weight"));
}

}  // namespace
}  // namespace bakeoff::emit
