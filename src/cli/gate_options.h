#pragma once

// The options of `bakeoff gate`, `bakeoff bisect` and `bakeoff compare`.

#include <CLI/CLI.hpp>
#include <string>

#include "cli/version_commands.h"

namespace bakeoff::cli {

void add_gate_command(CLI::App& app, GateOptions& options);
void add_bisect_command(CLI::App& app, BisectOptions& options);
void add_compare_command(CLI::App& app, CompareOptions& options);
// What no option alone shows, with the remedy; empty: nothing.
std::string misuse(const GateOptions& options);
std::string misuse(const BisectOptions& options);

}  // namespace bakeoff::cli
