#include "evidence/barrier.h"

#include <fmt/format.h>

#include <algorithm>

#include "evidence/invariants.h"
#include "stats/trimmed.h"

namespace bakeoff {
namespace {

constexpr int64_t kLeastLate = 20'000'000;
constexpr int64_t kLeastLateBesideOthers = 100'000'000;
constexpr int64_t kNoPoolSpins = 900'000'000;

// Whether other processes are known to have left the processors alone in all rounds of the trial. The threads of
// a contender wait for each other too, so waiting alone excuses nothing.
bool others_were_idle(const Trial& trial) {
  return !trial.rounds.empty() && std::ranges::all_of(trial.rounds, [](const HostRound& round) {
    const auto others = round.seen.find("others");
    return others != round.seen.end() && others->second <= kContended;
  });
}

int64_t waited_ns(const Burst& burst) {
  const auto waited = burst.used.find("wait_s");
  return waited == burst.used.end() ? 0 : static_cast<int64_t>(waited->second * 1e9);
}

}  // namespace

bool is_late(const Burst& burst, bool contended, int64_t waited_ns) {
  return burst.late_ns > std::max(contended ? kLeastLateBesideOthers : kLeastLate, burst.ns / 10) + waited_ns;
}

std::optional<std::string> answers_early(const Trial& trial) {
  const std::vector<Burst>& bursts = trial.bursts;
  const bool contended = !had_the_processors(trial);
  const bool idle = others_were_idle(trial);
  const auto late = std::ranges::count_if(bursts, [contended, idle](const Burst& burst) {
    return is_late(burst, contended, idle ? 0 : waited_ns(burst));
  });
  if (late < 2 || 2 * late <= static_cast<int64_t>(bursts.size())) return std::nullopt;
  const Burst& worst = *std::max_element(
      bursts.begin(), bursts.end(), [](const Burst& a, const Burst& b) { return a.late_ns < b.late_ns; });
  return fmt::format(
      "answers before its work is done in {} of {} bursts: one reported {:.1f} ms and worked {:.1f} ms more",
      late, bursts.size(), static_cast<double>(worst.ns) / 1e6, static_cast<double>(worst.late_ns) / 1e6);
}

bool is_outstanding_work(const std::vector<Burst>& bursts, int64_t one_ns) {
  std::vector<double> late;
  for (const Burst& burst : bursts) late.push_back(static_cast<double>(burst.late_ns));
  return one_ns >= kNoPoolSpins || static_cast<double>(one_ns) < 0.75 * stats::median(late);
}

}  // namespace bakeoff
