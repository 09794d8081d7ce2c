#pragma once

// make_optimizer(model), and the subclasses that carry forms of an optimizer which torch.optim lacks:
// eps inside the root (RMSprop, Adam), eps before the correction of bias (Adam), decoupled decay (SGD,
// RMSprop).

#include <vector>

#include "emit/code_writer.h"
#include "emit/emit.h"

namespace bakeoff::emit::torch {

// "torch.optim.RMSprop", or the name of the subclass that print_optimizer_class() prints.
std::string optimizer_class(const ir::Optimizer& optimizer);
// Modules of the standard library that the class needs.
bool optimizer_needs_math(const ir::Optimizer& optimizer);

// The subclass with its blank lines; nothing where torch.optim has the form.
void print_optimizer_class(CodeWriter& out, const ir::Training& training);
// `captured`: its steps become part of a CUDA graph.
void print_make_optimizer(CodeWriter& out, const Request& request, bool captured);

// What stands above make_optimizer(): the schedule, the groups of parameters, the clipping.
void print_update_functions(CodeWriter& out, const Request& request);
// The lines of train_step between backward() and its return.
void print_update(CodeWriter& out, const Request& request, bool scaler);

// An error where torch.optim has no such implementation of the recipe's optimizer.
Status check_optimizer(const Request& request);

}  // namespace bakeoff::emit::torch
