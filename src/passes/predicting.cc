#include "passes/predicting.h"

#include <map>
#include <numeric>
#include <vector>

#include "ir/verify.h"

namespace bakeoff::passes {
namespace {

// Of each value, the one that is the same where no gradients flow: behind stop_gradient, and behind a choice between a
// value and itself (rows with and without gradient).
std::vector<ir::ValueId> without_gradients(const ir::Workload& workload) {
  std::vector<ir::ValueId> same(static_cast<size_t>(workload.value_count()));
  std::iota(same.begin(), same.end(), 0);
  if (!workload.has(ir::Op::kStopGradient)) return same;
  const auto types = ir::infer(workload);
  if (!types) return same;
  for (size_t n = 0; n < workload.nodes.size(); ++n) {
    const ir::Node& node = workload.nodes[n];
    const ir::ValueId out = workload.output_of(static_cast<int>(n));
    const auto of = [&](size_t input) { return same[static_cast<size_t>(node.inputs[input])]; };
    if (node.op == ir::Op::kStopGradient) same[static_cast<size_t>(out)] = of(0);
    if (node.op == ir::Op::kWhere && of(1) == of(2) &&
        (*types)[static_cast<size_t>(of(1))] == (*types)[static_cast<size_t>(out)])
      same[static_cast<size_t>(out)] = of(1);
  }
  return same;
}

}  // namespace

ir::Workload predicting(const ir::Workload& workload) {
  const int end = workload.model_end();
  if (end + 1 == static_cast<int>(workload.nodes.size()) && !workload.has(ir::Op::kStopGradient))
    return workload;
  const std::vector<ir::ValueId> same = without_gradients(workload);
  std::vector<bool> live(static_cast<size_t>(workload.value_count()), false);
  live[static_cast<size_t>(workload.output_of(end))] = true;
  for (int n = end; n >= 0; --n) {
    if (!live[static_cast<size_t>(workload.output_of(n))]) continue;
    for (const ir::ValueId id : workload.nodes[static_cast<size_t>(n)].inputs)
      live[static_cast<size_t>(same[static_cast<size_t>(id)])] = true;
  }
  ir::Workload made{.name = workload.name, .inputs = workload.inputs, .parameters = {}, .nodes = {}};
  std::map<ir::ValueId, ir::ValueId> values;
  for (ir::ValueId id = 0; workload.is_input(id); ++id) values[id] = id;
  std::map<ir::ParamId, ir::ParamId> params;
  for (int n = 0; n <= end; ++n) {
    if (!live[static_cast<size_t>(workload.output_of(n))]) continue;
    ir::Node node = workload.nodes[static_cast<size_t>(n)];
    for (ir::ValueId& id : node.inputs) id = values.at(same[static_cast<size_t>(id)]);
    for (ir::Slot& slot : node.params) {
      const auto [found, fresh] = params.emplace(slot.param, static_cast<ir::ParamId>(params.size()));
      if (fresh) made.parameters.push_back(workload.parameters[static_cast<size_t>(slot.param)]);
      slot.param = found->second;
    }
    made.nodes.push_back(std::move(node));
    values[workload.output_of(n)] = made.loss();
  }
  return made;
}

}  // namespace bakeoff::passes
