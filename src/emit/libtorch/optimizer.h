#pragma once

// make_optimizer() and, where torch::optim lacks the form that the recipe asks for, a small class before it.

#include "emit/code_writer.h"
#include "emit/emit.h"

namespace bakeoff::emit::libtorch {

// "torch::optim::RMSprop" or a class of the program.
std::string optimizer_class(const ir::Optimizer& optimizer);
// The class with a blank line after it, if the program has one.
void print_optimizer_class(CodeWriter& out, const ir::Training& training);
void print_make_optimizer(CodeWriter& out, const ir::Training& training, const std::string& model);

}  // namespace bakeoff::emit::libtorch
