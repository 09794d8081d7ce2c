#pragma once

// How a command's races reach many machines: --engine and what goes with it, of `fleet plan`, `suite` and `tune`.

#include <CLI/CLI.hpp>
#include <filesystem>
#include <memory>
#include <string>

#include "fleet/races.h"

namespace bakeoff::cli {

struct EngineOptions {
  fleet::Spread spread = {};
  std::string hosts = {}, ssh = {}, sbatch = {};
  bool chosen() const { return !spread.settings.engine.empty(); }
};

// Returns --engine.
CLI::Option* add_engine_options(CLI::App& sub, EngineOptions& options);

std::filesystem::path this_program();
// What the nodes are to be told. Errors: hosts without ssh, or no shared folder.
Result<fleet::Spread> spread_of(const EngineOptions& options, const std::filesystem::path& config);

// Who runs the races of a command: a fleet if the options say so, else null. `runs`: where their folders will be;
// `profile`: as of add_profile(). Errors: those of spread_of() and of fleet::check_spread(); a profile of this machine.
Result<std::unique_ptr<run::Races>> fleet_of(const EngineOptions& options,
                                             const std::filesystem::path& config,
                                             const std::filesystem::path& runs, const std::string& profile,
                                             const run::Surroundings& with);

// Between two questions to an engine; tests ask more often.
double poll_seconds();

// The options as they stood on the command line, with a space before each: for a line that says what to type next.
std::string engine_words(const CLI::App& sub);
// What a command says when it begins, in place of longest_text().
std::string planned_for(double seconds);

}  // namespace bakeoff::cli
