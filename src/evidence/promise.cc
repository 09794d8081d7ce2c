#include "evidence/promise.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <optional>

#include "evidence/heats.h"
#include "evidence/host_rounds.h"
#include "stats/trimmed.h"

namespace bakeoff {
namespace {

constexpr double kLevel = 0.2;
constexpr std::array kTimes = {1.25, 1.5, 2.0, 3.0, 5.0, 10.0, 30.0};

double log_sum(const std::vector<double>& logs) {
  const double largest = *std::max_element(logs.begin(), logs.end());
  double sum = 0;
  for (const double log : logs) sum += std::exp(log - largest);
  return largest + std::log(sum);
}

double log_mean(const std::vector<double>& logs) {
  return log_sum(logs) - std::log(static_cast<double>(logs.size()));
}

struct Contradiction {
  double log_e = 0;
  std::string words = {};
};

// The evidence of one pair against the ceiling, from the heats in which both ran.
Contradiction of_pair(double ceiling, const std::vector<const Trial*>& a,
                      const std::vector<const Trial*>& b) {
  std::vector<double> d, variance;
  double sum = 0, precision = 0;
  for (const Trial* one : a) {
    const auto other = std::find_if(b.begin(), b.end(), [&](const Trial* t) { return t->heat == one->heat; });
    if (other == b.end()) continue;
    const auto own = measure_heat(*one), its = measure_heat(**other);
    const auto own_variance = own->variance_high(), its_variance = its->variance_high();
    if (!own_variance || !its_variance) continue;
    d.push_back(own->log_ms - its->log_ms);
    variance.push_back(ceiling * ceiling + *own_variance + *its_variance);
    sum += d.back() / variance.back();
    precision += 1 / variance.back();
  }
  if (d.size() < 2) return {};
  double squares = 0;
  for (size_t i = 0; i < d.size(); ++i) squares += std::pow(d[i] - sum / precision, 2) / variance[i];
  return {
      log_bet_against(d.size(), squares),
      fmt::format("{} heats of {} against {} differ by {:.0f}% (standard deviation), of which bursts "
                  "explain {:.0f}%",
                  d.size(), a.front()->contender, b.front()->contender, 100 * std::sqrt(stats::variance(d)),
                  100 * std::sqrt(std::max(0.0, stats::mean(variance) - ceiling * ceiling)))};
}

std::string contradiction(double ceiling, const std::vector<std::vector<const Trial*>>& of) {
  std::vector<double> logs;
  Contradiction worst;
  for (size_t b = 1; b < of.size(); ++b) {
    for (size_t a = 0; a < b; ++a) {
      if (of[a].empty() || of[b].empty()) continue;
      const Contradiction found = of_pair(ceiling, of[a], of[b]);
      logs.push_back(found.log_e);
      if (found.log_e > worst.log_e) worst = found;
    }
  }
  return logs.empty() || log_mean(logs) < std::log(1 / kLevel) ? "" : worst.words;
}

}  // namespace

double log_bet_against(size_t n, double squares) {
  if (n < 2) return 0;
  std::vector<double> logs;
  for (const double s : kTimes)
    logs.push_back(squares / 2 * (1 - 1 / (s * s)) - static_cast<double>(n - 1) * std::log(s));
  return log_mean(logs);
}

std::set<int> quiet_heats(const std::vector<Trial>& trials) {
  std::set<int> quiet, others;
  for (const Trial& trial : trials) {
    for (const HostRound& round : trial.rounds) {
      if (round.rerun) continue;
      (was_judged(round) && round.busy.empty() ? quiet : others).insert(trial.heat);
    }
  }
  for (const int heat : others) quiet.erase(heat);
  return quiet;
}

Promise promise_of(const recipe::Recipe& recipe, const std::vector<Trial>& trials,
                   const std::vector<std::string>& contenders) {
  Promise promise{.stated = recipe.race.noise_ceiling,
                  .by_recipe = recipe.race.stated.contains("noise_ceiling")};
  if (promise.stated <= 0) return promise;
  const std::set<int> quiet = quiet_heats(trials);
  const std::set<std::string> out = out_of_race(trials, recipe.margin);
  std::vector<std::vector<const Trial*>> of(contenders.size());
  for (const Trial& trial : trials) {
    const auto at = std::find(contenders.begin(), contenders.end(), trial.contender);
    if (at == contenders.end() || out.contains(trial.contender) || !quiet.contains(trial.heat)) continue;
    if (heat_value(trial)) of[static_cast<size_t>(at - contenders.begin())].push_back(&trial);
  }
  promise.withdrawn = contradiction(promise.stated, of);
  return promise;
}

}  // namespace bakeoff
