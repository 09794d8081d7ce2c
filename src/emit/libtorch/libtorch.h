#pragma once

// Emits C++20 for LibTorch: a torch::nn module, an optimizer in the recipe's exact form, and a main() that
// loads safetensors and trains. One file, which needs libtorch and the standard library only:
//
//   ./train_libtorch data.safetensors weights.safetensors [steps]
//
// A CMakeLists.txt beside it compiles it. Compiled into a worker (runners/libtorch) the same file is raced.

#include "emit/emit.h"

namespace bakeoff::emit {

const Framework& libtorch_framework();

}  // namespace bakeoff::emit
