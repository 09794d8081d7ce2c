#pragma once

// A framework's table from op to the small function that prints it, and the walk over a workload.
//
//   const auto ops = op_table<Printer>({{{ir::Op::kRelu}, relu}, ...}, spelled);   // void relu(Printer&, const ir::Node&)
//   walk(workload, ops, printer);      // after check_supported: every node has its function

#include <cassert>
#include <map>
#include <vector>

#include "ir/op_table.h"
#include "ir/spelled_ops.h"
#include "ir/workload.h"

namespace bakeoff::emit {

template <typename Printer>
using OpFunctions = std::map<ir::Op, void (*)(Printer&, const ir::Node&)>;

// Ops that one function prints.
template <typename Printer>
struct OpRow {
  std::vector<ir::Op> ops;
  void (*print)(Printer&, const ir::Node&);
};

// The losses that the scripts of a framework print apart from the model.
inline const std::vector<ir::Op> kLosses = {ir::Op::kSoftmaxCrossEntropy, ir::Op::kCtc, ir::Op::kMse,
                                            ir::Op::kL1, ir::Op::kBceWithLogits};

// The table of these rows, with `print_spelled` for every other op that is spelled (ir/spelling.h).
template <typename Printer>
OpFunctions<Printer> op_table(const std::vector<OpRow<Printer>>& rows,
                              void (*print_spelled)(Printer&, const ir::Node&)) {
  OpFunctions<Printer> functions;
  for (const OpRow<Printer>& row : rows)
    for (const ir::Op op : row.ops) functions.emplace(op, row.print);
  for (const ir::OpInfo& row : ir::op_table())
    if (ir::spellings(row.op) != nullptr) functions.emplace(row.op, print_spelled);
  return functions;
}

template <typename Printer>
void walk(const ir::Workload& workload, const OpFunctions<Printer>& functions, Printer& printer) {
  for (const ir::Node& node : workload.nodes) {
    const auto function = functions.find(node.op);
    assert(function != functions.end());
    function->second(printer, node);
  }
}

}  // namespace bakeoff::emit
