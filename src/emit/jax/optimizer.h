#pragma once

// make_optimizer() of a JAX script.

#include <string>

#include "emit/code_writer.h"
#include "emit/emit.h"

namespace bakeoff::emit::jax {

// def make_optimizer(), preceded by the transformation that optax lacks ("epsilon hat" of Adam).
void print_optimizer(CodeWriter& out, const ir::Training& training);
bool needs_eps_hat(const ir::Training& training);
// Whether it prints a named tuple of its own.
bool needs_states(const ir::Training& training);

}  // namespace bakeoff::emit::jax
