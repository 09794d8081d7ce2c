#include "evidence/evidence.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "evidence/heats.h"
#include "evidence/promise.h"
#include "stats/boundary.h"
#include "stats/ranking.h"
#include "stats/trimmed.h"

namespace bakeoff {

namespace {

// Share of processor time that the hypervisor took during the rounds that count.
std::optional<double> steal_of(const Trial& trial) {
  double seconds = 0, stolen = 0;
  for (const HostRound& round : trial.rounds) {
    const auto steal = round.seen.find("steal");
    if (round.rerun || steal == round.seen.end()) continue;
    seconds += static_cast<double>(round.wall_ns) / 1e9;
    stolen += static_cast<double>(round.wall_ns) / 1e9 * steal->second;
  }
  return seconds > 0 ? std::optional<double>(stolen / seconds) : std::nullopt;
}

}  // namespace

Result<stats::PairTable> tabulate(const std::vector<Trial>& trials,
                                  const std::vector<std::string>& contenders, double tolerance) {
  stats::PairTable table(contenders.size(), std::log1p(tolerance), stats::Backup::kOnSigns);
  const std::set<std::string> out = out_of_race(trials, tolerance);
  const std::set<int> quiet = quiet_heats(trials);
  struct Heat {
    stats::HeatResult result;
    bool confirms = false;
  };
  std::map<int, Heat> heats;
  std::map<std::string, int> nodes;  // numbered as they come
  for (const Trial& trial : trials) {
    auto& [result, confirms] = heats[trial.heat];
    confirms = trial.confirms;
    result.node = nodes.emplace(trial.node, static_cast<int>(nodes.size())).first->second;
    result.log_ms.resize(contenders.size());
    result.log_mean_ms.resize(contenders.size());
    result.variance.resize(contenders.size());
    if (!result.steal) result.steal = steal_of(trial);
    result.promised = quiet.contains(trial.heat);
    const auto at = std::find(contenders.begin(), contenders.end(), trial.contender);
    if (at == contenders.end() || out.contains(trial.contender)) continue;
    if (const std::optional<stats::HeatMeasure> measure = measure_heat(trial)) {
      result.log_ms[static_cast<size_t>(at - contenders.begin())] = measure->log_ms;
      result.log_mean_ms[static_cast<size_t>(at - contenders.begin())] = measure->log_mean_ms;
      result.variance[static_cast<size_t>(at - contenders.begin())] = measure->variance_high();
    }
  }
  for (const auto& [number, heat] : heats)
    CHECK_OK(heat.confirms ? table.watch(heat.result) : table.add(heat.result));
  for (size_t i = 0; i < contenders.size(); ++i) {
    const bool timed = std::any_of(trials.begin(), trials.end(), [&](const Trial& trial) {
      return trial.contender == contenders[i] && heat_value(trial);
    });
    if (out.contains(contenders[i]) && !timed) table.leave_out(i);
  }
  return table;
}

stats::RacingOptions racing_options(const recipe::Recipe& recipe, const std::vector<Trial>& trials,
                                    const std::vector<std::string>& contenders) {
  stats::RacingOptions options = {.live = static_cast<size_t>(recipe.race.live),
                                  .confirm_heats = static_cast<size_t>(recipe.race.confirm_heats)};
  options.ranking.alpha = recipe.alpha;
  options.ranking.margin = recipe.margin;
  options.ranking.ceiling = promise_of(recipe, trials, contenders).ceiling();
  options.ranking.ceiling_from = kPromisedFrom;
  std::set<std::string> nodes;
  for (const Trial& trial : trials) nodes.insert(trial.node);
  if (nodes.size() >= stats::kFewestOfAKind) options.ranking.about = stats::About::kTheirKind;
  return options;
}

std::vector<stats::ContenderState> contender_states(const std::vector<Trial>& trials,
                                                    const std::vector<Parity>& parities,
                                                    const std::vector<std::string>& contenders,
                                                    double tolerance) {
  const std::set<std::string> out = out_of_race(trials, tolerance);
  std::vector<stats::ContenderState> known;
  for (const std::string& id : contenders) {
    std::vector<double> seconds;
    for (const Trial& trial : trials) {
      if (trial.contender == id) seconds.push_back(trial_seconds(trial));
    }
    for (const Parity& parity : parities) {
      if (seconds.empty() && parity.contender == id && parity.first_step_cold_ns > 0)
        seconds.push_back(static_cast<double>(parity.first_step_cold_ns) / 1e9);
    }
    stats::ContenderState& of = known.emplace_back();
    of.out = out.contains(id);
    if (const double mean = seconds.empty() ? 0 : stats::mean(seconds); mean > 0) of.heat_s = mean;
  }
  return known;
}

size_t confirmed_heats(const std::vector<Trial>& trials) {
  std::set<int> heats;
  for (const Trial& trial : trials) {
    if (trial.confirms) heats.insert(trial.heat);
  }
  return heats.size();
}

int64_t least_heats(double alpha, size_t contenders) {
  const auto pairs = static_cast<double>(stats::comparisons(contenders));
  size_t n = 2;
  while (!std::isfinite(stats::boundary_ratio(n, alpha / pairs))) ++n;
  return static_cast<int64_t>(n);
}

double trial_seconds(const Trial& trial) {
  const int64_t start = trial.start_ns + trial.import_ns + trial.build_ns + trial.first_step_ns;
  double ns = static_cast<double>(start) / (trial.alone ? 1 : 2) + static_cast<double>(trial.warmup_ns);
  for (const std::vector<Burst>* bursts : {&trial.bursts, &trial.void_bursts}) {
    for (const Burst& burst : *bursts) ns += static_cast<double>(burst.ns + burst.late_ns);
  }
  return ns / 1e9;
}

RaceCost race_cost(const std::vector<Trial>& trials) {
  struct Taken {
    double seconds = 0;
    int heats = 0;
  };
  std::map<std::string, Taken> taken;
  RaceCost cost;
  for (const Trial& trial : trials) {
    if (trial.confirms || !heat_value(trial)) continue;
    Taken& own = taken[trial.contender];
    own.seconds += trial_seconds(trial);
    cost.raced_s += trial_seconds(trial);
    cost.heats = std::max(cost.heats, ++own.heats);
  }
  for (const auto& [contender, own] : taken) cost.uniform_s += own.seconds / own.heats * cost.heats;
  return cost;
}

}  // namespace bakeoff
