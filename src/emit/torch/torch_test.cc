#include "emit/torch/torch.h"

#include <gtest/gtest.h>

#include "../tests/golden.h"
#include "../tests/golden_models.h"
#include "ir/op_table.h"
#include "ir/text.h"
#include "zoo/zoo.h"

namespace bakeoff::emit {
namespace {

using ir::DecayForm;
using ir::EpsForm;
using ir::OptimizerKind;
using ir::Track;

ir::Training mnist_training(Track track = Track::kEqualised) {
  return {.track = track,
          .optimizer = {.kind = OptimizerKind::kRmsprop, .lr = 1e-4, .rho = 0.9, .eps = 1e-7},
          .batch = 256,
          .input_divisor = 255};
}

ir::Training adam_training(Track track = Track::kEqualised) {
  return {
      .track = track, .optimizer = {.kind = OptimizerKind::kAdam, .lr = 1e-3, .eps = 1e-8}, .batch = 1000};
}

Settings settings(const std::string& compile = "off", const std::string& channels_last = "false") {
  return {{"compile", compile}, {"channels_last", channels_last}};
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

bool holds(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

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

TEST(Torch, WritesEveryOtherOpAsItsGolden) {
  expect_golden("torch/all_sorts.py", of_text(kAllSortsModel, adam_training()));
  const std::string text = of_text(kAllSortsModel, mnist_training(Track::kAsIs), settings("off", "true"));
  expect_golden("torch/all_sorts_as_is.py", text);
  EXPECT_FALSE(holds(text, "eps="));
}

}  // namespace
}  // namespace bakeoff::emit
