#pragma once

// A framework's table from op to the small function that prints it, and the walk over a workload.
//
//   const OpFunctions<Printer> kOps = {{ir::Op::kRelu, relu}, ...};   // void relu(Printer&, const ir::Node&)
//   walk(workload, kOps, printer);      // after check_supported: every node has its function

#include <cassert>
#include <map>

#include "ir/op_table.h"
#include "ir/spelled_ops.h"
#include "ir/workload.h"

namespace bakeoff::emit {

template <typename Printer>
using OpFunctions = std::map<ir::Op, void (*)(Printer&, const ir::Node&)>;

// The table with `print` for every op that is spelled (ir/spelling.h).
template <typename Printer>
OpFunctions<Printer> with_spelled(OpFunctions<Printer> functions, void (*print)(Printer&, const ir::Node&)) {
  for (const ir::OpInfo& row : ir::op_table()) {
    if (ir::spellings(row.op) != nullptr) functions.emplace(row.op, print);
  }
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
