#pragma once

// One small function for each op of the table.

#include "emit/keras/printer.h"
#include "emit/op_functions.h"

namespace bakeoff::emit::keras {

const OpFunctions<Printer>& op_functions();

// All nodes but the loss, in order.
void print_nodes(Printer& p);

}  // namespace bakeoff::emit::keras
