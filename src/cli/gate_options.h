#pragma once

// The options of `bakeoff gate` and `bakeoff bisect`.

#include <CLI/CLI.hpp>
#include <string>

#include "cli/options.h"

namespace bakeoff::cli {

void add_gate_command(CLI::App& app, GateOptions& options);
// What no option alone shows, with the remedy; empty: nothing.
std::string misuse(const GateOptions& options);

}  // namespace bakeoff::cli
