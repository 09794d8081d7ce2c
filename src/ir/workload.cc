#include "ir/workload.h"

#include <algorithm>
#include <cassert>
#include <cstdlib>
#include <map>

namespace bakeoff::ir {

bool is_conv(Op op) { return op == Op::kConv1d || op == Op::kConv2d || op == Op::kConv3d; }
bool is_recurrent(Op op) { return op == Op::kLstm || op == Op::kGru; }
bool is_loss(Op op) {
  return op == Op::kSoftmaxCrossEntropy || op == Op::kMse || op == Op::kL1 || op == Op::kBceWithLogits ||
         op == Op::kCtc;
}

bool is_conv_transpose(Op op) {
  return op == Op::kConvTranspose1d || op == Op::kConvTranspose2d || op == Op::kConvTranspose3d;
}
namespace {

const AttrValue& attribute(const Node& node, std::string_view name) {
  for (const Attribute& a : node.attributes) {
    if (a.name == name) return a.value;
  }
  assert(!"the op has no such attribute");
  std::abort();
}

}  // namespace

bool trainable(const Parameter& parameter) {
  return !parameter.frozen && parameter.role != Role::kRunningMean && parameter.role != Role::kRunningVar &&
         parameter.role != Role::kCache;
}

int64_t Node::integer(std::string_view name) const { return std::get<int64_t>(attribute(*this, name)); }
double Node::real(std::string_view name) const { return std::get<double>(attribute(*this, name)); }
bool Node::flag(std::string_view name) const { return std::get<bool>(attribute(*this, name)); }
const std::vector<int64_t>& Node::integers(std::string_view name) const {
  return std::get<std::vector<int64_t>>(attribute(*this, name));
}
const std::string& Node::word(std::string_view name) const {
  return std::get<std::string>(attribute(*this, name));
}

std::vector<int64_t> Node::reduced_axes() const {
  if (has_attribute("axis")) return {integer("axis")};
  return integers("axes");
}

bool Node::has_attribute(std::string_view name) const {
  return std::any_of(attributes.begin(), attributes.end(),
                     [name](const Attribute& a) { return a.name == name; });
}

ParamId Node::param(std::string_view slot) const {
  for (const Slot& s : params) {
    if (s.name == slot) return s.param;
  }
  return -1;
}

bool Workload::has(Op op) const {
  return std::any_of(nodes.begin(), nodes.end(), [op](const Node& node) { return node.op == op; });
}

int Workload::model_end() const {
  const auto first =
      std::find_if(nodes.begin(), nodes.end(), [](const Node& node) { return is_loss(node.op); });
  return static_cast<int>(first - nodes.begin());
}

int Workload::join() const {
  const ValueId id = prediction();
  return is_input(id) || producer(id).op != Op::kJoin ? -1 : id - static_cast<int>(inputs.size());
}

std::vector<ValueId> Workload::predictions() const {
  return join() < 0 ? std::vector{prediction()} : nodes[static_cast<size_t>(join())].inputs;
}

std::vector<ValueId> Workload::outputs() const {
  std::vector<ValueId> all = {prediction()};
  for (const Node& node : nodes) {
    for (const ValueId id : is_loss(node.op) ? node.inputs : std::vector<ValueId>()) {
      if (!is_input(id) && std::find(all.begin(), all.end(), id) == all.end()) all.push_back(id);
    }
  }
  return all;
}

std::vector<LossTerm> loss_terms(const Workload& workload) {
  std::map<ValueId, std::map<int, double>> sums;  // of each value behind the model: loss -> weight
  for (int n = workload.model_end(); n < static_cast<int>(workload.nodes.size()); ++n) {
    const Node& node = workload.nodes[static_cast<size_t>(n)];
    std::map<int, double>& sum = sums[workload.output_of(n)];
    if (is_loss(node.op)) sum[n] = 1;
    double factor = 1;
    for (const ValueId id : is_loss(node.op) ? std::vector<ValueId>() : node.inputs) {
      if (workload.is_constant(id)) factor *= workload.producer(id).real("value");
    }
    for (const ValueId id : is_loss(node.op) ? std::vector<ValueId>() : node.inputs) {
      for (const auto& [loss, weight] : sums[id]) sum[loss] += factor * weight;
    }
  }
  std::vector<LossTerm> terms;
  for (const auto& [loss, weight] : sums[workload.loss()]) terms.push_back({loss, weight});
  return terms;
}

bool has_conv(const Workload& workload) {
  return std::any_of(workload.nodes.begin(), workload.nodes.end(),
                     [](const Node& node) { return is_conv(node.op) || is_conv_transpose(node.op); });
}

const std::string& Workload::value_name(ValueId id) const {
  return is_input(id) ? inputs[static_cast<size_t>(id)].name : producer(id).output;
}

ParamId Workload::find_parameter(std::string_view wanted) const {
  for (size_t i = 0; i < parameters.size(); ++i) {
    if (parameters[i].name == wanted) return static_cast<ParamId>(i);
  }
  return -1;
}

int64_t Workload::parameter_count() const {
  int64_t count = 0;
  for (const Parameter& p : parameters) {
    if (trainable(p)) count += elements(p.shape);
  }
  return count;
}

int64_t Workload::frozen_count() const {
  int64_t count = 0;
  for (const Parameter& p : parameters) {
    if (p.frozen) count += elements(p.shape);
  }
  return count;
}

std::optional<int64_t> ignore_index(const Node& loss) {
  if (!loss.has_attribute("ignore_index")) return std::nullopt;
  return loss.integer("ignore_index");
}

std::optional<int64_t> padding_idx(const Node& embedding) {
  if (!embedding.has_attribute("padding_idx")) return std::nullopt;
  return embedding.integer("padding_idx");
}

std::vector<int> consumers(const Workload& workload, ValueId id) {
  std::vector<int> found;
  for (size_t n = 0; n < workload.nodes.size(); ++n) {
    for (const ValueId input : workload.nodes[n].inputs) {
      if (input == id) {
        found.push_back(static_cast<int>(n));
        break;
      }
    }
  }
  return found;
}

}  // namespace bakeoff::ir
