// First the structure of all nodes, then types. Shape rules (op_shapes.h) read inputs, parameters and
// attributes without asking whether they exist, so that is checked before: number of inputs, kinds of
// attributes, parameters in the order of the op's slots. Types follow in the order of the nodes, since
// every node reads earlier values only.

#include "ir/verify.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "base/texts.h"
#include "ir/op_table.h"

namespace bakeoff::ir {
namespace {

Error at(const Node& node, const std::string& message) {
  return Error{.message = fmt::format("{} = {}: {}", node.output, info(node.op).name, message),
               .remedy = fmt::format("`bakeoff ops --markdown` says what {} takes", info(node.op).name)};
}

// Of a parameter, of a row of a value, and what an attribute may say: products of two such numbers fit 64 bits.
constexpr int64_t kMostNumbers = int64_t{1} << 31;

bool too_large(const Shape& shape) {
  int64_t numbers = 1;
  for (const int64_t size : shape) {
    if (size <= 0) continue;  // N; impossible sizes are named elsewhere
    if (size > kMostNumbers / numbers) return true;
    numbers *= size;
  }
  return false;
}

Error too_large(const std::string& what, const Shape& shape) {
  return {.message = fmt::format("{} has the shape {}, more than {} numbers{}", what, to_text(shape),
                                 kMostNumbers, !shape.empty() && shape[0] == kBatch ? " in a row" : "")};
}

bool in_range(const AttrValue& value) {
  const auto fits = [](int64_t n) { return n >= -kMostNumbers && n <= kMostNumbers; };
  if (const auto* number = std::get_if<int64_t>(&value)) return fits(*number);
  const auto* all = std::get_if<std::vector<int64_t>>(&value);
  return all == nullptr || std::ranges::all_of(*all, fits);
}

bool kind_fits(AttrKind kind, const AttrValue& value) {
  switch (kind) {
    case AttrKind::kInt:
      return std::holds_alternative<int64_t>(value);
    case AttrKind::kReal:
      return std::holds_alternative<double>(value);
    case AttrKind::kFlag:
      return std::holds_alternative<bool>(value);
    case AttrKind::kInts:
      return std::holds_alternative<std::vector<int64_t>>(value);
    case AttrKind::kWord:
      return std::holds_alternative<std::string>(value);
  }
  return false;
}

Status check_attributes(const Node& node, const OpInfo& row) {
  size_t next = 0;
  for (const AttrSpec& spec : row.attributes) {
    if (next == node.attributes.size() || node.attributes[next].name != spec.name) {
      if (spec.optional) continue;
      return at(node, fmt::format("attribute '{}' is missing", spec.name));
    }
    const Attribute& a = node.attributes[next++];
    if (!kind_fits(spec.kind, a.value))
      return at(node, fmt::format("attribute '{}' is of the wrong kind", spec.name));
    if (!in_range(a.value))
      return at(node, fmt::format("attribute '{}' is beyond {} either way", spec.name, kMostNumbers));
    if (spec.kind == AttrKind::kInts && spec.count > 0 &&
        std::get<std::vector<int64_t>>(a.value).size() != spec.count) {
      return at(node, fmt::format("attribute '{}' needs {} numbers", spec.name, spec.count));
    }
    if (spec.kind == AttrKind::kWord &&
        std::find(spec.words.begin(), spec.words.end(), std::get<std::string>(a.value)) == spec.words.end()) {
      return at(node, fmt::format("attribute '{}' must be one of {}", spec.name, join(spec.words, ", ")));
    }
  }
  if (next != node.attributes.size()) return at(node, "has attributes that the op does not know");
  return Done{};
}

Status check_params(const Workload& workload, const Node& node, const OpInfo& row) {
  size_t next = 0;
  for (const ParamSpec& spec : row.params) {
    const bool present = next < node.params.size() && node.params[next].name == spec.slot;
    if (!present) {
      if (spec.optional) continue;
      return at(node, fmt::format("parameter '{}' is missing", spec.slot));
    }
    const ParamId id = node.params[next++].param;
    if (id < 0 || id >= static_cast<int>(workload.parameters.size())) {
      return at(node, fmt::format("parameter '{}' does not exist", spec.slot));
    }
    const Parameter& p = workload.parameters[static_cast<size_t>(id)];
    const bool tied = (p.role == Role::kTable && spec.role == Role::kWeight) ||
                      (p.role == Role::kWeight && spec.role == Role::kTable);
    if (p.role != spec.role && !tied && node.op != Op::kParameter) {
      return at(node, fmt::format("'{}' serves another purpose elsewhere", p.name));
    }
    if (p.init && (!trainable(p) || !(*p.init >= 0) || !std::isfinite(*p.init)))
      return at(node,
                fmt::format("'{}' has init={}: a trained parameter has one from 0 on", p.name, *p.init));
    for (const int64_t size : p.shape) {
      if (size < 1 && (size != kBatch || p.role != Role::kCache))
        return at(node, fmt::format("'{}' has the impossible shape {}", p.name, to_text(p.shape)));
    }
  }
  if (next != node.params.size()) {
    return at(node, fmt::format("unknown or repeated parameter '{}'", node.params[next].name));
  }
  return Done{};
}

Status check_inputs(const Node& node, const OpInfo& row, ValueId defined) {
  const size_t n = node.inputs.size();
  if (n < row.min_inputs || n > row.max_inputs) {
    return at(node, row.min_inputs == row.max_inputs
                        ? fmt::format("takes {} input(s), got {}", row.min_inputs, n)
                        : fmt::format("takes {} to {} inputs, got {}", row.min_inputs, row.max_inputs, n));
  }
  for (const ValueId input : node.inputs) {
    if (input < 0 || input >= defined) return at(node, "reads a value that is not defined yet");
  }
  return Done{};
}

// Behind the first loss only losses, constants, and what makes a weighted sum of the losses.
Status check_losses(const Workload& workload) {
  std::set<ValueId> sums;    // losses, and sums of them
  std::set<ValueId> unread;  // those of them that nothing has read yet
  for (int n = workload.model_end(); n < static_cast<int>(workload.nodes.size()); ++n) {
    const Node& node = workload.nodes[static_cast<size_t>(n)];
    const auto is_sum = [&](ValueId id) { return sums.contains(id); };
    const auto is_weight = [&](ValueId id) {
      return workload.is_constant(id) && std::isfinite(workload.producer(id).real("value"));
    };
    if (node.op == Op::kConstant) continue;
    if (!is_loss(node.op)) {
      if (node.op != Op::kAdd && node.op != Op::kMul)
        return at(node, "losses come last: behind them only add and mul make their weighted sum");
      if (node.op == Op::kAdd && !std::all_of(node.inputs.begin(), node.inputs.end(), is_sum))
        return at(node, "behind a loss it adds losses alone");
      if (node.op == Op::kMul && !(is_sum(node.inputs[0]) && is_weight(node.inputs[1])) &&
          !(is_weight(node.inputs[0]) && is_sum(node.inputs[1])))
        return at(node, "behind a loss it multiplies a loss by a finite constant");
    }
    for (const ValueId id : node.inputs) {
      if (is_loss(node.op) && is_sum(id)) return at(node, "a loss does not read a loss");
      unread.erase(id);
    }
    sums.insert(workload.output_of(n));
    unread.insert(workload.output_of(n));
  }
  if (sums.empty() || !unread.contains(workload.loss()))
    return at(workload.nodes.back(), "the last node must be a loss, or the sum of several");
  for (const LossTerm& term : loss_terms(workload)) {
    if (!std::isfinite(term.weight))
      return at(workload.nodes.back(), "the weights of its losses must be finite");
  }
  for (const ValueId id : unread) {
    if (id != workload.loss()) return at(workload.producer(id), "is no part of the last value, the loss");
  }
  return Done{};
}

Status check_names(const Workload& workload) {
  std::set<std::string> names;
  for (const Input& input : workload.inputs) {
    if (!names.insert(input.name).second) return Error{.message = "'" + input.name + "' is defined twice"};
    const Shape& s = input.type.shape;
    if (s == Shape{kSteps}) continue;  // the positions of a step of decoding
    for (size_t axis = 0; axis < s.size(); ++axis) {
      if ((axis == 0) != (s[axis] == kBatch) || s[axis] == 0 || s[axis] < kBatch) {
        return Error{.message = fmt::format("input '{}' must be [N,...] with positive sizes, is {}",
                                            input.name, to_text(s))};
      }
    }
    if (s.empty()) return Error{.message = fmt::format("input '{}' needs the batch axis N", input.name)};
  }
  for (const Node& node : workload.nodes) {
    if (!names.insert(node.output).second) return at(node, "this name is defined twice");
  }
  std::set<std::string> params;
  for (const Parameter& p : workload.parameters) {
    if (!params.insert(p.name).second)
      return Error{.message = "parameter '" + p.name + "' is declared twice"};
  }
  return Done{};
}

// A step of decoding is made from a workload that was checked; its number of words is no size.
bool decodes(const Workload& workload) {
  return std::ranges::any_of(workload.inputs,
                             [](const Input& input) { return input.type.shape == Shape{kSteps}; });
}

Status check_sizes(const Workload& workload) {
  for (const Input& input : workload.inputs)
    if (too_large(input.type.shape))
      return too_large(fmt::format("input '{}'", input.name), input.type.shape);
  for (const Parameter& p : workload.parameters)
    if (too_large(p.shape)) return too_large(fmt::format("parameter '{}'", p.name), p.shape);
  return Done{};
}

}  // namespace

Result<std::vector<Type>> infer(const Workload& workload) {
  if (workload.nodes.empty()) return Error{.message = "workload '" + workload.name + "' has no nodes"};
  CHECK_OK(check_names(workload));
  const bool checked = decodes(workload);
  if (!checked) CHECK_OK(check_sizes(workload));
  std::vector<Type> types;
  for (size_t n = 0; n < workload.nodes.size(); ++n) {
    const Node& node = workload.nodes[n];
    const OpInfo& row = info(node.op);
    CHECK_OK(check_inputs(node, row, workload.output_of(static_cast<int>(n))));
    CHECK_OK(check_params(workload, node, row));
    CHECK_OK(check_attributes(node, row));
  }
  CHECK_OK(check_losses(workload));
  for (const Input& input : workload.inputs) types.push_back(input.type);
  for (const Node& node : workload.nodes) {
    std::vector<Type> inputs;
    for (const ValueId id : node.inputs) inputs.push_back(types[static_cast<size_t>(id)]);
    Result<Type> type = info(node.op).shape(NodeView{node, inputs, workload});
    if (!type) return at(node, type.error().message);
    if (!checked && too_large(type->shape)) return at(node, too_large("it", type->shape).message);
    types.push_back(*type);
  }
  return types;
}

}  // namespace bakeoff::ir
