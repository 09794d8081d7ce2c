#pragma once

// Ops that see one element of each input at a time: a row each with its formula, its derivative, and its
// spelling in every framework. Op table, referee, emitters and random cases are made from these rows.

#include <string>
#include <vector>

#include "ir/attributes.h"
#include "ir/spelling.h"

namespace bakeoff::ir {

// Types of inputs and output.
enum class ElementKind {
  kReal,     // f32 to f32
  kCompare,  // f32 to bool
  kLogic,    // bool to bool
};

// Inputs at which an op and its derivative are finite; random cases stay inside.
enum class Domain { kAll, kPositive };

struct Elementwise {
  Op op = Op::kRelu;
  std::string name;
  std::string doc;  // the formula
  size_t inputs = 1;
  std::vector<AttrSpec> attributes = {};  // all real
  ElementKind kind = ElementKind::kReal;
  Domain domain = Domain::kAll;  // of every input
  // `x`: the inputs; `a`: the attributes, in order. Booleans are 0 and 1.
  double (*value)(const double* x, const double* a) = nullptr;
  // The derivative with respect to input i, given y = value(x, a); null where it is 0 everywhere.
  double (*slope)(size_t i, const double* x, double y, const double* a) = nullptr;
  // Inputs at which the derivative jumps; none where null. One-input ops alone.
  std::vector<double> (*kinks)(const double* a) = nullptr;
  Spellings spellings;
};

const std::vector<Elementwise>& elementwise_ops();
// Null for an op that is not in the table.
const Elementwise* find_elementwise(Op op);
// A row of one input.
bool elementwise_of_one(Op op);
// The node's real attributes, in the row's order.
std::vector<double> reals(const Node& node);

}  // namespace bakeoff::ir
