// How long a burst is, and how many a heat has, follows from heats that are over. A burst must be long
// against what cannot be timed (a claim of up to 2 ms too little, the nudge of an audit), and short enough
// that the bursts of all members lie close together, as only neighbours see the same machine. Where the marks
// of steps show work, the burst is taken as its steps, and what other lengths would have cost can be computed
// from them; where they do not, a mark may come before its work is done, and the burst counts as one piece.
// Nothing but the records may be read here: a race that was killed must plan as if it had never stopped.

#include "race/heat_plan.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

#include "evidence/heats.h"
#include "stats/burst_plan.h"
#include "stats/trimmed.h"

namespace bakeoff {
namespace {

constexpr double kSecond_ns = 1e9;

double seconds(int64_t ns) { return static_cast<double>(ns) / kSecond_ns; }

// The steps of a burst that count: from the marks if they show work, else the burst as one piece. `marks`: of
// this burst, one fewer than its steps, as the first step has no mark before it.
std::vector<double> steps_of(const Burst& burst, std::span<const int64_t> marks) {
  const double whole_s = seconds(burst.counted_ns());
  double marked_s = 0;
  std::vector<double> steps;
  for (const int64_t ns : marks) {
    steps.push_back(seconds(ns));
    marked_s += seconds(ns);
    if (ns <= 0) return {whole_s};
  }
  if (steps.empty() || marked_s >= whole_s) return {whole_s};
  if (!marks_show_work(marked_s / static_cast<double>(steps.size()),
                       whole_s / static_cast<double>(burst.steps)))
    return {whole_s};
  steps.insert(steps.begin(), whole_s - marked_s);
  return steps;
}

void add_bursts(const Trial& trial, size_t contender, std::vector<stats::TimedBurst>& bursts,
                std::vector<double>& extra_s) {
  int64_t marks = 0;
  for (const Burst& burst : trial.bursts) marks += burst.steps - 1;
  const bool marked = marks == static_cast<int64_t>(trial.step_ns.size());
  size_t at = 0;
  for (size_t i = 0; i < trial.bursts.size(); ++i) {
    const Burst& burst = trial.bursts[i];
    const auto count = static_cast<size_t>(std::max<int64_t>(0, burst.steps - 1));
    const std::span<const int64_t> own =
        marked ? std::span(trial.step_ns).subspan(at, count) : std::span<const int64_t>();
    at += count;
    if (static_cast<int64_t>(i) < trial.warmup_bursts || burst.awake_ns <= 0) continue;
    extra_s.push_back(std::max(0.0, seconds(burst.awake_ns - burst.counted_ns())));
    const double start_s = seconds(burst.woken_ns + burst.awake_ns - burst.counted_ns());
    bursts.push_back({.contender = contender, .start_s = start_s, .step_s = steps_of(burst, own)});
  }
}

// The length of bursts by the first heat in which two contenders were timed.
std::optional<double> planned_burst_s(const std::vector<Trial>& trials,
                                      const std::vector<std::string>& contenders) {
  std::map<int, std::vector<const Trial*>> heats;
  for (const Trial& trial : trials) {
    if (heat_value(trial)) heats[trial.heat].push_back(&trial);
  }
  for (const auto& [number, members] : heats) {
    std::vector<stats::TimedBurst> bursts;
    stats::LeadIns costs(contenders.size(), 0);
    for (const Trial* trial : members) {
      const auto at = std::find(contenders.begin(), contenders.end(), trial->contender);
      if (at == contenders.end()) continue;
      const auto contender = static_cast<size_t>(at - contenders.begin());
      std::vector<double> extra_s;
      add_bursts(*trial, contender, bursts, extra_s);
      if (!extra_s.empty()) costs[contender] = stats::median(extra_s);
    }
    if (const auto plan = stats::plan_bursts(bursts, costs))
      return std::clamp(plan->burst_s, kShortestAudited, stats::kLongestBurst);
  }
  return std::nullopt;
}

}  // namespace

HeatPlan with_stated(HeatPlan plan, const recipe::Race& race) {
  if (race.bursts > 0) plan.rounds = race.bursts;
  if (race.burst_seconds > 0) plan.burst_s = race.burst_seconds;
  return plan;
}

namespace {

double preparation_s(const Trial& trial) {
  const int64_t start = trial.start_ns + trial.import_ns + trial.build_ns + trial.first_step_ns;
  return seconds(start) / (trial.alone ? 1 : 2) + seconds(trial.warmup_ns);
}

double awake_s(const Burst& burst) { return seconds(std::max(burst.awake_ns, burst.ns)); }

}  // namespace

double counted_seconds(const Trial& trial) {
  double sum = preparation_s(trial);
  for (const Burst& burst : trial.bursts) sum += awake_s(burst);
  return sum;
}

double expected_heat_s(const std::vector<Trial>& trials, const std::vector<std::string>& members) {
  int last = 0;
  for (const Trial& trial : trials) last = std::max(last, trial.heat);
  double whole_s = 0, parts_s = 0, count = 0;
  std::map<std::string, double> latest_s;
  for (const Trial& trial : trials) {
    latest_s[trial.contender] = counted_seconds(trial);
    if (trial.heat != last) continue;
    whole_s = std::max(whole_s, seconds(trial.heat_ns));
    parts_s += counted_seconds(trial);
    ++count;
  }
  if (parts_s <= 0) return whole_s;
  double next_s = 0;
  for (const std::string& id : members) next_s += latest_s.contains(id) ? latest_s[id] : parts_s / count;
  return whole_s * next_s / parts_s;
}

std::optional<stats::HeatCost> heat_cost(const std::vector<Trial>& trials,
                                         const std::vector<std::string>& members) {
  stats::HeatCost cost;
  for (const std::string& id : members) {
    std::vector<double> starts, bursts;
    for (const Trial& trial : trials) {
      if (trial.contender != id || trial.bursts.empty()) continue;
      starts.push_back(preparation_s(trial));
      for (const Burst& burst : trial.bursts) bursts.push_back(awake_s(burst));
    }
    if (starts.empty()) return std::nullopt;
    cost.start_s += stats::median(starts);
    cost.round_s += stats::median(bursts);
  }
  return cost;
}

std::vector<stats::PastHeat> past_heats(const std::vector<Trial>& trials, const std::string& a,
                                        const std::string& b) {
  std::vector<stats::PastHeat> heats;
  for (const Trial& one : trials) {
    if (one.contender != a) continue;
    const auto other = std::find_if(trials.begin(), trials.end(),
                                    [&](const Trial& t) { return t.heat == one.heat && t.contender == b; });
    if (other == trials.end()) continue;
    const auto first = measure_heat(one), second = measure_heat(*other);
    if (!first || !second || !first->variance || !second->variance) continue;
    heats.push_back({.d = first->log_ms - second->log_ms,
                     .within = *first->variance + *second->variance,
                     .rounds = static_cast<int64_t>(std::min(first->bursts, second->bursts))});
  }
  return heats;
}

HeatPlan plan_heat(const recipe::Recipe& recipe, const std::vector<Trial>& trials,
                   const std::vector<std::string>& contenders, const stats::Race& race,
                   const stats::Heat& next, double alpha) {
  HeatPlan plan;
  plan.burst_s = planned_burst_s(trials, contenders).value_or(kUsualBurst);
  std::vector<std::string> members;
  for (const size_t m : next.members) members.push_back(contenders[m]);
  // Before anything is known of them: 5 s to start one, and half as long again as the burst to prepare it.
  const auto count = static_cast<double>(members.size());
  const stats::HeatCost cost =
      heat_cost(trials, members).value_or(stats::HeatCost{3 * count, 1.5 * count * plan.burst_s});
  // The pair that decides last: the leader and the nearest of the others.
  std::vector<stats::PastHeat> heats;
  std::optional<double> nearest;
  for (const size_t m : next.members) {
    if (!race.leader || m == *race.leader || !race.standings[m].effect) continue;
    if (nearest && *race.standings[m].effect >= *nearest) continue;
    nearest = *race.standings[m].effect;
    heats = past_heats(trials, contenders[*race.leader], contenders[m]);
  }
  const int64_t before = heats.empty() ? stats::kFewestRounds : heats.back().rounds;
  plan.rounds = stats::plan_rounds(stats::heat_variance(heats), cost,
                                   stats::gap_to_decide(race, next, recipe.margin), alpha, before);
  for (size_t i = 0; i < next.members.size(); ++i) {
    if (race.standings[next.members[i]].effect.value_or(0) > stats::kWideGap) plan.far_behind.insert(i);
  }
  if (!plan.far_behind.empty()) plan.rounds = std::max(plan.rounds, 2 * kBurstsFarBehind);
  return plan;
}

}  // namespace bakeoff
