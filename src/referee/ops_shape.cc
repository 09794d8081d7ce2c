// Ops that move elements. The first three also move integers.

#include "referee/ops.h"
#include "referee/walk.h"

namespace bakeoff::referee {
namespace {

// Flatten and reshape: the same elements under another shape.
AnyTensor renamed(const NodeContext& c) {
  return std::visit(
      [&](const auto& x) -> AnyTensor {
        auto y = x;
        y.shape = c.shape;
        return y;
      },
      *c.inputs[0]);
}

void renamed_backward(const NodeContext&, const Tensor&, const Tensor& grad, const Gradients& to) {
  if (to.inputs[0] == nullptr) return;
  for (size_t i = 0; i < grad.data.size(); ++i) to.inputs[0]->data[i] += grad.data[i];
}

// Strides of the input along the axes of the output.
Strides permuted_strides(const NodeContext& c) {
  const Strides original = strides_of(tensor::shape_of(*c.inputs[0]));
  Strides strides;
  for (const int64_t axis : c.node.integers("perm")) strides.push_back(original[static_cast<size_t>(axis)]);
  return strides;
}

AnyTensor transpose(const NodeContext& c) {
  const Strides strides = permuted_strides(c);
  return std::visit(
      [&](const auto& x) -> AnyTensor {
        auto y = x;
        y.shape = c.shape;
        walk(c.shape, strides, strides, [&](int64_t i, int64_t from, int64_t) {
          y.data[static_cast<size_t>(i)] = x.data[static_cast<size_t>(from)];
        });
        return y;
      },
      *c.inputs[0]);
}

void transpose_backward(const NodeContext& c, const Tensor&, const Tensor& grad, const Gradients& to) {
  if (to.inputs[0] == nullptr) return;
  const Strides strides = permuted_strides(c);
  walk(c.shape, strides, strides, [&](int64_t i, int64_t from, int64_t) {
    to.inputs[0]->data[static_cast<size_t>(from)] += grad.data[static_cast<size_t>(i)];
  });
}

// Position in the output of the input's first element.
int64_t pad_offset(const NodeContext& c, const Strides& strides) {
  const auto& pads = c.node.integers("pad");
  int64_t offset = 0;
  for (size_t axis = 1; axis < c.shape.size(); ++axis) offset += pads[2 * axis - 2] * strides[axis];
  return offset;
}

AnyTensor pad(const NodeContext& c) {
  const Tensor& x = c.input(0);
  Tensor y = tensor::full(c.shape, c.node.real("value"));
  const Strides strides = strides_of(c.shape);
  const int64_t offset = pad_offset(c, strides);
  walk(x.shape, strides, strides, [&](int64_t i, int64_t at, int64_t) {
    y.data[static_cast<size_t>(offset + at)] = x.data[static_cast<size_t>(i)];
  });
  return y;
}

void pad_backward(const NodeContext& c, const Tensor&, const Tensor& grad, const Gradients& to) {
  if (to.inputs[0] == nullptr) return;
  const Strides strides = strides_of(c.shape);
  const int64_t offset = pad_offset(c, strides);
  walk(c.input(0).shape, strides, strides, [&](int64_t i, int64_t at, int64_t) {
    to.inputs[0]->data[static_cast<size_t>(i)] += grad.data[static_cast<size_t>(offset + at)];
  });
}

// visit(input, i, at): element i of an input is element `at` of the output.
template <typename Visit>
void each_joined(const NodeContext& c, const Visit& visit) {
  const auto axis = static_cast<size_t>(c.node.integer("axis"));
  const Strides strides = strides_of(c.shape);
  int64_t offset = 0;
  for (size_t k = 0; k < c.inputs.size(); ++k) {
    const Shape& shape = c.input(k).shape;
    walk(shape, strides, strides, [&](int64_t i, int64_t at, int64_t) {
      visit(k, static_cast<size_t>(i), static_cast<size_t>(offset + at));
    });
    offset += shape[axis] * strides[axis];
  }
}

AnyTensor concat(const NodeContext& c) {
  Tensor y = c.make();
  each_joined(c, [&](size_t k, size_t i, size_t at) { y.data[at] = c.input(k).data[i]; });
  return y;
}

void concat_backward(const NodeContext& c, const Tensor&, const Tensor& grad, const Gradients& to) {
  each_joined(c, [&](size_t k, size_t i, size_t at) {
    if (to.inputs[k] != nullptr) to.inputs[k]->data[i] += grad.data[at];
  });
}

// visit(input, i, at), as above, for rows of one input after the other.
template <typename Visit>
void each_in_rows(const NodeContext& c, const Visit& visit) {
  const int64_t width = c.shape[1];
  int64_t first = 0;
  for (size_t k = 0; k < c.inputs.size(); ++k) {
    const int64_t part = static_cast<int64_t>(c.input(k).data.size()) / c.shape[0];
    for (int64_t i = 0; i < part * c.shape[0]; ++i)
      visit(k, static_cast<size_t>(i), static_cast<size_t>(i / part * width + first + i % part));
    first += part;
  }
}

AnyTensor join_values(const NodeContext& c) {
  Tensor y = c.make();
  each_in_rows(c, [&](size_t k, size_t i, size_t at) { y.data[at] = c.input(k).data[i]; });
  return y;
}

void join_values_backward(const NodeContext& c, const Tensor&, const Tensor& grad, const Gradients& to) {
  each_in_rows(c, [&](size_t k, size_t i, size_t at) {
    if (to.inputs[k] != nullptr) to.inputs[k]->data[i] += grad.data[at];
  });
}

}  // namespace

std::vector<OpFunctions> shape_ops() {
  return {{ir::Op::kFlatten, renamed, renamed_backward},
          {ir::Op::kReshape, renamed, renamed_backward},
          {ir::Op::kTranspose, transpose, transpose_backward},
          {ir::Op::kPad, pad, pad_backward},
          {ir::Op::kConcat, concat, concat_backward},
          {ir::Op::kJoin, join_values, join_values_backward}};
}

}  // namespace bakeoff::referee
