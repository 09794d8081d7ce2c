#pragma once

// The whole script around the graph.

#include <string>

#include "emit/emit.h"
#include "emit/forward_printer.h"

namespace bakeoff::emit::onnxruntime {

inline constexpr int kOpset = 21;      // the least with every op of the table: Gelu came with 20
inline constexpr int kIrVersion = 10;  // of the file format, that belongs to it

std::string script_text(const Request& request, const Graph& graph);
std::string provider(const Settings& settings);  // "CPUExecutionProvider"

}  // namespace bakeoff::emit::onnxruntime
