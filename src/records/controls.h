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

// "allocator" -> "tuned", ...: every control, as recorded and shown. The reverse takes what is missing or
// cannot be read from `otherwise`.
Texts to_texts(const Controls& controls);
Controls controls_from(const Texts& texts, const Controls& otherwise = {});
// Those that differ from a Controls{} of the same thread count: "tuned allocator, no address randomisation";
// "none".
std::string describe(const Controls& controls);

}  // namespace bakeoff
