#pragma once

// Fills in the spellings of ops (ir/spelling.h).

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

}  // namespace bakeoff::emit
