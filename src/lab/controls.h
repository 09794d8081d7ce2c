#pragma once

// Controls: what a contender's process runs under besides its own settings, to take noise away before it is
// averaged. In the equalised track all contenders have the same ones unless the recipe crosses them; in the
// as-is track only those that the recipe states.
//
//   TRY(Controls controls, control_set(recipe, contender.controls, allowed_cpus().size()));
//   CHECK_OK(apply(controls, machine, spec));   // what a worker needs to be started so
//   trial.effective.merge(observe(pid));        // what its process has in fact
//
// | control              | how                                                                       |
// |----------------------|---------------------------------------------------------------------------|
// | allocator tuned      | MALLOC_* variables: glibc gives no page back and maps nothing              |
// | jemalloc, ...        | LD_PRELOAD of the system's library                                         |
// | threads              | the framework's own pools, and the usual variables                         |
// | pin                  | sched_setaffinity(2)                                                       |
// | huge_pages off       | PR_SET_THP_DISABLE; malloc: GLIBC_TUNABLES=glibc.malloc.hugetlb=1          |
// | randomise_addresses  | personality(2), ADDR_NO_RANDOMIZE                                          |
// | cooldown             | a pause before every burst (race.cc)                                       |
// | device cpu           | no GPU is visible to it; cuda: it fails where its framework computes elsewhere |

#include <sys/types.h>

#include <filesystem>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/result.h"
#include "lab/trial.h"
#include "lab/worker.h"
#include "recipe/recipe.h"

namespace bakeoff::lab {

struct Controls {
  std::string allocator = "default";
  int threads = 1;
  std::string pin = "auto";
  std::string huge_pages = "default";
  bool randomise_addresses = true;
  double cooldown_s = 0;
  std::string device = "auto";
  bool operator==(const Controls&) const = default;
};

// "allocator" -> "tuned", ...: every control, as recorded and shown. The reverse takes what is missing or
// cannot be read from `otherwise`.
Texts to_texts(const Controls& controls);
Controls controls_from(const Texts& texts, const Controls& otherwise = {});
// Those that differ from a Controls{} of the same thread count: "tuned allocator, no address randomisation";
// "none".
std::string describe(const Controls& controls);

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

}  // namespace bakeoff::lab
