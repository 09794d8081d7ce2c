#pragma once

// The Python environments that contenders run in: one isolated virtual environment per framework in
// `home`/envs, made from a pinned requirement file, or an interpreter of the user that the configuration
// names.
//
//   TRY(auto config, load_config(option, home, environment_names()));
//   EnvironmentStore store{.home = home, .config = config};
//   CHECK_OK(create_environments(store, {"torch", "jax"}, progress));     // both at the same time
//   for (const Environment& e : list_environments(store)) ...            // takes milliseconds; runs only the
//                                                                        // user's own interpreters
//
// An environment is ready if its stamp file, which is written last, holds the SHA-256 of the requirement text
// and every pin is installed. A creation that was killed leaves no stamp and is done again.

#include <filesystem>
#include <string>
#include <vector>

#include "base/progress.h"
#include "base/result.h"
#include "base/texts.h"
#include "environments/config.h"
#include "environments/requirements.h"

namespace bakeoff {

// Where environments lie and what they are made from.
struct EnvironmentStore {
  std::filesystem::path home;  // bakeoff_home()
  Config config = {};
  std::vector<Requirements> requirements = shipped_requirements();
};

enum class EnvironmentState {
  kReady,
  kMissing,   // never created
  kOutdated,  // made from other requirements, unfinished, or changed since
  kBroken,    // its interpreter does not run or lacks the framework
};

struct Environment {
  std::string name;              // "torch"
  std::filesystem::path python;  // absolute; it need not exist yet
  bool named_by_user = false;    // named in the configuration file
  std::string extends = {};      // another environment, and is made only where it is named; empty: none
  EnvironmentState state = EnvironmentState::kMissing;
  std::string reason = {};  // why it is not ready: "never created", "numpy is 2.4.5, not 2.4.6"
  std::string remedy = {};  // "run 'bakeoff env create torch'"
  Texts versions = {};      // versions of all packages found, by name
  bool ok() const { return state == EnvironmentState::kReady; }
  // Reason and remedy: "outdated: numpy is 2.4.5, not 2.4.6; run 'bakeoff env create torch'"; empty if ok.
  std::string why_not() const;
  bool operator==(const Environment&) const = default;
};

std::vector<std::string> environment_names(const std::vector<Requirements>& all = shipped_requirements());

// All environments, in the order of the requirements.
std::vector<Environment> list_environments(const EnvironmentStore& store);
Environment inspect_environment(const EnvironmentStore& store, const Requirements& requirements);

// The package that an interpreter of the user's must have: "torch".
std::string framework_package(const std::string& environment);
// The packages that a table shows: {"torch", "keras", "numpy"}.
std::vector<std::string> main_packages(const std::string& environment);

// "ready", "missing", "outdated", "broken".
std::string name(EnvironmentState state);

// Creates the named environments at the same time; if the list is empty all, but not those that extend another and were
// never made. A ready environment is not
// touched; one that holds every pin already gets its stamp; any other is created again, and restored if
// that fails. If two processes do this at once, the second waits. Progress lines start with the
// environment's name. Errors quote pip and name a remedy; if several environments fail, the error names all
// of them.
Status create_environments(const EnvironmentStore& store, const std::vector<std::string>& names,
                           const Progress& progress);

// The interpreter that makes new environments: $BAKEOFF_PYTHON, else the first of python3.11 and python3 in
// PATH that is at least version 3.11 and has venv.
Result<std::filesystem::path> find_python();

// The part of a line of pip's output that is worth showing; empty: nothing.
//   "Collecting numpy==2.4.6 (from ...)"  ->  "numpy 2.4.6"
//   "  Downloading torch-2.13.0-cp311-...whl (196.8 MB)"  ->  "downloading torch-2.13.0 (196.8 MB)"
std::string pip_progress(std::string_view line);

// Files of an environment.
std::filesystem::path environment_folder(const EnvironmentStore& store, const std::string& name);
std::filesystem::path stamp_file(const EnvironmentStore& store, const std::string& name);
std::string stamp_text(const Requirements& requirements);

}  // namespace bakeoff
