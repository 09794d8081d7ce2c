#pragma once

// One small function for each op of the table.

#include "emit/keras/printer.h"
#include "emit/op_functions.h"

namespace bakeoff::emit::keras {

const OpFunctions<Printer>& op_functions();

}  // namespace bakeoff::emit::keras
