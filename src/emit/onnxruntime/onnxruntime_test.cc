#include "emit/onnxruntime/onnxruntime.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "../tests/golden.h"
#include "../tests/golden_models.h"
#include "ir/text.h"
#include "zoo/zoo.h"

namespace bakeoff::emit {
namespace {

const Settings kPlain = {{"optimization", "all"}, {"io_binding", "false"}, {"provider", "cpu"}};

ir::Training predicting() { return {.scenario = ir::Scenario::kPredict, .batch = 256, .input_divisor = 255}; }

Result<Emitted> emit(const ir::Workload& workload, const ir::Training& training,
                     const Settings& settings = kPlain) {
  return onnxruntime_framework().emit({workload, training, settings, "predict_onnxruntime.py"});
}

std::string source(const ir::Workload& workload, const Settings& settings = kPlain) {
  const auto made = emit(workload, predicting(), settings);
  EXPECT_TRUE(made.has_value()) << (made ? "" : made.error().text());
  return made ? made->source : "";
}

Settings with(const std::string& name, const std::string& value) {
  Settings settings = kPlain;
  settings[name] = value;
  return settings;
}

TEST(OnnxRuntime, WritesItsGoldens) {
  expect_golden("onnxruntime/mnist_cnn.py", source(*zoo::build("mnist_cnn")));
  expect_golden("onnxruntime/mnist_cnn_bound.py",
                source(*zoo::build("mnist_cnn"), with("io_binding", "true")));
  expect_golden("onnxruntime/bert_small.py", source(*zoo::build("bert_small")));
  expect_golden("onnxruntime/all_sorts.py", source(*ir::parse(kAllSortsModel)));
  expect_golden("onnxruntime/sequences.py", source(*ir::parse(kSequencesModel)));
}

TEST(OnnxRuntime, WritesEveryWorkloadOfTheZoo) {
  for (const zoo::Entry& entry : zoo::entries()) {
    SCOPED_TRACE(entry.name);
    EXPECT_FALSE(source(*zoo::build(entry.name)).empty());
  }
}

TEST(OnnxRuntime, WritesTheSettings) {
  const auto workload = *zoo::build("mlp_small");
  const std::pair<const char*, const char*> levels[] = {{"disabled", "ORT_DISABLE_ALL"},
                                                        {"basic", "ORT_ENABLE_BASIC"},
                                                        {"extended", "ORT_ENABLE_EXTENDED"},
                                                        {"all", "ORT_ENABLE_ALL"}};
  for (const auto& [level, written] : levels) {
    EXPECT_TRUE(holds(source(workload, with("optimization", level)),
                      fmt::format("GraphOptimizationLevel.{}\n", written)));
  }
  const std::string cuda = source(workload, with("provider", "cuda"));
  EXPECT_TRUE(holds(cuda, "PROVIDER = \"CUDAExecutionProvider\"\n"));
  EXPECT_TRUE(holds(cuda, "{\"use_tf32\": 0}"));
  EXPECT_TRUE(
      holds(source(workload, with("provider", "tensorrt")), "PROVIDER = \"TensorrtExecutionProvider\"\n"));
}

TEST(OnnxRuntime, RefusesWhatItDoesNotDo) {
  const auto workload = *zoo::build("mlp_small");
  ir::Training training = predicting();
  training.track = ir::Track::kAsIs;
  EXPECT_TRUE(holds(emit(workload, training).error().message, "no initialisers"));
  training = predicting();
  training.scenario = ir::Scenario::kTrain;
  EXPECT_TRUE(holds(emit(workload, training).error().message, "ONNX Runtime does not train"));
}

TEST(OnnxRuntime, ThePredictionMayBeAnInput) {
  const auto workload = ir::parse(R"(workload w(x: f32[N,4], y: f32[N,4]) {
    a = linear(y; weight=a.weight[4,4])
    loss = mse(x, a)
  })");
  ASSERT_TRUE(workload.has_value());
  const std::string text = source(*workload);
  EXPECT_TRUE(holds(text, "add(\"Identity\", [\"x\"], \"x.copy\")\n"));
  EXPECT_FALSE(holds(text, "Gemm")) << "what the prediction does not need";
}

// Parameters and values may have the same name in a workload, not in an ONNX graph.
TEST(OnnxRuntime, NamesAreUnique) {
  const auto workload = ir::parse(R"(workload w(x: f32[N,4], y: f32[N,4]) {
    a = linear(x; weight=a[4,4])
    b = linear(a; weight=c[4,4])
    loss = mse(b, y)
  })");
  ASSERT_TRUE(workload.has_value());
  const std::string text = source(*workload);
  EXPECT_TRUE(holds(text, "add(\"Gemm\", [\"x\", \"a\"], \"a.2\", transB=1)\n")) << text;
  EXPECT_TRUE(holds(text, "add(\"Gemm\", [\"a.2\", \"c\"], \"b\", transB=1)\n")) << text;
}

}  // namespace
}  // namespace bakeoff::emit
