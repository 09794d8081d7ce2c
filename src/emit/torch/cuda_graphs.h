#pragma once

// compile = "cuda_graphs": a class GraphedStep(model, optimizer) beside train_step. Its first steps run as
// they are, on a side stream; then train_step is captured on static inputs, and every further batch is copied
// into these and the graph replayed. So every step trains, and none trains twice.
//
// cuda_allocator: PYTORCH_CUDA_ALLOC_CONF, set before torch is imported.

#include <string>

#include "emit/code_writer.h"
#include "emit/emit.h"

namespace bakeoff::emit::torch {

bool uses_cuda_graphs(const Request& request);

// An error where a graph would repeat what the host did once: an optimizer that counts its steps in Python, a
// scaler that asks the device whether to step; and for predictions.
Status check_cuda_graphs(const Request& request);

// The class, with its blank lines.
void print_graphed_step(CodeWriter& out);

// "expandable_segments:True"; empty: nothing is set.
std::string allocator_conf(const Request& request);

}  // namespace bakeoff::emit::torch
