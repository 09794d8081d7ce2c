#pragma once

// Channels-last planning for frameworks whose convolutions want N,H,W,C. Pure analysis: the graph stays as it
// is.
//
// Every value is held in one order. Workload inputs of three to five axes (N, channels, places) that reach a spatial op through elementwise or
// axis ops are permuted once, on loading. Spatial ops read and give N,H,W,C; elementwise and axis ops follow
// their inputs (mixed orders: the canonical ones are converted); transpose reads and gives either order, its
// permutation absorbs the difference; everything else is canonical. An MSE follows its prediction, since its
// sum knows no order; its target is then loaded in that order too. A script gives its prediction as the loss
// reads it (the first loss's first read); where that is N,H,W,C the layout file says so under "output".
//
// A reshape to N,C,1,1 gives either order too.
//
// A flatten (or a reshape to rank 2) of an N,H,W,C value costs nothing if H = W = 1 or C = 1, or if all that
// reads it, directly or through relu, gelu, sigmoid, tanh and dropout, is linear: the features then stay in
// the order H,W,C and the rows of the linear's weight are permuted instead. (Dropout draws its mask by
// position, so a mask is a permutation of the one drawn otherwise.) A weight tied to another use keeps its
// own order.
//
//   const LayoutPlan plan = plan_layout(workload, types, {});
//   for each input i of node n:  if (plan.converts(workload, n, i)) ... conversion_perm(held, wanted)
//
// Parameters: conv kernels become H,W,I/groups,O, depthwise ones H,W,C,multiplier where the framework wants
// it; those of linear, lstm and gru I,O. stored = canonical.reshape(view).transpose(perm).reshape(reshape), empty
// = no step.

#include <string>
#include <vector>

#include "ir/workload.h"

namespace bakeoff::emit {

enum class Order {
  kCanonical,
  kChannelsLast,  // N,W,C or N,H,W,C or N,D,H,W,C
  kFlatLast,      // N,H*W*C: the flattened form of the above; rank 2 only
};

struct ParamLayout {
  std::vector<int64_t> view = {};
  std::vector<int64_t> perm = {};
  std::vector<int64_t> reshape = {};
  bool identity() const { return view.empty() && perm.empty() && reshape.empty(); }
  bool operator==(const ParamLayout&) const = default;
};

struct LayoutOptions {
  // True where the framework stores the kernel of this convolution as H,W,C,multiplier; asked only for
  // convolutions with groups = input channels > 1. Null: never.
  bool (*depthwise_kernel)(const ir::Node& conv) = nullptr;
  bool transpose_linear = true;  // linear weights are stored I,O
  bool plain_values = true;      // but O,I where a value of the model is read from them too
  // Weights of transposed convolutions, I,O/groups and the kernel, are stored as those of the convolution
  // with a stretched input: kernel, I/groups, O. Else as the kernel, O/groups, I.
  bool stretched_conv_transpose = false;
};

struct LayoutPlan {
  std::vector<Order> values;              // by ValueId: how the value is held
  std::vector<std::vector<Order>> reads;  // by node, by input: the order in which the node reads it
  std::vector<ParamLayout> params;        // by ParamId
  std::vector<bool> depthwise;            // by node: a convolution whose kernel is stored H,W,C,multiplier
  size_t output_rank = 0;                 // axes of the prediction

  bool converts(const ir::Workload& workload, int node, size_t input) const;
  Order output(const ir::Workload& workload, int node) const;
};

// `types`: of ir::infer(workload).
LayoutPlan plan_layout(const ir::Workload& workload, const std::vector<ir::Type>& types,
                       const LayoutOptions& options = {});

// The axis of an array of `rank` axes that holds a canonical axis: 1 (C) is 3 in N,H,W,C.
int64_t physical_axis(Order order, int64_t axis, size_t rank);
// The axes of one value as it is held or read.
struct Axes {
  Order order = Order::kCanonical;
  size_t rank = 0;
  int64_t at(int64_t canonical) const { return physical_axis(order, canonical, rank); }
};
// Sizes of the array that holds a value of this canonical shape.
ir::Shape physical_shape(Order order, const ir::Shape& shape);
// Transposition that takes an array from one order to the other: {0,2,3,1} or {0,3,1,2} for four axes.
std::vector<int64_t> conversion_perm(Order from, Order to, size_t rank);
// Transposition of arrays that does what a transpose node with `perm` means; the identity where there is
// nothing to move.
std::vector<int64_t> physical_perm(Order in, Order out, const std::vector<int64_t>& perm);
bool is_identity(const std::vector<int64_t>& perm);
// Sizes of a parameter as it is stored.
ir::Shape stored_shape(const ParamLayout& layout, const ir::Shape& canonical);

// The layout file: an entry for every parameter whose target (`targets`, by ParamId) is not its canonical
// name or whose layout is not canonical, and "output" where the loss reads the prediction in N,H,W,C. Empty
// if there is none.
std::string layout_json(const ir::Workload& workload, const LayoutPlan& plan,
                        const std::vector<std::string>& targets);
// The call that makes a numpy array of the prediction canonical: ".transpose(0, 3, 1, 2)"; empty where it is so already.
std::string output_turn(const ir::Workload& workload, const LayoutPlan& plan);

}  // namespace bakeoff::emit
