#pragma once

// What `gate` and `bisect` compare: a version is a commit of the user's repository, a folder, an interpreter, a package
// version, or a file.

#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/progress.h"
#include "base/result.h"
#include "base/texts.h"
#include "base/time_budget.h"
#include "regression/git.h"
#include "regression/metric.h"
#include "regression/outcome.h"
#include "regression/script_pair.h"

namespace bakeoff::cli {

// How the user's files are run, whichever version they are of.
struct VersionRequest {
  std::string target = {};            // script or recipe, relative to `repo`; empty: the versions are files
  std::filesystem::path repo = {};    // folder in the repository; empty: the current folder
  std::string build = {};             // shell command that makes a checkout ready; empty: none
  std::filesystem::path python = {};  // interpreter; empty: that of the script's framework
  std::string framework = {};         // empty: the one that the script imports
  std::vector<std::string> arguments = {};  // of the script
  std::filesystem::path config = {};
  TimeBudget time = TimeBudget();  // of the command; what makes a version ready ends with it
};

struct Version {
  std::string what = {};  // "base": for messages
  regression::SideInfo info = {};
  std::filesystem::path folder = {};              // in which the target is run
  std::filesystem::path file = {};                // script or recipe of this version
  std::filesystem::path python = {};              // empty: as the request says
  std::filesystem::path packages = {};            // folder of packages before all others; empty: none
  std::optional<regression::Worktree> tree = {};  // the checkout, removed with this
};

// What races of scripts need.
struct RaceTools {
  std::filesystem::path runner = {};              // the unpacked package bakeoff_runner
  std::filesystem::path folder = {};              // for logs
  bool whole = false;                             // whole runs instead of steps
  std::optional<regression::Metric> metric = {};  // what scripts print, in place of their times
  // Scripts that were observed before, by version: those of the good end of a search.
  std::map<std::shared_ptr<const Version>, regression::ScriptSide>* observed = nullptr;
};

bool is_package_version(const std::string& text);  // "numpy==2.1.3"

// The version that `text` names. `what`: "base" or "head".
Result<Version> find_version(const std::string& what, const std::string& text, const VersionRequest& request,
                             const Progress& progress);
// A commit, checked out and built.
Result<Version> commit_version(const std::string& what, const std::string& name,
                               const regression::Commit& commit, const regression::Repository& repository,
                               const VersionRequest& request, const Progress& progress);
// "numpy==2.1.3", installed by pip into a folder of the bakeoff home, where it stays for later calls.
Result<Version> package_version(const std::string& what, const std::string& spec,
                                const VersionRequest& request, const Progress& progress);
// Its script, ready to be raced. `runner`: the unpacked package bakeoff_runner.
Result<regression::ScriptSide> script_side(const Version& version, const VersionRequest& request,
                                           const std::filesystem::path& runner);
// Two versions as one race. They, and their checkouts, live as long as it does.
Result<std::unique_ptr<regression::Pairing>> version_pair(std::shared_ptr<const Version> base,
                                                          std::shared_ptr<const Version> head,
                                                          const VersionRequest& request,
                                                          const RaceTools& tools, const Progress& progress);
// For annotations: the target as the repository names it; as it is where it is in none.
std::string file_in_repository(const VersionRequest& request);

}  // namespace bakeoff::cli
