#include "emit/slices.h"

#include <fmt/format.h>

#include <algorithm>

namespace bakeoff::emit {
namespace {

class SliceFinder {
 public:
  SliceFinder(const ir::Workload& workload, const std::vector<ir::Type>& types, const LayoutPlan* plan,
              const std::vector<int>* live)
      : workload_(workload), types_(types), plan_(plan), live_(live) {}

  bool plain_slice(int n) const {
    if (n >= workload_.model_end()) return false;
    if (live_ != nullptr && !std::binary_search(live_->begin(), live_->end(), n)) return false;
    const ir::Node& slice = node(n);
    return slice.op == ir::Op::kSlice && slice.integer("step") == 1 && canonical(n);
  }

  Split split_from(int first) const {
    Split split{.axis = node(first).integer("axis")};
    const ir::ValueId input = node(first).inputs[0];
    const int64_t whole = shape(input)[static_cast<size_t>(split.axis)];
    int64_t at = 0;
    for (int n = first; at < whole && plain_slice(n) && !in_select(n); ++n) {
      const ir::Node& slice = node(n);
      if (slice.inputs[0] != input || slice.integer("axis") != split.axis || slice.integer("begin") != at)
        break;
      split.nodes.push_back(n);
      split.widths.push_back(slice.integer("end") - at);
      at = slice.integer("end");
    }
    if (at != whole || whole >= ir::kSteps || split.nodes.size() < 2) split.nodes.clear();
    return split;
  }

  // Each place of an axis, as its gradient is one stack then, and not a sum of arrays of zeros. Along more places a loop
  // may go (emit/loops.h, from 3 iterations on), which reads each by its index: names of theirs would stand unused.
  Split unbound_from(int first) const {
    constexpr int64_t kMostPlaces = 3;
    Split split{.axis = node(first).integer("axis"), .unbinds = true};
    const ir::ValueId input = node(first).inputs[0];
    const int64_t whole = shape(input)[static_cast<size_t>(split.axis)];
    int64_t at = 0;
    for (int n = first; at < whole && in_select(n); n += 2, ++at) {
      const ir::Node& slice = node(n);
      if (slice.inputs[0] != input || slice.integer("axis") != split.axis || slice.integer("begin") != at)
        break;
      split.nodes.push_back(n + 1);
      split.widths.push_back(1);
    }
    if (at != whole || at < 2 || at > kMostPlaces) split.nodes.clear();
    return split;
  }

  // Whether the next node, a reshape that nothing else reads besides, drops the axis of a slice of one place.
  bool in_select(int n) const {
    if (!plain_slice(n) || n + 1 >= workload_.model_end()) return false;
    const ir::Node &slice = node(n), &next = node(n + 1);
    const ir::ValueId value = workload_.output_of(n);
    const bool reshapes = next.op == ir::Op::kReshape || next.op == ir::Op::kFlatten;
    if (!reshapes || !canonical(n + 1) || next.inputs[0] != value) return false;
    if (slice.integer("end") - slice.integer("begin") != 1) return false;
    if (ir::consumers(workload_, value).size() != 1 || slice.integer("axis") == 0) return false;
    ir::Shape left = shape(value);
    left.erase(left.begin() + slice.integer("axis"));
    return left == shape(workload_.output_of(n + 1));
  }

  std::string index(int n) const {
    const ir::Node& slice = node(n);
    const int64_t begin = slice.integer("begin");
    const bool last = slice.integer("end") == ir::kSteps;
    return index_of(slice.integer("axis"), shape(slice.inputs[0]).size(),
                    std::to_string(last ? begin - ir::kSteps : begin));
  }

 private:
  const ir::Node& node(int n) const { return workload_.nodes[static_cast<size_t>(n)]; }
  const ir::Shape& shape(ir::ValueId id) const { return types_[static_cast<size_t>(id)].shape; }
  bool canonical(int n) const {
    const auto value = static_cast<size_t>(workload_.output_of(n));
    return plan_ == nullptr || (plan_->reads[static_cast<size_t>(n)][0] == Order::kCanonical &&
                                plan_->values[value] == Order::kCanonical &&
                                plan_->values[static_cast<size_t>(node(n).inputs[0])] == Order::kCanonical);
  }

  const ir::Workload& workload_;
  const std::vector<ir::Type>& types_;
  const LayoutPlan* plan_;
  const std::vector<int>* live_;
};

}  // namespace

std::string index_of(int64_t axis, size_t rank, const std::string& what) {
  if (axis > 1 && static_cast<size_t>(axis) + 1 == rank) return fmt::format("[..., {}]", what);
  std::string text = "[";
  for (int64_t i = 0; i < axis; ++i) text += ":, ";
  return text + what + "]";
}

bool Split::even() const {
  return std::all_of(widths.begin(), widths.end(), [this](int64_t width) { return width == widths[0]; });
}

std::vector<int64_t> Split::cuts() const {
  std::vector<int64_t> all;
  for (size_t i = 0; i + 1 < widths.size(); ++i) all.push_back(widths[i] + (i == 0 ? 0 : all.back()));
  return all;
}

Slices::Slices(const ir::Workload& workload, const std::vector<ir::Type>& types, const LayoutPlan* plan,
               const std::vector<int>* live) {
  const SliceFinder find(workload, types, plan, live);
  for (int n = 0; n < workload.model_end(); ++n) {
    if (!find.plain_slice(n)) continue;
    if (find.in_select(n)) {
      selects_[n] = find.index(n);
      Split split = find.unbound_from(n);
      const bool begun = !splits_.empty() && splits_.rbegin()->second.nodes.back() > n;
      if (!split.nodes.empty() && !begun) splits_.emplace(n, std::move(split));
    } else if (Split split = find.split_from(n); !split.nodes.empty()) {
      n = split.nodes.back();
      splits_.emplace(split.nodes[0], std::move(split));
    }
  }
}

namespace {

bool apart(int first, int last, const Stretch& stretch, const Blocks& blocks) {
  for (int n = first; n <= last; ++n)
    if (n >= stretch.end || blocks.at(n, stretch) != nullptr) return false;
  return true;
}

}  // namespace

const Split* Slices::split_at(int node, const Stretch& stretch, const Blocks& blocks) const {
  const auto found = splits_.find(node);
  if (found == splits_.end() || !apart(node, found->second.nodes.back(), stretch, blocks)) return nullptr;
  return &found->second;
}

std::vector<int> Slices::together(int node) const {
  const auto next = splits_.upper_bound(node);
  std::vector<int> all;
  if (next == splits_.begin()) return all;
  const auto& [first, split] = *std::prev(next);
  for (int n = first; node <= split.nodes.back() && n <= split.nodes.back(); ++n) all.push_back(n);
  return all;
}

std::string Slices::select_at(int node, const Stretch& stretch, const Blocks& blocks) const {
  const auto found = selects_.find(node);
  return found == selects_.end() || !apart(node, node + 1, stretch, blocks) ? "" : found->second;
}

}  // namespace bakeoff::emit
