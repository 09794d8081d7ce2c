// Says where the noise of a race comes from: steps, bursts, processes, heats. Steps are known by marks alone,
// and only where the marks show work: a framework that returns before it has computed gives marks that say
// nothing. Differences are taken in logs, so that a slow contender does not weigh more than a fast one. With
// few heats an estimate of zero is common and proves nothing, so upper 95% bounds are computed beside
// estimates; that of the machine's state is of one contender, as all contenders share the same heats.

#include "evidence/variance.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <ranges>
#include <set>

#include "evidence/heats.h"
#include "stats/distributions.h"
#include "stats/planning.h"
#include "stats/trimmed.h"

namespace bakeoff {
namespace {

// The marks of one burst, `at` being the first of them.
void add_steps(const Trial& trial, const Burst& burst, size_t at, stats::BurstRecord& record) {
  std::vector<double> logs;
  double sum_ms = 0;
  for (size_t i = at; i < at + static_cast<size_t>(burst.steps) - 1; ++i) {
    if (trial.step_ns[i] <= 0) return;
    const double ms = static_cast<double>(trial.step_ns[i]) / 1e6;
    logs.push_back(std::log(ms));
    sum_ms += ms;
  }
  if (logs.size() < 2) return;
  const double mean = sum_ms / static_cast<double>(logs.size());
  if (!marks_show_work(mean, burst.ms_per_step())) return;
  record.seen = static_cast<int64_t>(logs.size());
  record.step_variance = stats::variance(logs);
}

stats::ProcessRecord record_of(const Trial& trial, size_t contender) {
  stats::ProcessRecord process{.heat = trial.heat, .contender = contender};
  int64_t marks = 0;
  for (const Burst& burst : trial.bursts) marks += burst.steps - 1;
  const bool all_marked = marks == static_cast<int64_t>(trial.step_ns.size());
  size_t at = 0;
  for (const Burst& burst : trial.bursts) {
    stats::BurstRecord record{.log_ms = std::log(burst.ms_per_step()), .steps = burst.steps};
    if (all_marked) add_steps(trial, burst, at, record);
    at += static_cast<size_t>(burst.steps - 1);
    process.bursts.push_back(record);
  }
  return process;
}

std::string percent(double fraction) {
  const double p = 100 * fraction;
  return p >= 10 ? fmt::format("{:.0f}%", p) : p >= 1 ? fmt::format("{:.1f}%", p) : fmt::format("{:.2f}%", p);
}

// The upper 95% bound of a variance that was estimated with `degrees` degrees of freedom.
double upper(double seen, double degrees) {
  return seen * degrees / stats::chi_squared_quantile(degrees, 0.05);
}

double mean_log(const stats::ProcessRecord& process) {
  double sum = 0;
  for (const stats::BurstRecord& burst : process.bursts) sum += burst.log_ms;
  return sum / static_cast<double>(process.bursts.size());
}

// Upper bound of the effect of the machine's state: the whole difference between heats of one contender, of
// the contender with most heats. The heats are the same for all contenders, so more contenders give no more
// degrees of freedom.
std::optional<double> heats_high(const std::vector<stats::ProcessRecord>& records) {
  std::map<size_t, std::vector<double>> of;
  for (const auto& record : records) of[record.contender].push_back(mean_log(record));
  std::optional<double> most;
  for (const auto& [contender, values] : of) {
    if (values.size() < 2) continue;
    const double high = std::sqrt(upper(stats::variance(values), static_cast<double>(values.size() - 1)));
    most = std::max(most.value_or(0), high);
  }
  return most;
}

// Upper bound of the difference between bursts of one process, steps included.
std::optional<double> bursts_high(const std::vector<stats::ProcessRecord>& records) {
  double squares = 0, degrees = 0;
  for (const auto& record : records) {
    if (record.bursts.size() < 2) continue;
    const double mean = mean_log(record);
    for (const auto& burst : record.bursts) squares += (burst.log_ms - mean) * (burst.log_ms - mean);
    degrees += static_cast<double>(record.bursts.size() - 1);
  }
  if (degrees < 1) return std::nullopt;
  return std::sqrt(upper(squares / degrees, degrees));
}

// Upper bound of the effect of restarting: the upper bound of the variance of a process's mean, minus the
// part that bursts and steps cause.
std::optional<double> processes_high(const stats::Components& found) {
  const auto pair = found.pair_variance(found.bursts);
  if (!pair || !found.process || found.process_degrees < 1) return std::nullopt;
  const double own = *pair / 2 - *found.process;
  return std::sqrt(
      std::max(*found.process, upper(*pair / 2, static_cast<double>(found.process_degrees)) - own));
}

std::string processes(int64_t n) {
  return fmt::format("{} more heat{}, each a fresh process of every contender", n, n == 1 ? "" : "s");
}

// Whether more processes or more steps would decide, from the number of pairs for a gap of the margin
// (stats/planning.h).
// `each`: how many processes a contender had, "13" or "2 to 13".
std::string advice(const stats::Components& found, int64_t heats, const std::string& each, bool undecided,
                   double margin, double alpha) {
  const auto sd = [&](double bursts) { return std::sqrt(found.pair_variance(bursts).value_or(0)); };
  const int64_t needed = stats::pairs_needed(sd(found.bursts), margin, alpha).value_or(0);
  const int64_t with_all_steps =
      stats::pairs_needed(sd(std::numeric_limits<double>::infinity()), margin, alpha).value_or(0);
  if (!undecided) {
    return static_cast<double>(with_all_steps) > 5 + 0.5 * static_cast<double>(needed - 5)
               ? fmt::format(
                     "the {} processes of each contender decided; fewer processes with more steps would not",
                     each)
               : fmt::format(
                     "the {} processes of each contender were enough; longer bursts would have saved some",
                     each);
  }
  if (needed <= heats) {
    return fmt::format(
        "with this noise {} processes of each contender are enough for a gap of {:g}%; undecided gaps are "
        "close to the margin",
        needed, 100 * margin);
  }
  if (with_all_steps > heats) {
    return fmt::format("a gap of {:g}% needs about {}; more steps in the same processes do not help",
                       100 * margin, processes(needed - heats));
  }
  return fmt::format("a gap of {:g}% needs about {}, or longer bursts in as many processes", 100 * margin,
                     processes(needed - heats));
}

}  // namespace

std::string deviation(double sd, const std::optional<double>& high) {
  return sd < 0.00005 && high ? "at most " + percent(*high) : percent(sd);
}

std::vector<stats::ProcessRecord> process_records(const std::vector<Trial>& trials,
                                                  const std::vector<std::string>& contenders) {
  std::vector<stats::ProcessRecord> records;
  const std::set<std::string> out = failed_in(trials);
  for (const Trial& trial : trials) {
    const auto at = std::find(contenders.begin(), contenders.end(), trial.contender);
    if (at == contenders.end() || out.contains(trial.contender) || !heat_value(trial)) continue;
    records.push_back(record_of(trial, static_cast<size_t>(at - contenders.begin())));
  }
  return records;
}

ProcessCost process_cost(const std::vector<Trial>& trials) {
  std::vector<double> starts, bursts;
  for (const Trial& t : trials) {
    if (!heat_value(t)) continue;
    const int64_t ns = t.start_ns + t.import_ns + t.build_ns + t.first_step_ns + t.warmup_ns;
    starts.push_back(static_cast<double>(ns) / 1e9 / (t.alone ? 1 : 2));
    for (const Burst& burst : t.bursts) bursts.push_back(static_cast<double>(burst.ns) / 1e9);
  }
  if (starts.empty()) return {};
  return {stats::median(starts), stats::median(bursts)};
}

std::optional<Variance> variance_of(const std::vector<Trial>& trials,
                                    const std::vector<std::string>& contenders, std::optional<bool> undecided,
                                    double margin, double alpha) {
  const std::vector<stats::ProcessRecord> records = process_records(trials, contenders);
  const stats::Components found = stats::components(records);
  if (!found.process || !found.burst) return std::nullopt;
  const auto root = [](const std::optional<double>& v) {
    return v ? std::optional<double>(std::sqrt(*v)) : std::nullopt;
  };
  Variance v{.heats = root(found.heat),
             .processes = root(found.process),
             .bursts = root(found.burst),
             .steps = root(found.step),
             .heats_high = heats_high(records),
             .processes_high = processes_high(found),
             .bursts_high = bursts_high(records)};
  const ProcessCost cost = process_cost(trials);
  if (cost.start_s > 0 && cost.burst_s > 0)
    v.cheapest_bursts = stats::cheapest_bursts(found, cost.start_s, cost.burst_s);
  std::set<int> heats;
  std::map<size_t, int64_t> counts;  // processes by contender
  for (const auto& record : records) {
    heats.insert(record.heat);
    ++counts[record.contender];
  }
  const auto [fewest, most] = std::ranges::minmax(counts | std::views::values);
  const std::string each = fewest == most ? std::to_string(most) : fmt::format("{} to {}", fewest, most);
  // A variance from n heats is known to a factor of about 1 + 2 / sqrt(n).
  constexpr size_t kFewHeats = 6;
  v.sentence = fmt::format("Restarting the process changes the result by {}, repeating a {} by {}",
                           deviation(*v.processes, v.processes_high), v.steps ? "step" : "burst",
                           v.steps ? deviation(*v.steps) : deviation(*v.bursts, v.bursts_high));
  if (undecided)
    v.sentence += ": " + advice(found, static_cast<int64_t>(heats.size()), each, *undecided, margin, alpha);
  v.sentence += '.';
  if (heats.size() < kFewHeats)
    v.sentence += fmt::format(" A rough estimate: it rests on {} heats.", heats.size());
  return v;
}

}  // namespace bakeoff
