#include "lab/race.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/clock.h"
#include "lab/host.h"
#include "lab/warm_up.h"
#include "proc/interrupt.h"
#include "stats/e_process.h"
#include "stats/trimmed.h"

namespace bakeoff::lab {
namespace {

constexpr int64_t kLoneHeats = 3;
constexpr int64_t kBytesPerWorker = int64_t{3} << 29;  // 1.5 GiB: what a worker of these frameworks may need

// Whether no process of this run had compiled the contender's step before: neither the gate's nor a heat's.
bool first_of_its_kind(const Trial& trial, const std::vector<Trial>& before,
                       const std::vector<Parity>& parities) {
  const auto same = [&](const auto& record) { return record.contender == trial.contender; };
  const auto proof = std::find_if(parities.begin(), parities.end(), same);
  return std::none_of(before.begin(), before.end(), same) &&
         (proof == parities.end() || proof->first_step_cold_ns == 0);
}

}  // namespace

std::vector<size_t> eligible(const Plan& plan, const std::vector<Parity>& parities) {
  std::vector<size_t> lanes;
  for (size_t i = 0; i < plan.lanes.size(); ++i) {
    if (plan.lanes[i].failure) continue;
    const auto proof = std::find_if(parities.begin(), parities.end(), [&](const Parity& p) {
      return p.contender == plan.manifest.contenders[i].id;
    });
    if (proof == parities.end() || proof->failure) continue;
    if (plan.recipe.training.track == ir::Track::kAsIs || proof->passed()) lanes.push_back(i);
  }
  return lanes;
}

std::set<std::string> failed_in(const std::vector<Trial>& trials) {
  std::set<std::string> failed;
  for (const Trial& trial : trials) {
    if (trial.failure || trial.invalid) failed.insert(trial.contender);
  }
  return failed;
}

std::optional<double> heat_value(const Trial& trial) {
  if (trial.failure || trial.invalid || trial.bursts.empty()) return std::nullopt;
  std::vector<double> ms;
  for (size_t i = static_cast<size_t>(trial.warmup_bursts); i < trial.bursts.size(); ++i)
    ms.push_back(trial.bursts[i].ms_per_step());
  const auto value = stats::log_trimmed_mean(ms);
  return value ? std::optional<double>(*value) : std::nullopt;
}

std::set<std::string> out_of_race(const std::vector<Trial>& trials, double tolerance) {
  std::set<std::string> out = failed_in(trials);
  for (const auto& [contender, why] : not_steady(trials, tolerance)) out.insert(contender);
  return out;
}

Result<stats::PairTable> tabulate(const std::vector<Trial>& trials, const std::vector<std::string>& entrants,
                                  double tolerance) {
  stats::PairTable table(entrants.size());
  const std::set<std::string> out = out_of_race(trials, tolerance);
  std::set<int> heats;
  for (const Trial& trial : trials) heats.insert(trial.heat);
  for (const int heat : heats) {
    stats::HeatResult result;
    result.log_ms.resize(entrants.size());
    for (const Trial& trial : trials) {
      const auto at = std::find(entrants.begin(), entrants.end(), trial.contender);
      if (trial.heat == heat && at != entrants.end() && !out.contains(trial.contender)) {
        result.log_ms[static_cast<size_t>(at - entrants.begin())] = heat_value(trial);
      }
    }
    CHECK_OK(table.add(result));
  }
  return table;
}

int64_t least_heats(double alpha, size_t contenders) {
  const double pairs = std::max(1.0, static_cast<double>(contenders * (contenders - 1)) / 2);
  size_t n = 2;
  while (!std::isfinite(stats::critical_ratio(n, alpha / pairs))) ++n;
  return static_cast<int64_t>(n);
}

Status check_budget(const recipe::Recipe& recipe) {
  const size_t k = recipe.contenders.size();
  if (k < 2) return Done{};
  const int64_t least = least_heats(recipe.alpha, k);
  if (recipe.budget.heats < least) {
    return Error{.message = fmt::format(
                     "budget.heats = {} cannot decide anything between {} contenders at alpha = {:g}",
                     recipe.budget.heats, k, recipe.alpha),
                 .where = recipe::where(recipe, "budget", "heats"),
                 .remedy = fmt::format("allow at least {} heats, or race fewer contenders", least)};
  }
  // The bursts alone; starting the workers comes on top.
  const double minutes = static_cast<double>(least) * static_cast<double>(recipe.race.bursts) *
                         recipe.race.burst_seconds * static_cast<double>(k) / 60;
  if (recipe.budget.minutes < minutes) {
    return Error{
        .message =
            fmt::format("budget.minutes = {:g} cannot decide: {} heats of {} contenders time bursts for "
                        "{:.1f} minutes",
                        recipe.budget.minutes, least, k, minutes),
        .where = recipe::where(recipe, "budget", "minutes"),
        .remedy = fmt::format("allow more than {:.1f} minutes, or shorten race.bursts or race.burst_seconds",
                              minutes)};
  }
  return Done{};
}

namespace {

// Starting is mostly importing and compiling on one core: members start two at a time, except where some
// contender runs for the first time, whose start-up is to be known.
size_t starts_at_once(const std::vector<size_t>& members, const std::vector<std::string>& entrants,
                      const std::vector<Trial>& trials) {
  const auto ran = [&](size_t m) {
    return std::any_of(trials.begin(), trials.end(),
                       [&](const Trial& t) { return t.contender == entrants[m] && t.alone; });
  };
  return std::all_of(members.begin(), members.end(), ran) ? 2 : 1;
}

// Nobody to compare with: one contender is left, and has not run often enough to have a time of its own.
std::vector<size_t> lone_member(const std::vector<Trial>& trials, const std::vector<std::string>& entrants,
                                const std::set<std::string>& out) {
  std::vector<size_t> left;
  for (size_t i = 0; i < entrants.size(); ++i) {
    if (!out.contains(entrants[i])) left.push_back(i);
  }
  if (left.size() != 1) return {};
  const auto heats = std::count_if(trials.begin(), trials.end(), [&](const Trial& trial) {
    return trial.contender == entrants[left[0]] && heat_value(trial);
  });
  return heats < kLoneHeats ? left : std::vector<size_t>{};
}

// Nothing where only heats are limited and none has run yet.
std::optional<double> time_left(const recipe::Budget& budget, int heat, double elapsed_s,
                                double last_heat_s) {
  if (!budget.unlimited_time()) return std::max(0.0, budget.minutes * 60 - elapsed_s);
  if (last_heat_s == 0) return std::nullopt;
  return last_heat_s * static_cast<double>(budget.heats - heat + 1);
}

}  // namespace

std::vector<size_t> next_members(const stats::PairTable& table, const stats::Race& race,
                                 const std::vector<bool>& failed, size_t live) {
  std::vector<size_t> unmet, undecided;
  for (size_t i = 0; i < table.contenders(); ++i) {
    if (!failed[i] && !race.standings[i].effect) unmet.push_back(i);
  }
  for (const size_t i : race.still_undecided) {
    if (!failed[i] && i != race.leader) undecided.push_back(i);
  }
  std::stable_sort(undecided.begin(), undecided.end(),
                   [&](size_t a, size_t b) { return table.heats(a) < table.heats(b); });
  std::vector<size_t> members;
  if (race.leader && !failed[*race.leader]) members.push_back(*race.leader);
  for (const auto* group : {&unmet, &undecided}) {
    for (const size_t i : *group) {
      if (members.size() < live) members.push_back(i);
    }
  }
  if (members.size() < 2) return {};
  return members;
}

Status race(const Plan& plan, const std::vector<Parity>& parities, std::vector<Trial> trials,
            const Watch& watch) {
  const std::vector<size_t> lanes = eligible(plan, parities);
  std::vector<std::string> entrants;
  for (const size_t lane : lanes) entrants.push_back(plan.manifest.contenders[lane].id);
  const int64_t begin = monotonic_clock().now_ns();
  const double budget_s = plan.recipe.budget.minutes * 60;
  int heat = 0;
  for (const Trial& trial : trials) heat = std::max(heat, trial.heat);
  Happening now{.stage = "race", .contenders = static_cast<int>(plan.lanes.size())};
  double last_heat_s = 0;
  while (!proc::interrupted() && heat < plan.recipe.budget.heats) {
    TRY(const stats::PairTable table, tabulate(trials, entrants, plan.recipe.margin));
    const stats::Race state =
        stats::race_state(table, {.alpha = plan.recipe.alpha, .margin = plan.recipe.margin});
    const std::set<std::string> out = out_of_race(trials, plan.recipe.margin);
    std::vector<bool> failed;
    for (const std::string& id : entrants) failed.push_back(out.contains(id));
    size_t live = static_cast<size_t>(plan.recipe.race.live);
    if (const int64_t memory = available_memory_bytes(); memory > 0) {
      live = std::clamp<size_t>(static_cast<size_t>(memory / kBytesPerWorker), 2, live);
    }
    std::vector<size_t> members = next_members(table, state, failed, live);
    if (members.empty()) members = lone_member(trials, entrants, out);
    // Out of time when most of another heat would lie beyond the budget.
    if (members.empty() || (heat > 0 && seconds_since(begin) + last_heat_s / 2 > budget_s)) break;
    now.heat = ++heat;
    now.elapsed_s = seconds_since(begin);
    now.left_s = time_left(plan.recipe.budget, heat, now.elapsed_s, last_heat_s);
    now.failed = static_cast<int>(plan.lanes.size() - lanes.size() +
                                  static_cast<size_t>(std::count(failed.begin(), failed.end(), true)));
    now.survivors = static_cast<int>(entrants.size() - state.eliminated.size()) -
                    static_cast<int>(std::count(failed.begin(), failed.end(), true));
    if (state.leader) {
      now.leader = entrants[*state.leader];
      std::vector<double> ms;
      for (const Trial& trial : trials) {
        if (trial.contender == now.leader && heat_value(trial)) ms.push_back(std::exp(*heat_value(trial)));
      }
      now.leader_ms = stats::median(ms);
    }
    std::vector<size_t> heat_lanes;
    for (const size_t m : members) heat_lanes.push_back(lanes[m]);
    const size_t at_once = starts_at_once(members, entrants, trials);
    const int64_t heat_begin = monotonic_clock().now_ns();
    std::vector<Trial> fresh = run_heat(plan, heat_lanes, heat, at_once, watch, now);
    last_heat_s = seconds_since(heat_begin);
    if (proc::interrupted()) break;  // a heat cut short is void
    for (Trial& trial : fresh) {
      trial.cold = first_of_its_kind(trial, trials, parities);
      CHECK_OK(plan.directory.append(trial));
      trials.push_back(std::move(trial));
    }
  }
  return Done{};
}

}  // namespace bakeoff::lab
