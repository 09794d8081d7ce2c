#pragma once

// What stands around the network: of every program how main() begins, and all of it where the program predicts.

#include <string>
#include <vector>

#include "emit/code_writer.h"
#include "emit/native/graph.h"

namespace bakeoff::emit::native {

// A value by which a caller of the program gives or gets rows: its name as files have it, the sizes of a row.
struct Port {
  std::string name, variable;
  bool whole = false;
  ir::Shape row;
};

// outputs(), which are results of some rows: a member of what runs the steps.
void print_outputs(CodeWriter& out, const Graph& graph, const std::vector<Port>& outputs);
// Members of the network: the names of these, predict() for all rows.
void print_prediction(CodeWriter& out, const std::vector<Port>& outputs);
// How every main() begins: `given`, `steps`, and `network` with weights and data.
void print_start(CodeWriter& out);
// main(), and the functions of C that stand in its place in a library.
void print_predictor(CodeWriter& out, const ir::Training& training, const std::vector<Port>& inputs,
                     const std::vector<Port>& outputs);

}  // namespace bakeoff::emit::native
