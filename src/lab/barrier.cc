#include "lab/barrier.h"

#include <fmt/format.h>
#include <time.h>

#include <algorithm>

#include "base/clock.h"
#include "lab/invariants.h"
#include "sample/process_sampler.h"
#include "stats/trimmed.h"

namespace bakeoff::lab {
namespace {

constexpr int64_t kWindow = 4'000'000;  // long enough that a neighbour does not hide a worker
constexpr int64_t kPatience = 5;        // in limits: others may have the processors meanwhile
constexpr int64_t kLeastLate = 20'000'000;
constexpr int64_t kLeastLateBesideOthers = 100'000'000;
constexpr int64_t kNoPoolSpins = 900'000'000;

void sleep_ns(int64_t ns) {
  const timespec time{ns / 1'000'000'000, ns % 1'000'000'000};
  ::nanosleep(&time, nullptr);
}

}  // namespace

int64_t busy_after(pid_t pid, int64_t limit_ns) {
  const int64_t begin = monotonic_clock().now_ns();
  int64_t last = begin, busy = 0;
  auto used = sample::cpu_time_ns(pid);
  while (used && busy < limit_ns && last - begin < kPatience * limit_ns) {
    sleep_ns(kWindow);
    const auto now_used = sample::cpu_time_ns(pid);
    const int64_t now = monotonic_clock().now_ns();
    if (!now_used) break;
    const int64_t more = std::min(*now_used - *used, now - last);
    if (more < (now - last) / 4 && !sample::wants_processor(pid)) break;
    busy += more;
    used = now_used;
    last = now;
  }
  return busy;
}

bool is_late(const Burst& burst, bool contended) {
  return burst.late_ns > std::max(contended ? kLeastLateBesideOthers : kLeastLate, burst.ns / 10);
}

std::optional<std::string> answers_early(const Trial& trial) {
  const std::vector<Burst>& bursts = trial.bursts;
  const bool contended = !had_the_processors(trial);
  const auto late = std::count_if(bursts.begin(), bursts.end(),
                                  [contended](const Burst& burst) { return is_late(burst, contended); });
  if (late < 2 || 2 * late <= static_cast<int64_t>(bursts.size())) return std::nullopt;
  const Burst& worst = *std::max_element(
      bursts.begin(), bursts.end(), [](const Burst& a, const Burst& b) { return a.late_ns < b.late_ns; });
  return fmt::format(
      "answers before its work is done: {} of {} bursts; one claims {:.1f} ms and works on for {:.1f} ms",
      late, bursts.size(), static_cast<double>(worst.ns) / 1e6, static_cast<double>(worst.late_ns) / 1e6);
}

bool is_outstanding_work(const std::vector<Burst>& bursts, int64_t one_ns) {
  std::vector<double> late;
  for (const Burst& burst : bursts) late.push_back(static_cast<double>(burst.late_ns));
  return one_ns >= kNoPoolSpins || static_cast<double>(one_ns) < 0.75 * stats::median(late);
}

}  // namespace bakeoff::lab
