#include "race/watched.h"

#include <algorithm>

#include "evidence/host_rounds.h"
#include "race/usage_marks.h"
#include "sample/host_probe.h"

namespace bakeoff {

HostRound watched(const recipe::HostRule& rule, const Sensed& sensed, const std::vector<int>& cpus, pid_t pid,
                  const std::function<void()>& act) {
  const sample::HostProbe look = sensed.probe(cpus);
  const sample::HostSnapshot before = look();
  const double used = tree_cpu_s(pid);
  act();
  const double own = std::max(0.0, tree_cpu_s(pid) - used);
  return host_round(before, look(), own, rule);
}

}  // namespace bakeoff
