#pragma once

// Parts of a workload that repeat with other parameters, for the text form: twelve layers are one block and twelve calls.
//
// A part is a run of nodes named after one path: below "layers.0" its values are "layers_0_..." and its parameters
// "layers.0....". Two parts repeat each other where the rest of all names, every op, shape and attribute are equal; what
// they read from outside may differ. So a call says a path and what is read, and the block says the rest.

#include <string>
#include <vector>

#include "ir/workload.h"

namespace bakeoff::ir {

// "layers_0_", what the values of a call at "layers.0" begin with.
std::string value_prefix(const std::string& path);

// One node, with the names that are given for its output and its inputs; of parameters below `path`, where it is not
// empty, only the rest is written: ".norm.weight".
std::string node_text(const Workload& workload, const Node& node, const std::string& output,
                      const std::vector<std::string>& inputs, const std::string& path = {});

struct BlockCall {
  std::string path;
  int first = 0, end = 0;               // of its nodes; `end` is behind the last
  std::vector<std::string> given = {};  // names of what it reads, in the order of the block's inputs
};

struct TextBlock {
  std::string name;
  std::vector<std::string> inputs = {};
  std::vector<std::string> lines = {};  // of its nodes
  std::vector<BlockCall> calls = {};    // two or more, in order
};

// Blocks of which no two share nodes, those first that save most lines.
std::vector<TextBlock> repeated_blocks(const Workload& workload);

}  // namespace bakeoff::ir
