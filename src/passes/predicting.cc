#include "passes/predicting.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <utility>

#include "ir/op_table.h"
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

// The inputs, the nodes and parameters that the first loss depends on, and that loss.
ir::Workload pruned(const ir::Workload& workload) {
  const int end = workload.model_end();
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

// `wish`, or with "_" behind where a value or an input has that name.
std::string unused(const ir::Workload& workload, std::string wish) {
  for (ir::ValueId id = 0; id < workload.value_count(); ++id) {
    if (workload.value_name(id) == wish) return unused(workload, wish + "_");
  }
  return wish;
}

ir::ValueId add(ir::Workload& workload, ir::Op op, const std::string& name, std::vector<ir::ValueId> inputs) {
  ir::Node node = ir::node_with_defaults(op);
  node.output = unused(workload, name);
  node.inputs = std::move(inputs);
  workload.nodes.push_back(std::move(node));
  return workload.value_count() - 1;
}

}  // namespace

ir::Workload predicting(const ir::Workload& workload) {
  const bool one_loss = workload.model_end() + 1 == static_cast<int>(workload.nodes.size());
  return one_loss && !workload.has(ir::Op::kStopGradient) ? workload : pruned(workload);
}

Result<ir::Workload> predicting(const ir::Workload& workload, const std::vector<std::string>& outputs) {
  ir::Workload made = workload;
  made.nodes.resize(static_cast<size_t>(workload.model_end()));
  std::vector<ir::ValueId> ids;
  for (const std::string& name : outputs) {
    const auto named = [&](const ir::Node& node) { return node.output == name; };
    const auto found = std::find_if(made.nodes.begin(), made.nodes.end(), named);
    if (found == made.nodes.end())
      return Error{
          .message = fmt::format("workload '{}' computes no value '{}' before its loss", workload.name, name),
          .remedy = "`bakeoff show` with the recipe lists the values that it computes"};
    ids.push_back(made.output_of(static_cast<int>(found - made.nodes.begin())));
    if (std::count(outputs.begin(), outputs.end(), name) > 1)
      return Error{.message = fmt::format("'{}' is named twice", name), .remedy = "name each value once"};
  }
  const ir::ValueId all = ids.size() == 1 ? ids[0] : add(made, ir::Op::kJoin, "outputs", ids);
  add(made, ir::Op::kMse, "loss", {all, all});
  made = pruned(made);
  if (const auto types = ir::infer(made); !types) return types.error();
  return made;
}

}  // namespace bakeoff::passes
