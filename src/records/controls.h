#pragma once

// Controls: settings of a contender's process that reduce noise (allocator, threads, CPUs, ...); they are not
// settings of its framework. In the equalised track all contenders have the same controls unless the recipe
// crosses them; in the as-is track a contender has only the ones stated in the recipe.
//
//   TRY(Controls controls, control_set(recipe, contender.controls, allowed_cpus().size()));
//   CHECK_OK(apply(controls, machine, spec));   // changes the WorkerSpec that the worker is started from
//   trial.effective.merge(observe(pid));        // reads what the process really has
//
// | control              | how                                                                       |
// |----------------------|---------------------------------------------------------------------------|
// | allocator tuned      | MALLOC_* variables: glibc keeps freed pages and uses no mmap               |
// | jemalloc, ...        | LD_PRELOAD of the system's library                                         |
// | threads              | thread pools of the framework, and the usual variables (OMP_NUM_THREADS)   |
// | pin                  | sched_setaffinity(2)                                                       |
// | huge_pages off       | PR_SET_THP_DISABLE; malloc: GLIBC_TUNABLES=glibc.malloc.hugetlb=1          |
// | randomise_addresses  | personality(2), ADDR_NO_RANDOMIZE                                          |
// | cooldown             | a pause before every burst (race.cc)                                       |
// | device cpu           | the process sees no GPU; cuda: it fails if its framework uses another device |

#include <string>

#include "base/texts.h"

namespace bakeoff {

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

// All controls as texts, as they are recorded and shown: {"allocator", "tuned"}, ... controls_from reads them
// back; a control that is missing or unreadable is taken from `otherwise`.
Texts to_texts(const Controls& controls);
Controls controls_from(const Texts& texts, const Controls& otherwise = {});
// The controls that differ from Controls{} with the same number of threads, in words: "tuned allocator, no
// address randomisation"; "none" if none differs.
std::string describe(const Controls& controls);

}  // namespace bakeoff
