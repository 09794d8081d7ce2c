#include "emit/precision.h"

#include <fmt/format.h>

namespace bakeoff::emit {

Precision precision_of(const Request& request) {
  if (request.training.scenario == ir::Scenario::kPredict) return {};
  const std::string half = setting_or(request.settings, "precision", kFullPrecision);
  return {.half = half == kFullPrecision ? "" : half,
          .tf32 = setting_or(request.settings, "tf32", "false") == "true",
          .scaler = setting_or(request.settings, "scaler", "false") == "true"};
}

std::vector<bool> stored_in_half(const Request& request) {
  const ir::Workload& workload = request.workload;
  std::vector<bool> stored(workload.parameters.size());
  if (!precision_of(request).mixed()) return stored;
  for (size_t id = 0; id < stored.size(); ++id)
    stored[id] = workload.parameters[id].frozen || request.training.generates();
  for (const ir::Node& node : workload.nodes) {
    const bool rounds = node.op == ir::Op::kLinear || node.op == ir::Op::kEmbedding || ir::is_conv(node.op);
    for (const ir::Slot& slot : node.params)
      if (!rounds || slot.name != "weight") stored[static_cast<size_t>(slot.param)] = false;
  }
  return stored;
}

std::vector<std::string> precision_lines(const std::string& backends, bool tf32) {
  std::vector<std::string> lines;
  for (const char* kernels : {"cuda.matmul", "cudnn.conv", "cudnn.rnn"})
    lines.push_back(fmt::format("{}.{}.fp32_precision = \"{}\"", backends, kernels, tf32 ? "tf32" : "ieee"));
  if (!tf32) lines.front() += "  # no TF32 on GPUs";
  return lines;
}

Setting precision_setting(const std::string& how, bool generates) {
  std::vector<ir::Scenario> scenarios = {ir::Scenario::kTrain};
  if (generates) scenarios.push_back(ir::Scenario::kGenerate);
  return {.name = "precision",
          .values = {kFullPrecision, "bfloat16", "float16"},
          .fallback = kFullPrecision,
          .doc = "mixed precision: " + how + "; a group of its own",
          .scenarios = std::move(scenarios)};
}

Setting tf32_setting(const std::string& how) {
  return {.name = "tf32",
          .values = {"false", "true"},
          .fallback = "false",
          .doc = "true: float32 products may be rounded to TF32 on GPUs that have it (" + how +
                 "), a group of its own; false: they are not, in the as-is track the framework's default",
          .scenarios = {ir::Scenario::kTrain}};
}

}  // namespace bakeoff::emit
