#pragma once

// A workload as a program executes it: values with their places in memory, and steps in order. Values are held in the
// orders of emit/layout.h; where a node reads a value in another order, a step of its own turns it before.
//
// Memory: every value lives from the step that makes it until the last step that reads it, forwards or backwards; two
// that never live at once share their place (first fit, the largest first). Gradients likewise.

#include <string>
#include <vector>

#include "emit/emit.h"
#include "emit/layout.h"

namespace bakeoff::emit::native {

// A number of elements: `count`, or `count` for each row of a batch.
struct Count {
  int64_t count = 1;
  bool rows = false;
  std::string text() const;  // "12", "rows * 12"
};
Count count_of(const ir::Shape& sizes, size_t first, size_t last);
Count count_of(const ir::Shape& sizes);

struct Value {
  std::string name;           // of the pointer
  std::string gradient = {};  // of the pointer to its gradient; empty: nothing needs it
  ir::DType dtype = ir::DType::kF32;
  ir::Shape sizes = {};  // as it is held; kBatch for the rows
  Order order = Order::kCanonical;
  bool whole() const { return dtype != ir::DType::kF32; }
};

struct Step {
  int node = -1;            // -1: turns its input into another order
  std::vector<int> inputs;  // indices of values
  int output = 0;
  std::string forward = {}, way_back = {};  // its functions
  bool backward = false;                    // whether a gradient passes it
  std::string kept = {};                    // pointer to what forward keeps for backward
  std::string spare = {};                   // pointer to what backward needs room for
};

// A pointer into the arena.
struct Place {
  std::string name;
  bool whole = false;  // integers
  Count count = {};
  int64_t at = 0;  // elements from the arena's beginning
};

struct Graph {
  const Request& request;
  const ir::Workload& workload;
  const std::vector<ir::Type>& types;
  LayoutPlan layout;
  std::vector<Value> values = {};  // those of the workload by ValueId, then turned ones
  std::vector<Step> steps = {};
  std::vector<int> outputs = {};  // of a prediction: values in canonical order
  std::vector<std::string> parameters = {},
                           gradients = {};  // by ParamId: pointers; no gradient where it is empty
  std::vector<Place> places = {};
  int64_t arena = 0, whole_arena = 0;  // elements

  const ir::Node& node(const Step& step) const { return workload.nodes[static_cast<size_t>(step.node)]; }
  bool trains() const { return !request.training.predicts(); }
};

}  // namespace bakeoff::emit::native
