#pragma once

// The functions of a Keras script that build_model calls: one for each family of blocks (emit/blocks.h). Each
// takes the beginning of its layers' names.

#include "emit/blocks.h"
#include "emit/keras/printer.h"

namespace bakeoff::emit::keras {

// Blocks of the workload, whose printer has planned its layers.
Blocks plan_blocks(const Printer& printer);

// All nodes of the printer's stretch but the loss, in order.
void print_nodes(Printer& p, const Blocks& blocks);

// def encoder_layer(x, prefix): ...
std::string functions_text(const Blocks& blocks);

}  // namespace bakeoff::emit::keras
