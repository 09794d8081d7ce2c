#pragma once

// The TensorFlow script from its docstring to main().

#include <string>
#include <vector>

#include "emit/emit.h"
#include "emit/forward_printer.h"

namespace bakeoff::emit::tensorflow {

// `attributes`: the model's attribute for each parameter, by ParamId.
std::string script_text(const Request& request, const Graph& graph, const Namer& names,
                        const std::vector<std::string>& attributes, bool has_layout);

}  // namespace bakeoff::emit::tensorflow
