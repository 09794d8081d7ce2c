#pragma once

// Fills in the spellings of ops (ir/spelling.h).

#include <set>
#include <string>
#include <vector>

#include "emit/layout.h"
#include "ir/spelled_ops.h"

namespace bakeoff::emit {

enum class Language { kPython, kCpp, kOnnx };

// A call, or an expression with an operator.
struct Spelled {
  std::string flat;                         // on one line
  bool infix = false;                       // needs brackets as an operand
  std::string head = {};                    // of a call; empty for an operator
  std::vector<std::string> arguments = {};  // of a call
};

// `spelling` with the inputs' expressions and the node's attributes. Operands of operators get brackets where
// they need them. A literal is the second input of a function that takes them in any order. `axes`:
// where the axes that attributes name stand.
Spelled spell(const ir::Spelling& spelling, const ir::Node& node, std::vector<std::string> inputs,
              Language language = Language::kPython, const Axes& axes = {});

// Where the bracket opened at `open` is closed; npos: nowhere.
size_t closing(const std::string& text, size_t open);
// The parts between commas outside of brackets.
std::vector<std::string> split_arguments(const std::string& text);

// A real number: "0.5", and float("inf") or INFINITY.
std::string real_literal(double value, Language language = Language::kPython);
// The text is a number.
bool is_literal(const std::string& text);

// The spellings' helper functions that the nodes need, in the order of the table, without duplicates.
// `of`: the spelling in this framework.
// The nodes of a workload; those of a graph that are live.
std::vector<const ir::Node*> nodes_of(const ir::Workload& workload);

// The names of all of these helper functions; no variable of a script has such a name.
std::set<std::string> spelled_names();
std::vector<std::string> spelled_helpers(const std::vector<const ir::Node*>& nodes,
                                         ir::Spelling ir::Spellings::*of);

}  // namespace bakeoff::emit
