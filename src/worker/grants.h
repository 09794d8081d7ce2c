#pragma once

// The controls of a worker's process, as far as this machine permits them.

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

// The recipe's [race], changed by what a contender states; `allowed`: number of CPUs that we may use (>= 1).
Controls control_set(const recipe::Recipe& recipe, const Texts& stated, size_t allowed);

// What the machine permits.
struct Machine {
  std::vector<int> cpus = {};        // CPUs that we may run on
  std::filesystem::path root = "/";  // root folder below which libraries are searched
  // Starts /bin/true with these controls. Returns the system's error if that fails; nullopt: it works.
  std::function<std::optional<std::string>(const WorkerSpec&)> refusal = {};
};
Machine this_machine();

// The library to preload. If it is missing, the error names the package to install.
Result<std::filesystem::path> allocator_library(const std::string& allocator,
                                                const std::filesystem::path& root = "/");

// Sets the threads of a worker, and the variables of its environment from which libraries take their number.
void set_threads(int threads, WorkerSpec& spec);

// Sets the parts of `spec` that controls decide. Errors: the library is missing; we may not run on a CPU.
Status apply(const Controls& controls, const Machine& machine, WorkerSpec& spec);

// The controls that this machine permits. A control that a container refuses (pinning, address randomisation,
// huge pages) falls back to its default, and `notes` reports it; if it was stated, that is an error.
Result<Controls> granted(const Controls& wanted, const std::set<std::string>& stated, const Machine& machine,
                         std::vector<std::string>& notes);

// The controls that a living process really has, read from `proc`/<pid>: allocator, cpus, huge pages, address
// randomisation. What cannot be read is left out.
Texts observe(pid_t pid, const std::filesystem::path& proc = "/proc");

// Whether a process evaded its controls: one of its threads may run on CPUs outside `spec.cpus` (if
// stated), or has a better priority than this process. In words; empty: no.
std::string taken(pid_t pid, const WorkerSpec& spec, const std::filesystem::path& proc = "/proc");

}  // namespace bakeoff
