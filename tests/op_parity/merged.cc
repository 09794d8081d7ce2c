#include "merged.h"

#include "ir/op_table.h"
#include "ir/verify.h"

namespace bakeoff {
namespace {

using ir::Node;
using ir::Op;
using ir::ValueId;
using ir::Workload;

ValueId target_of(const Workload& part) { return part.nodes.back().inputs[1]; }

class Merger {
 public:
  explicit Merger(std::string name) { all_.name = std::move(name); }

  void add_inputs(const NamedWorkload& part) {
    std::vector<ValueId>& values = values_.emplace_back();
    for (size_t i = 0; i < part.second.inputs.size(); ++i) {
      const ir::Input& input = part.second.inputs[i];
      const bool target = static_cast<ValueId>(i) == target_of(part.second);
      values.push_back(target ? -1 : static_cast<ValueId>(all_.inputs.size()));
      if (target)
        width_ += input.type.shape[1];
      else
        all_.inputs.push_back({part.first + "_" + input.name, input.type});
    }
  }

  // After the inputs of all parts.
  void add_nodes(size_t at, const NamedWorkload& part) {
    const auto first_parameter = static_cast<ir::ParamId>(all_.parameters.size());
    for (ir::Parameter parameter : part.second.parameters) {
      parameter.name.insert(0, part.first + ".");
      all_.parameters.push_back(std::move(parameter));
    }
    std::vector<ValueId>& values = values_[at];
    for (size_t n = 0; n + 1 < part.second.nodes.size(); ++n) {
      Node node = part.second.nodes[n];
      node.output.insert(0, part.first + "_");
      for (ValueId& input : node.inputs) input = values[static_cast<size_t>(input)];
      for (ir::Slot& slot : node.params) slot.param += first_parameter;
      values.push_back(add(std::move(node)));
    }
    predictions_.push_back(values[static_cast<size_t>(part.second.prediction())]);
  }

  void add_target() {
    target_ = static_cast<ValueId>(all_.inputs.size());
    all_.inputs.push_back({"target", {ir::DType::kF32, {ir::kBatch, width_}}});
  }

  Result<Workload> finish() {
    Node joined = ir::node_with_defaults(Op::kConcat);
    joined.output = "joined";
    joined.inputs = predictions_;
    Node loss = ir::node_with_defaults(Op::kMse);
    loss.output = "loss";
    loss.inputs = {add(std::move(joined)), target_};
    add(std::move(loss));
    TRY(const auto types, ir::infer(all_));
    return std::move(all_);
  }

 private:
  ValueId add(Node node) {
    all_.nodes.push_back(std::move(node));
    return all_.output_of(static_cast<int>(all_.nodes.size()) - 1);
  }

  Workload all_;
  std::vector<std::vector<ValueId>> values_;  // of each part: its values in the whole
  std::vector<ValueId> predictions_;
  ValueId target_ = -1;
  int64_t width_ = 0;
};

}  // namespace

Result<Workload> merged(const std::string& name, const std::vector<NamedWorkload>& parts) {
  Merger merger(name);
  for (const NamedWorkload& part : parts) merger.add_inputs(part);
  merger.add_target();
  for (size_t i = 0; i < parts.size(); ++i) merger.add_nodes(i, parts[i]);
  return merger.finish();
}

}  // namespace bakeoff
