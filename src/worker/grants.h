#pragma once

// The controls of a worker's process as this machine grants them.

#include <sys/types.h>

#include <filesystem>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/result.h"
#include "recipe/recipe.h"
#include "records/controls.h"
#include "worker/worker.h"

namespace bakeoff {

// The recipe's [race] with what a contender states on top; `allowed`: how many CPUs we may run on (>= 1).
Controls control_set(const recipe::Recipe& recipe, const Texts& stated, size_t allowed);

// What the machine offers.
struct Machine {
  std::vector<int> cpus = {};        // that we may run on
  std::filesystem::path root = "/";  // where libraries are looked for
  // Why a process cannot be started so, as the system says it; nullopt: it can. Starts /bin/true.
  std::function<std::optional<std::string>(const WorkerSpec&)> refusal = {};
};
Machine this_machine();

// The library to preload. Error with the package to install where there is none.
Result<std::filesystem::path> allocator_library(const std::string& allocator,
                                                const std::filesystem::path& root = "/");

// Fills in the parts of `spec` that controls decide. Errors: no such library, CPUs that we may not run on.
Status apply(const Controls& controls, const Machine& machine, WorkerSpec& spec);

// Controls that this machine grants: one that was not stated and that a container refuses (pinning, address
// randomisation, huge pages) falls back to the default, and `notes` says so. A stated one is an error.
Result<Controls> granted(const Controls& wanted, const std::set<std::string>& stated, const Machine& machine,
                         std::vector<std::string>& notes);

// What a living process runs under, from `proc`/<pid>: allocator, cpus, huge pages, address randomisation.
// What cannot be read is left out.
Texts observe(pid_t pid, const std::filesystem::path& proc = "/proc");

// What a process took that it was not granted: a thread that may run on other CPUs than `spec.cpus` (where
// these are stated), or that has a better priority than this process. In words; empty: nothing.
std::string taken(pid_t pid, const WorkerSpec& spec, const std::filesystem::path& proc = "/proc");

}  // namespace bakeoff
