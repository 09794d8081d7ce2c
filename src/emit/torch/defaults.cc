#include "emit/torch/defaults.h"

#include <algorithm>

namespace bakeoff::emit::torch {
namespace {

bool any_op(const ir::Workload& workload, std::initializer_list<ir::Op> ops) {
  return std::any_of(workload.nodes.begin(), workload.nodes.end(), [&ops](const ir::Node& node) {
    return std::find(ops.begin(), ops.end(), node.op) != ops.end();
  });
}

}  // namespace

std::vector<Default> defaults(const Request& request) {
  using ir::Op;
  using ir::OptimizerKind;
  const ir::Workload& w = request.workload;
  const OptimizerKind kind = request.training.optimizer.kind;
  std::vector<Default> all;
  if (any_op(w, {Op::kConv2d, Op::kLinear})) {
    // kaiming_uniform_(a=sqrt(5)): bound sqrt(6 / ((1 + 5) fan_in)).
    all.push_back({topic::kWeightInit, "U(-b, b), b = 1/sqrt(fan_in) (Kaiming uniform, a = sqrt 5)"});
    all.push_back({topic::kBiasInit, "U(-b, b), b = 1/sqrt(fan_in)"});
  }
  if (any_op(w, {Op::kLstm})) all.push_back({topic::kLstmInit, "U(-b, b), b = 1/sqrt(units), biases too"});
  if (any_op(w, {Op::kEmbedding, Op::kPositionEmbedding})) all.push_back({topic::kTableInit, "N(0, 1)"});
  if (kind != OptimizerKind::kSgd) {
    all.push_back({topic::kEps, "1e-8"});
    const bool adam = kind != OptimizerKind::kRmsprop;
    all.push_back({topic::kEpsForm, adam ? "outside: sqrt(v_hat) + eps" : "outside: sqrt(v) + eps"});
  }
  if (kind == OptimizerKind::kRmsprop) all.push_back({topic::kRho, "0.99"});
  all.push_back({topic::kWeightDecay, kind == OptimizerKind::kAdamW ? "0.01, decoupled" : "0"});
  if (any_op(w, {Op::kBatchNorm})) {
    all.push_back({topic::kBatchNormEps, "1e-5"});
    all.push_back({topic::kBatchNormMomentum, "0.1"});
    all.push_back({topic::kRunningVar, "unbiased"});
  }
  if (any_op(w, {Op::kLayerNorm})) all.push_back({topic::kLayerNormEps, "1e-5"});
  return all;
}

}  // namespace bakeoff::emit::torch
