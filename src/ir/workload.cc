#include "ir/workload.h"

#include <algorithm>
#include <cassert>
#include <cstdlib>

namespace bakeoff::ir {

bool is_conv(Op op) { return op == Op::kConv1d || op == Op::kConv2d || op == Op::kConv3d; }
bool is_recurrent(Op op) { return op == Op::kLstm || op == Op::kGru; }

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
  return !parameter.frozen && parameter.role != Role::kRunningMean && parameter.role != Role::kRunningVar;
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
