#pragma once

// The optimizer of a program: one loop over all trained parameters, which lie side by side, those that decay first.

#include <vector>

#include "emit/code_writer.h"
#include "emit/native/graph.h"

namespace bakeoff::emit::native {

// Where parameters lie in their array.
struct Update {
  std::vector<int> order;                     // ParamIds
  std::vector<int64_t> at;                    // by ParamId
  int64_t decayed = 0, trained = 0, all = 0;  // elements
};
Update plan_update(const Graph& graph);

// "constexpr double kLearningRate = 0.001;", ...
void print_constants(CodeWriter& out, const ir::Optimizer& optimizer);
// Members: what the optimizer remembers.
void print_state(CodeWriter& out, const ir::Optimizer& optimizer);
// restart(), learning_rate() where it varies, and update().
void print_update(CodeWriter& out, const ir::Optimizer& optimizer, const Update& plan);

}  // namespace bakeoff::emit::native
