#include "emit/torch/recurrences.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "emit/code_writer.h"
#include "emit/torch_rules.h"

namespace bakeoff::emit::torch {
namespace {

using ir::Op;

class Reader {
 public:
  Reader(const ir::Workload& workload, int end) : workload_(workload), end_(end) {}

  // The recurrence that begins with a node.
  std::optional<Recurrence> at(int first) {
    if (!is_recurrent(first)) return std::nullopt;
    found_ = {.path = layer_of(name_of(node(first), "weight_ih")), .first = first, .end = first};
    ir::ValueId input = node(first).inputs[0];
    while (const std::optional<ir::ValueId> value = layer(input)) input = *value;
    const bool several = found_.layers > 1 || found_.both;
    return several && alone() ? std::optional(found_) : std::nullopt;
  }

 private:
  const ir::Node& node(int n) const { return workload_.nodes[static_cast<size_t>(n)]; }
  bool is_recurrent(int n) const { return n < end_ && ir::is_recurrent(node(n).op); }
  const std::string& name_of(const ir::Node& n, const char* slot) const {
    return workload_.parameters[static_cast<size_t>(n.param(slot))].name;
  }

  // Takes a node of the present layer, if it is one.
  bool take(int n, ir::ValueId input, bool reverse) {
    if (!is_recurrent(n) || node(n).op != node(found_.first).op || node(n).flag("reverse") != reverse ||
        node(n).inputs[0] != input || node(n).params.size() != node(found_.first).params.size())
      return false;
    for (const ir::Slot& slot : node(n).params) {
      const ir::Parameter& p = workload_.parameters[static_cast<size_t>(slot.param)];
      std::string leaf = torch_leaf(node(n).op, slot.name);
      leaf.replace(leaf.rfind("_l0"), 3, fmt::format("_l{}{}", found_.layers, reverse ? "_reverse" : ""));
      if (p.name != found_.path + "." + leaf || p.frozen) return false;
      found_.leaves[slot.param] = leaf;
    }
    return true;
  }

  // The value of one more layer.
  std::optional<ir::ValueId> layer(ir::ValueId input) {
    const int n = found_.end;
    const Recurrence before = found_;
    const bool follows = n == found_.first || only_read_by_layer(input, n);
    if (!follows || !take(n, input, false)) return std::nullopt;
    const ir::ValueId ahead = workload_.output_of(n);
    const bool both = take(n + 1, input, true);
    const bool joined = both && n + 2 < end_ && node(n + 2).op == Op::kConcat &&
                        node(n + 2).integer("axis") == 2 &&
                        node(n + 2).inputs == std::vector{ahead, workload_.output_of(n + 1)} && once(ahead) &&
                        once(workload_.output_of(n + 1));
    if (both != joined || (found_.layers > 0 && both != found_.both)) {
      found_ = before;
      return std::nullopt;
    }
    found_.both = both;
    ++found_.layers;
    found_.end = both ? n + 3 : n + 1;
    return workload_.output_of(found_.end - 1);
  }

  bool once(ir::ValueId id) const { return ir::consumers(workload_, id).size() == 1; }
  bool only_read_by_layer(ir::ValueId value, int n) const {
    const std::vector<int> readers = ir::consumers(workload_, value);
    return std::all_of(readers.begin(), readers.end(),
                       [&](int r) { return r == n || (found_.both && r == n + 1); });
  }

  // Whether these are all parameters below the path, each read once.
  bool alone() const {
    size_t below = 0;
    for (size_t id = 0; id < workload_.parameters.size(); ++id) {
      if (!workload_.parameters[id].name.starts_with(found_.path + ".")) continue;
      ++below;
      if (!found_.leaves.contains(static_cast<ir::ParamId>(id))) return false;
    }
    const auto reads = [&](const ir::Node& n) {
      return std::any_of(n.params.begin(), n.params.end(),
                         [&](const ir::Slot& slot) { return found_.leaves.contains(slot.param); });
    };
    const auto readers = std::count_if(workload_.nodes.begin(), workload_.nodes.end(), reads);
    return below == found_.leaves.size() && readers == found_.layers * (found_.both ? 2 : 1);
  }

  const ir::Workload& workload_;
  int end_;
  Recurrence found_;
};

}  // namespace

std::vector<Recurrence> find_recurrences(const ir::Workload& workload, int first, int end) {
  std::vector<Recurrence> all;
  Reader reader(workload, end);
  for (int n = first; n < end; ++n) {
    const std::optional<Recurrence> found = reader.at(n);
    if (!found) continue;
    all.push_back(*found);
    n = found->end - 1;
  }
  return all;
}

}  // namespace bakeoff::emit::torch
