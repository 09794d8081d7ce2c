#pragma once

// The TensorFlow script from its docstring to main().

#include <string>
#include <vector>

#include "emit/emit.h"
#include "emit/forward_printer.h"
#include "emit/tensorflow/model.h"

namespace bakeoff::emit::tensorflow {

// Of the model.
std::string class_name(const Request& request);

std::string script_text(const Request& request, const Graph& graph, const Namer& names, const Model& model,
                        bool has_layout);

}  // namespace bakeoff::emit::tensorflow
