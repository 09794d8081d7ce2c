#pragma once

// The update of an optimizer on Keras' torch backend, over all variables at once. Keras' own optimizers do
// the same there (torch._foreach_*); a subclass would otherwise go through update_step, variable by variable,
// whose calls add up for a small model (1.5 instead of 0.5 ms of CPU time a step of an MLP).

#include <string>

#include "ir/training.h"

namespace bakeoff::emit::keras {

// The method `_backend_update_step` of a subclass, not indented. `form`: where eps is; without meaning for
// SGD. With `l2` decay is added to the gradients, by the constant WEIGHT_DECAY.
std::string torch_update(const ir::Optimizer& optimizer, ir::EpsForm form, bool l2);

}  // namespace bakeoff::emit::keras
