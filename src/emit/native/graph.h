#pragma once

// A workload as a program executes it: values with their places in memory, and steps in order. Values are held in the
// orders of emit/layout.h; where a node reads a value in another order, a step of its own turns it before.
//
// Memory: a value that is made and read within one phase (schedule.h) lives in a few rows' memory of its thread, from the
// step that makes it until the last that reads it; two that never live at once share their place (first fit, the largest
// first). What passes from phase to phase has room for the whole batch, and shares its place with what no phase
// between two barriers needs too. Gradients likewise.

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "emit/emit.h"
#include "emit/layout.h"
#include "emit/native/schedule.h"

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
  bool summed = false;  // every share has a part of its gradient
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
  bool relu = false;                        // its result passes a ReLU
  bool masked = false;  // with relu: the gradient of its result is already 0 where that is
  bool masks = false;   // it makes the gradient of its input so, where that is the result of such a step
  std::string packed = {},
              turned = {};  // pointers to the weights as products forwards and backwards read them
};

// Weights as a kernel reads them, made anew after every update.
struct Pack {
  std::string name, size, statement;  // "packed_size<Real>(3, 4)", "linear_pack(3, 4, w, w_packed);"
};

// Where a place is.
enum class Scope {
  kBatch,   // room for all rows of a batch
  kModel,   // it has no rows
  kShare,   // of each share one: parts of a sum, zero at first
  kThread,  // of each thread one, for as many rows as run together
};

// A pointer into memory.
struct Place {
  std::string name;
  bool whole = false;  // integers
  Count count = {};
  Scope scope = Scope::kBatch;
  int64_t at = 0;  // elements from the beginning of its memory
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
  Schedule schedule = {};
  std::vector<Pack> packs = {};
  std::vector<Place> places = {};
  std::map<std::pair<Scope, bool>, int64_t> sizes =
      {};  // elements of each memory, of numbers and of integers (true)

  const ir::Node& node(const Step& step) const { return workload.nodes[static_cast<size_t>(step.node)]; }
  bool trains() const { return !request.training.predicts(); }
};

}  // namespace bakeoff::emit::native
