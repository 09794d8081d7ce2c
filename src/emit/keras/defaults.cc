#include "emit/keras/defaults.h"

#include <algorithm>

#include "ir/verify.h"

namespace bakeoff::emit::keras {
namespace {

using ir::Op;
using ir::OptimizerKind;

bool has_bias(const ir::Workload& workload) {
  return std::any_of(workload.nodes.begin(), workload.nodes.end(), [](const ir::Node& node) {
    return (ir::is_conv(node.op) || node.op == Op::kLinear) && node.has("bias");
  });
}

void add_optimizer(std::vector<Default>& lines, OptimizerKind kind) {
  if (kind != OptimizerKind::kSgd) lines.push_back({topic::kEps, "1e-7"});
  if (kind == OptimizerKind::kRmsprop) {
    lines.push_back({topic::kEpsForm, "inside: sqrt(v + eps)"});
    lines.push_back({topic::kRho, "0.9"});
  }
  if (kind == OptimizerKind::kAdam || kind == OptimizerKind::kAdamW) {
    lines.push_back({topic::kEpsForm, "hat: sqrt(v) + eps before the bias correction"});
  }
  lines.push_back({topic::kWeightDecay, kind == OptimizerKind::kAdamW ? "0.004, decoupled" : "0"});
}

// Keras 2 hands pictures to TensorFlow's fused kernel, whose running variance is the unbiased one.
std::string running_variance(const ir::Workload& workload, const Dialect& dialect) {
  if (!dialect.second) return "biased";
  const auto types = ir::infer(workload);
  if (!types) return "biased";
  bool pictures = false, rows = false;
  for (const ir::Node& node : workload.nodes) {
    if (node.op != Op::kBatchNorm) continue;
    ((*types)[static_cast<size_t>(node.inputs[0])].shape.size() == 4 ? pictures : rows) = true;
  }
  if (!pictures) return "biased";
  return rows ? "unbiased for pictures, biased for rows" : "unbiased";
}

}  // namespace

std::vector<Default> defaults(const Request& request, const Dialect& dialect) {
  const ir::Workload& workload = request.workload;
  std::vector<Default> lines;
  if (ir::has_conv(workload) || workload.has(Op::kLinear)) {
    lines.push_back({topic::kWeightInit, "Glorot uniform"});
  }
  if (has_bias(workload)) lines.push_back({topic::kBiasInit, "zeros"});
  if (workload.has(Op::kLstm)) {
    lines.push_back(
        {topic::kLstmInit, "Glorot uniform, recurrent orthogonal, biases zero, of forget gates one"});
  }
  if (workload.has(Op::kGru))
    lines.push_back({topic::kGruInit, "Glorot uniform, recurrent orthogonal, biases zero"});
  if (workload.has(Op::kEmbedding) || workload.has(Op::kPositionEmbedding))
    lines.push_back({topic::kTableInit, "uniform in (-0.05, 0.05)"});
  add_optimizer(lines, request.training.optimizer.kind);
  if (workload.has(Op::kBatchNorm)) {
    lines.push_back({topic::kBatchNormEps, "1e-3"});
    lines.push_back({topic::kBatchNormMomentum, "0.01"});
    lines.push_back({topic::kRunningVar, running_variance(workload, dialect)});
  }
  if (workload.has(Op::kLayerNorm)) lines.push_back({topic::kLayerNormEps, "1e-3"});
  return lines;
}

}  // namespace bakeoff::emit::keras
