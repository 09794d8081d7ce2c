#pragma once

// The update of an optimizer's subclass in Keras 2.

#include <string>

#include "ir/training.h"

namespace bakeoff::emit::keras {

// The method `update_step` of a subclass, not indented. `eps`: epsilon is where `optimizer` has it and not
// where Keras has it; else the stock update follows what is done to the gradient. `l2`: decay is added to the
// gradient, by the constant WEIGHT_DECAY. `dense`: an embedding's gradient may come as IndexedSlices.
// The method that keeps the averages of weights (optimizer.ema).
std::string keras_2_average();
std::string keras_2_update(const ir::Optimizer& optimizer, bool eps, bool l2, bool momentum, bool dense);

}  // namespace bakeoff::emit::keras
