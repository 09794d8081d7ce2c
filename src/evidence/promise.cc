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

double squares(const std::vector<double>& values) {
  return values.size() < 2 ? 0 : stats::variance(values) * static_cast<double>(values.size() - 1);
}

// Log ratios of two trials of one heat, round by round.
std::vector<double> by_round(const Trial& a, const Trial& b) {
  std::vector<double> ratios;
  const auto from = static_cast<size_t>(std::max(a.warmup_bursts, b.warmup_bursts));
  for (size_t i = from; i < std::min(a.bursts.size(), b.bursts.size()); ++i)
    ratios.push_back(std::log(a.bursts[i].ms_per_step() / b.bursts[i].ms_per_step()));
  return ratios;
}

struct Contradiction {
  double log_e = 0;
  std::string words = {};
};

// The evidence of one pair against the ceiling: from its heats, and from the rounds of its heats.
std::pair<Contradiction, Contradiction> of_pair(double ceiling, const std::vector<const Trial*>& a,
                                                const std::vector<const Trial*>& b) {
  std::vector<double> heats;
  Contradiction rounds;
  double widest = 0;
  for (const Trial* one : a) {
    const auto other = std::find_if(b.begin(), b.end(), [&](const Trial* t) { return t->heat == one->heat; });
    if (other == b.end()) continue;
    heats.push_back(*heat_value(*one) - *heat_value(**other));
    const std::vector<double> ratios = by_round(*one, **other);
    if (ratios.size() < 2) continue;
    const double n = static_cast<double>(ratios.size());
    rounds.log_e += log_bet_against(ceiling * std::sqrt(n), ratios.size(), squares(ratios));
    if (const double sd = std::sqrt(stats::variance(ratios) / n); sd > widest) {
      widest = sd;
      rounds.words = fmt::format("the rounds of heat {} alone leave {:.0f}% of noise in {} against {}",
                                 one->heat, 100 * sd, one->contender, (*other)->contender);
    }
  }
  Contradiction over;
  if (heats.size() >= 2) {
    over.log_e = log_bet_against(ceiling, heats.size(), squares(heats));
    over.words =
        fmt::format("{} heats of {} against {} differ by {:.0f}% (standard deviation)", heats.size(),
                    a.front()->contender, b.front()->contender, 100 * std::sqrt(stats::variance(heats)));
  }
  return {over, rounds};
}

std::string contradiction(double ceiling, const std::vector<std::vector<const Trial*>>& of) {
  std::vector<double> over, within;
  Contradiction worst;
  const auto note = [&](const Contradiction& found, std::vector<double>& logs) {
    logs.push_back(found.log_e);
    if (found.log_e > worst.log_e) worst = found;
  };
  for (size_t b = 1; b < of.size(); ++b) {
    for (size_t a = 0; a < b; ++a) {
      if (of[a].empty() || of[b].empty()) continue;
      const auto [heats, rounds] = of_pair(ceiling, of[a], of[b]);
      note(heats, over);
      note(rounds, within);
    }
  }
  if (over.empty() || log_mean({log_mean(over), log_mean(within)}) < std::log(1 / kLevel)) return "";
  return worst.words;
}

}  // namespace

double log_bet_against(double ceiling, size_t n, double squares) {
  if (n < 2 || ceiling <= 0) return 0;
  std::vector<double> logs;
  for (const double s : kTimes) {
    logs.push_back(squares / (2 * ceiling * ceiling) * (1 - 1 / (s * s)) -
                   static_cast<double>(n - 1) * std::log(s));
  }
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
