#pragma once

// make_optimizer() and, where torch::optim lacks the form that the recipe asks for, a small class before it.

#include "emit/code_writer.h"
#include "emit/emit.h"

namespace bakeoff::emit::libtorch {

// "torch::optim::RMSprop" or a class of the program.
std::string optimizer_class(const ir::Optimizer& optimizer);
// The class with a blank line after it, if the program has one.
void print_optimizer_class(CodeWriter& out, const ir::Training& training);
// learning_rate(), and the class whose step() has what surrounds an update: clipping, learning rates, the
// average of weights.
void print_surrounding(CodeWriter& out, const ir::Training& training);
// "constexpr double kClipNorm = 1.0;", ...
void print_update_constants(CodeWriter& out, const Request& request);
// An error where the program's class takes no groups of parameters.
Status check_optimizer(const ir::Training& training);
void print_make_optimizer(CodeWriter& out, const ir::Training& training, const std::string& model);

}  // namespace bakeoff::emit::libtorch
