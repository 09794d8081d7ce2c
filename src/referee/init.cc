#include "referee/init.h"

#include <algorithm>
#include <cmath>

#include "tensor/rng.h"

namespace bakeoff::referee {
namespace {

double glorot_limit(const ir::Shape& shape) {
  const int64_t area = ir::product(shape, 2, shape.size());  // 1 for a linear
  return std::sqrt(6.0 / static_cast<double>((shape[0] + shape[1]) * area));
}

// The largest absolute value of the noise on `p`; running variances get a factor instead.
double noise_limit(const ir::Parameter& p, const tensor::Tensor& weights) {
  if (p.role != ir::Role::kWeight && p.role != ir::Role::kTable) return 0.1;
  // Behind a weight of zeros (LoRA's B) no gradient passes: nothing before it would be proven.
  if (!p.frozen && tensor::norm(weights) == 0) return 0.1;
  return 0.1 * tensor::norm(weights) / std::sqrt(static_cast<double>(weights.data.size()));
}

// Frozen parameters that integers are computed from: places, which must stay what they are.
std::vector<bool> of_integers(const ir::Workload& workload) {
  std::vector<bool> all(workload.parameters.size());
  std::vector<bool> reached(workload.nodes.size());  // a cast to integers follows
  for (size_t n = workload.nodes.size(); n-- > 0;) {
    const ir::Node& node = workload.nodes[n];
    if (!reached[n] && node.op != ir::Op::kCast) continue;
    for (const ir::ValueId id : node.inputs) {
      if (!workload.is_input(id)) reached[static_cast<size_t>(id) - workload.inputs.size()] = true;
    }
    for (const ir::Slot& slot : node.params) {
      const auto p = static_cast<size_t>(slot.param);
      all[p] = all[p] || workload.parameters[p].frozen;
    }
  }
  return all;
}

}  // namespace

tensor::Tensor initial_value(const ir::Parameter& p, uint64_t seed) {
  if (!p.values.empty()) return {p.shape, p.values};
  const bool one = p.role == ir::Role::kScale || p.role == ir::Role::kRunningVar;
  tensor::Tensor value = tensor::full(p.shape, one && !p.init ? 1.0 : 0.0);
  const bool drawn = p.role == ir::Role::kWeight || p.role == ir::Role::kTable;
  const double limit = p.init                       ? *p.init
                       : !drawn                     ? 0
                       : p.role == ir::Role::kTable ? 0.05
                                                    : glorot_limit(p.shape);
  if (limit == 0) return value;
  tensor::Rng rng(seed, p.name);
  for (double& w : value.data) w = rng.uniform(-limit, limit);
  return value;
}

Weights initial_weights(const ir::Workload& workload, uint64_t seed) {
  Weights weights;
  for (const ir::Parameter& p : workload.parameters) weights.push_back(initial_value(p, seed));
  return weights;
}

tensor::DType held_as(const ir::Parameter& parameter, const tensor::Tensor& value) {
  const bool rounds = std::any_of(value.data.begin(), value.data.end(),
                                  [](double x) { return static_cast<double>(static_cast<float>(x)) != x; });
  return parameter.frozen && rounds ? tensor::DType::kF64 : tensor::DType::kF32;
}

Weights perturbed(const ir::Workload& workload, Weights weights, uint64_t seed) {
  const std::vector<bool> integers = of_integers(workload);
  for (size_t i = 0; i < weights.size(); ++i) {
    const ir::Parameter& p = workload.parameters[i];
    if (integers[i] || !p.values.empty()) continue;
    tensor::Rng rng(seed, p.name + "/noise");
    if (p.role == ir::Role::kRunningVar) {
      for (double& w : weights[i].data) w *= rng.uniform(0.8, 1.25);
      continue;
    }
    const double limit = noise_limit(p, weights[i]);
    for (double& w : weights[i].data) w += rng.uniform(-limit, limit);
  }
  return weights;
}

}  // namespace bakeoff::referee
