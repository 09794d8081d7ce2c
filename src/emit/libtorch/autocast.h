#pragma once

// Half precision as torch.autocast has it in Python, which C++ knows as functions alone.

#include <string>

#include "emit/code_writer.h"

namespace bakeoff::emit::libtorch {

// The class Autocast, of which train_step() has an object around forward pass and loss. `half`: "bfloat16",
// "float16"; empty: prints nothing.
void print_autocast(CodeWriter& out, const std::string& half);

// "torch::kBFloat16" or "torch::kHalf"; empty where `half` is.
std::string half_type(const std::string& half);

}  // namespace bakeoff::emit::libtorch
