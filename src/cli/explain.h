#pragma once

// `bakeoff explain`, which `bakeoff tune` calls for scripts.

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace bakeoff::cli {

struct ExplainOptions {
  std::vector<std::string> scripts = {};                          // one or two
  std::vector<std::string> arguments = {};                        // of both scripts: what stands behind "--"
  std::optional<std::vector<std::string>> second_arguments = {};  // of the second one: behind a second "--"
  bool modules = false;                                           // the names are modules, as of python -m
  bool tuning = false;                // try every switch, not only what is suspect
  std::string framework = {};         // empty: the one that the script imports
  std::filesystem::path python = {};  // empty: that of the framework's environment
  std::filesystem::path out = {};     // logs and explain.json; empty: none are kept
  double seconds = 150;               // the answer comes within a quarter more
  bool all = false;
  std::filesystem::path html = {};  // of the report; empty: in `out`, or none
  std::string rule = {};            // print its page, and nothing else
  std::string format = "text";
};

// Returns the exit code.
int explain(const ExplainOptions& options, const std::filesystem::path& config);

}  // namespace bakeoff::cli
