#include "ir/bounds.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <numeric>

#include "ir/op_table.h"
#include "ir/verify.h"

namespace bakeoff::ir {
namespace {

using Indices = std::vector<int64_t>;

// Which input of the workload an integer value is made of, and which element of its row each of the value's own
// elements is; input = -1 if they are computed.
struct Origin {
  ValueId input = -1;
  Indices elements = {};
};

int64_t row_size(const Shape& shape) {
  return std::accumulate(shape.begin() + 1, shape.end(), int64_t{1}, std::multiplies<>());
}

// Row-major strides of the axes after N, at the axes' own places.
Indices strides_of(const Shape& shape) {
  Indices strides(shape.size(), 1);
  for (size_t axis = shape.size() - 1; axis > 1; --axis) strides[axis - 1] = strides[axis] * shape[axis];
  return strides;
}

// Elements of a row, walked with these strides from `offset`.
Indices walked(const Indices& row, const Shape& shape, const Indices& strides, int64_t offset) {
  Indices found(static_cast<size_t>(row_size(shape)));
  const Indices own = strides_of(shape);
  for (size_t i = 0; i < found.size(); ++i) {
    int64_t at = offset;
    for (size_t axis = 1; axis < shape.size(); ++axis)
      at += static_cast<int64_t>(i) / own[axis] % shape[axis] * strides[axis];
    found[i] = row[static_cast<size_t>(at)];
  }
  return found;
}

Origin origin_of(const Workload& workload, const std::vector<Type>& types, ValueId id) {
  const Shape& shape = types[static_cast<size_t>(id)].shape;
  if (workload.is_input(id)) {
    Origin origin{.input = id, .elements = Indices(static_cast<size_t>(row_size(shape)))};
    std::iota(origin.elements.begin(), origin.elements.end(), 0);
    return origin;
  }
  const Node& node = workload.producer(id);
  const bool moves = node.op == Op::kTranspose || node.op == Op::kSlice;
  if (!moves && node.op != Op::kReshape && node.op != Op::kFlatten) return {};
  Origin origin = origin_of(workload, types, node.inputs[0]);
  if (origin.input < 0 || !moves) return origin;
  const Indices before = strides_of(types[static_cast<size_t>(node.inputs[0])].shape);
  Indices strides = before;
  int64_t offset = 0;
  if (node.op == Op::kTranspose) {
    const Indices& perm = node.integers("perm");
    for (size_t axis = 1; axis < perm.size(); ++axis) strides[axis] = before[static_cast<size_t>(perm[axis])];
  } else {
    const auto axis = static_cast<size_t>(node.integer("axis"));
    offset = node.integer("begin") * before[axis];
    strides[axis] *= node.integer("step");
  }
  origin.elements = walked(origin.elements, shape, strides, offset);
  return origin;
}

// What both allow.
Bound both(const Bound& a, const Bound& b) {
  Bound bound(std::min(a.end, b.end), {}, std::max(a.begin, b.begin));
  for (const auto& ignored : {a.ignored, b.ignored}) {
    if (ignored && a.holds(*ignored) && b.holds(*ignored) && !bound.holds(*ignored)) bound.ignored = ignored;
  }
  return bound;
}

}  // namespace

std::string to_text(const Bound& bound) {
  const std::string range = fmt::format("{}..{}", bound.begin, bound.end - 1);
  return bound.ignored ? fmt::format("{} and {}", range, *bound.ignored) : range;
}

const char* remedy(const Bound& bound) {
  return bound.begin > 0 ? "number the labels from 1: class 0 is blank, and -1 stands behind the last label"
                         : "number the classes from 0, or use a workload with more classes";
}

std::vector<RowBounds> row_bounds(const Workload& workload) {
  const Result<std::vector<Type>> types = infer(workload);
  assert(types);
  std::vector<RowBounds> bounds;
  for (const Input& input : workload.inputs)
    bounds.emplace_back(input.type.dtype == DType::kI32 ? static_cast<size_t>(row_size(input.type.shape))
                                                        : 0);
  for (const Node& node : workload.nodes) {
    const OpInfo& row = info(node.op);
    if (row.integer_input < 0 || row.integer_input >= static_cast<int>(node.inputs.size())) continue;
    std::vector<Type> inputs;
    for (const ValueId id : node.inputs) inputs.push_back((*types)[static_cast<size_t>(id)]);
    const Origin origin = origin_of(workload, *types, node.inputs[static_cast<size_t>(row.integer_input)]);
    if (origin.input < 0) continue;
    const int64_t end = row.bound(NodeView{node, inputs, workload});
    const Bound own = node.op == Op::kCtc ? Bound(end, kNoLabel, 1) : Bound(end, ignore_index(node));
    for (const int64_t element : origin.elements) {
      std::optional<Bound>& bound = bounds[static_cast<size_t>(origin.input)][static_cast<size_t>(element)];
      bound = both(bound.value_or(own), own);
    }
  }
  return bounds;
}

RowBounds row_bounds(const Workload& workload, ValueId input) {
  return row_bounds(workload)[static_cast<size_t>(input)];
}

std::vector<std::optional<int64_t>> integer_bounds(const Workload& workload) {
  std::vector<std::optional<int64_t>> smallest;
  for (const RowBounds& row : row_bounds(workload)) {
    std::optional<int64_t>& least = smallest.emplace_back();
    for (const auto& bound : row) {
      if (bound) least = std::min(least.value_or(bound->end), bound->end);
    }
  }
  return smallest;
}

std::optional<int64_t> integer_bound(const Workload& workload, ValueId input) {
  return integer_bounds(workload)[static_cast<size_t>(input)];
}

std::optional<int64_t> ctc_frames(const Workload& workload, ValueId input) {
  const Result<std::vector<Type>> types = infer(workload);
  assert(types);
  std::optional<int64_t> least;
  for (const int n : consumers(workload, input)) {
    const Node& node = workload.nodes[static_cast<size_t>(n)];
    if (node.op != Op::kCtc || node.inputs[1] != input) continue;
    const int64_t frames = (*types)[static_cast<size_t>(node.inputs[0])].shape[1];
    least = std::min(least.value_or(frames), frames);
  }
  return least;
}

std::string ctc_misfit(std::span<const int64_t> row, int64_t frames) {
  const auto end = std::ranges::find(row, kNoLabel);
  const auto behind = std::find_if(end, row.end(), [](int64_t label) { return label != kNoLabel; });
  if (behind != row.end()) return fmt::format("label {} behind the padding of {}", *behind, kNoLabel);
  int64_t needed = 0;
  for (auto label = row.begin(); label != end; ++label)
    needed += label != row.begin() && *label == *(label - 1) ? 2 : 1;
  if (needed <= frames) return "";
  return fmt::format("its labels take {} frames, a blank between equal neighbours included, of {}", needed,
                     frames);
}

void end_labels(std::span<int64_t> row, int64_t length, int64_t frames) {
  std::fill(row.begin() + length, row.end(), kNoLabel);
  while (!ctc_misfit(row, frames).empty()) row[static_cast<size_t>(--length)] = kNoLabel;
}

}  // namespace bakeoff::ir
