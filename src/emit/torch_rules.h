#pragma once

// What is the same in PyTorch and in LibTorch C++, which are one library: names of parameters in nn modules,
// and what happens where the user says nothing (checked against the installed one by test_torch_adapter.py).

#include <string>
#include <vector>

#include "emit/emit.h"

namespace bakeoff::emit {

// What the nn module of an op calls the parameter in a slot: "weight", "running_mean", "weight_ih_l0".
std::string torch_leaf(ir::Op op, const std::string& slot);

// The layer whose nn module can own all parameters of the node, because they are <layer>.<torch_leaf> and
// nothing else lives under that name; else "". A frozen layer has one only where `freezes`: its module as a whole can
// be frozen, running statistics apart.
std::string torch_layer(const ir::Workload& workload, const ir::Node& node, bool freezes = false);

// The b of torch's U(-b, b) for a weight or bias, as 1 / sqrt(this): the fan-in of the layer, the units of an
// LSTM.
int64_t torch_fan_in(const ir::Workload& workload, ir::ParamId id);

// What a reshape does to a tensor: merges neighbouring axes ("flatten", "2, 3"), splits one ("unflatten"), adds or drops
// an axis of length 1. `method` is "reshape" where it is more than that. Sizes are canonical, the batch is -1.
struct View {
  std::string method = "reshape";
  std::vector<int64_t> axes;   // of flatten: first and last; of the others: the axis
  std::vector<int64_t> sizes;  // that unflatten splits into
};
View view_of(const ir::Shape& from, const ir::Shape& to);
// Of a node of the workload. Beside a batch norm it is "reshape": torch 2.13 gives wrong gradients, without a word, where
// squeeze hands a transposed gradient to a batch norm of a picture of width 1 (its strides look like channels_last).
View view_of(const ir::Workload& workload, const ir::Node& reshape, const ir::Shape& from);

// The two axes that a transposition swaps; none where it moves more.
std::vector<int64_t> swapped_axes(const std::vector<int64_t>& perm);

// The defaults that matter for the ops and the optimizer of the request.
std::vector<Default> torch_defaults(const Request& request);

// What really runs: in the as-is track all that the recipe leaves open is at torch's default.
ir::Optimizer torch_optimizer(const ir::Training& training);

}  // namespace bakeoff::emit
