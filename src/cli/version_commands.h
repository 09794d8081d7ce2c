#pragma once

// What `gate`, `bisect` and `compare` are asked for, as plain values.

#include <filesystem>
#include <string>
#include <vector>

namespace bakeoff::cli {

struct GateOptions {
  std::string base = {}, head = {};  // commits, folders, interpreters, package versions, scripts or recipes
  std::string target = {};           // script or recipe of both; empty: base and head are the files
  std::filesystem::path repo = {};   // empty: the current folder
  double margin = 0.02, alpha = 0.01;
  double budget_s = 600;
  std::string build = {};   // shell command for a checkout
  bool whole = false;       // whole runs instead of steps
  std::string metric = {};  // regular expression of a figure that a script prints; empty: times are compared
  std::string better = {};  // "lower" or "higher": which metric is better
  std::string framework = {};  // of a script: as of ExplainOptions, like the next two
  std::filesystem::path python = {};
  std::vector<std::string> arguments = {};
  std::filesystem::path json = {}, junit = {}, gitlab = {};  // files; empty: not written
  std::string init = {};  // "github" or "gitlab": write a workflow, and nothing else
  bool force = false;     // replace what exists
};
struct CompareOptions {
  std::filesystem::path first = {}, second = {};  // run directories
  bool json = false;
};
struct BisectOptions {
  std::string good = {}, bad = {};  // commits
  std::string package = {};         // "numpy==1.26..2.1" or "numpy==1.26.4,2.0.0": package versions instead
  std::string target = {};          // script or recipe
  std::filesystem::path repo = {};  // as of GateOptions, like all that follow
  double margin = 0.02, alpha = 0.01;
  double budget_s = 3600;
  std::string build = {};
  std::string contender = {};  // empty: the one that regressed most
  bool whole = false;
  std::string framework = {};
  std::filesystem::path python = {};
  std::vector<std::string> arguments = {};
  std::filesystem::path out = {};     // empty: runs/bisect-<date>
  std::filesystem::path resume = {};  // the search to continue
  std::filesystem::path json = {};
};

}  // namespace bakeoff::cli
