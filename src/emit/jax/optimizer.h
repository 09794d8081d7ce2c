#pragma once

// make_optimizer() of a JAX script.

#include <set>
#include <string>

#include "emit/code_writer.h"
#include "emit/emit.h"

namespace bakeoff::emit::jax {

// def make_optimizer(), preceded by what it needs that optax lacks (optimizer_helpers.py).
void print_optimizer(CodeWriter& out, const ir::Training& training);
// The names of optimizer_helpers.py.
std::set<std::string> optimizer_names();

}  // namespace bakeoff::emit::jax
