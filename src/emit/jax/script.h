#pragma once

// The JAX script from its docstring to main().

#include <string>
#include <vector>

#include "emit/emit.h"
#include "emit/forward_printer.h"

namespace bakeoff::emit::jax {

// `names` has given the inputs their names.
std::string script_text(const Request& request, const Graph& graph, const Namer& names, bool has_layout);

}  // namespace bakeoff::emit::jax
