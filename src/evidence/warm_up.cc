#include "evidence/warm_up.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "records/controls.h"
#include "stats/e_process.h"
#include "stats/steady.h"
#include "stats/trimmed.h"

namespace bakeoff {
namespace {

constexpr int kLeastHeats = 3;
constexpr double kLeastTolerance = 0.02;
constexpr double kAlpha = 0.005;

double total_ns(const std::vector<Burst>& bursts, int64_t Burst::*field) {
  double sum = 0;
  for (const Burst& burst : bursts) sum += static_cast<double>(burst.*field);
  return sum;
}

bool trial_marks_show_work(const Trial& trial) {
  if (trial.step_ns.empty()) return false;
  double steps = 0;
  for (const int64_t ns : trial.step_ns) steps += static_cast<double>(ns);
  const double mark = steps / static_cast<double>(trial.step_ns.size());
  const double work = total_ns(trial.bursts, &Burst::ns) / total_ns(trial.bursts, &Burst::steps);
  return marks_show_work(mark, work);
}

// The bursts that lie wholly before step `begin` of the marks, of which every burst has one fewer than steps.
int64_t bursts_before(const std::vector<Burst>& bursts, int64_t begin) {
  int64_t marks = 0, count = 0;
  for (const Burst& burst : bursts) {
    marks += burst.steps - 1;
    if (marks > begin) break;
    ++count;
  }
  return count;
}

double burst_drift(const std::vector<Burst>& bursts) {
  std::vector<double> first, last;
  for (size_t i = 0; i < bursts.size() / 2; ++i) {
    first.push_back(bursts[i].ms_per_step());
    last.push_back(bursts[bursts.size() - 1 - i].ms_per_step());
  }
  return first.empty() ? 0 : stats::mean(last) / stats::mean(first) - 1;
}

bool usable(const Trial& trial) {
  return !trial.failure && !trial.invalid && !trial.bursts.empty() &&
         std::all_of(trial.bursts.begin(), trial.bursts.end(),
                     [](const Burst& b) { return b.ns > 0 && b.steps > 0; });
}

// While other work ran on the host, a drift is not the contender's own.
bool disturbed(const Trial& trial) {
  return std::any_of(trial.rounds.begin(), trial.rounds.end(),
                     [](const HostRound& round) { return !round.rerun && !round.busy.empty(); });
}

// -1: it becomes faster; 0: no drift; 1: it becomes slower.
int direction(const Trial& trial, double tolerance) {
  if (!usable(trial) || trial.steadiness != name(stats::Steadiness::kDrifting)) return 0;
  if (std::abs(trial.drift) <= tolerance) return 0;
  return trial.drift > 0 ? 1 : -1;
}

// Whether at least half of the other members of the heat drifted the same way.
bool machine_drifts(const std::vector<Trial>& trials, const Trial& trial, double tolerance) {
  int others = 0, alike = 0;
  for (const Trial& other : trials) {
    if (other.heat != trial.heat || other.contender == trial.contender || !usable(other)) continue;
    ++others;
    alike += direction(other, tolerance) == direction(trial, tolerance);
  }
  return others > 0 && 2 * alike >= others;
}

// Median drift of the other members of a trial's heat: the machine's.
double drift_of_others(const std::vector<Trial>& trials, const Trial& trial) {
  std::vector<double> drifts;
  for (const Trial& other : trials) {
    if (other.heat == trial.heat && other.contender != trial.contender && usable(other))
      drifts.push_back(std::log1p(burst_drift(other.bursts)));
  }
  return drifts.empty() ? 0 : stats::median(drifts);
}

// Whether it drifts relative to the other members and also absolutely: relative to a contender that drifts,
// its only companion seems to drift the other way.
bool bursts_drift(const std::vector<Trial>& trials, const std::vector<const Trial*>& mine, double tolerance) {
  stats::EProcess relative;
  std::vector<double> own;
  for (const Trial* trial : mine) {
    own.push_back(std::log1p(burst_drift(trial->bursts)));
    relative.add(own.back() - drift_of_others(trials, *trial));
  }
  const double least = std::log1p(tolerance);
  const double typical = stats::median(own);
  const stats::Interval drift = relative.interval(kAlpha);
  return (drift.low > least && typical > least) || (drift.high < -least && typical < -least);
}

NotSteady describe(const std::vector<const Trial*>& drifting, int heats) {
  std::vector<double> drifts, first, last;
  for (const Trial* trial : drifting) {
    drifts.push_back(trial->drift);
    first.push_back(trial->bursts.front().ms_per_step());
    last.push_back(trial->bursts.back().ms_per_step());
  }
  return {static_cast<int>(drifting.size()), heats, stats::median(drifts), stats::median(first),
          stats::median(last)};
}

}  // namespace

void find_warm_up(Trial& trial, double tolerance) {
  if (!usable(trial)) return;
  tolerance = std::max(tolerance, kLeastTolerance);
  trial.steadiness = name(stats::Steadiness::kTooShort);
  trial.drift = burst_drift(trial.bursts);
  if (!trial_marks_show_work(trial)) return;
  std::vector<double> ms;
  for (const auto* steps : {&trial.warmup_step_ns, &trial.step_ns}) {
    for (const int64_t ns : *steps) ms.push_back(static_cast<double>(ns) / 1e6);
  }
  const auto state = stats::find_steady(ms, {.skip = 0, .tolerance = tolerance});
  if (!state) return;  // a mark of no time at all
  trial.steadiness = name(state->state);
  if (state->state == stats::Steadiness::kTooShort) return;
  trial.drift = std::abs(state->trend) > std::abs(state->drift) ? state->trend : state->drift;
  const auto begin = static_cast<int64_t>(state->begin) - static_cast<int64_t>(trial.warmup_step_ns.size());
  if (2 * state->begin > ms.size() || begin <= 0) return;
  trial.warmup_bursts = bursts_before(trial.bursts, begin);
}

std::string NotSteady::text() const {
  return fmt::format(
      "never became steady: in {} of {} heats its steps drift, typically by {:+.1f}% from the first half of "
      "a heat to the second ({:.3g} ms per step in the first burst, {:.3g} ms in the last)",
      drifting, heats, 100 * drift, first_ms, last_ms);
}

std::map<std::string, NotSteady> not_steady(const std::vector<Trial>& trials, double tolerance) {
  struct Seen {
    int heats = 0;
    std::vector<const Trial*> up, down, brief;
  };
  tolerance = std::max(tolerance, kLeastTolerance);
  std::map<std::string, Seen> seen;
  for (const Trial& trial : trials) {
    if (!usable(trial) || disturbed(trial)) continue;
    Seen& mine = seen[trial.contender];
    ++mine.heats;
    if (trial.steadiness == name(stats::Steadiness::kTooShort)) mine.brief.push_back(&trial);
    const int way = direction(trial, tolerance);
    if (way == 0 || machine_drifts(trials, trial, tolerance)) continue;
    (way > 0 ? mine.up : mine.down).push_back(&trial);
  }
  std::map<std::string, NotSteady> found;
  for (const auto& [contender, mine] : seen) {
    for (const auto& drifting : {mine.up, mine.down}) {
      const int count = static_cast<int>(drifting.size());
      if (count >= kLeastHeats && 2 * count > mine.heats) found[contender] = describe(drifting, mine.heats);
    }
    if (2 * static_cast<int>(mine.brief.size()) > mine.heats && bursts_drift(trials, mine.brief, tolerance))
      found[contender] = describe(mine.brief, mine.heats);
  }
  return found;
}

}  // namespace bakeoff
