#include "evidence/heats.h"

#include <algorithm>
#include <cmath>

#include "evidence/warm_up.h"

namespace bakeoff {

std::set<std::string> failed_in(const std::vector<Trial>& trials) {
  std::set<std::string> failed;
  for (const Trial& trial : trials) {
    if (trial.failure || trial.invalid) failed.insert(trial.contender);
  }
  return failed;
}

std::optional<stats::HeatMeasure> measure_heat(const Trial& trial) {
  if (trial.failure || trial.invalid || trial.bursts.empty()) return std::nullopt;
  std::vector<double> ms;
  for (size_t i = static_cast<size_t>(trial.warmup_bursts); i < trial.bursts.size(); ++i)
    ms.push_back(trial.bursts[i].ms_per_step());
  return stats::measure_heat(ms);
}

std::optional<double> heat_value(const Trial& trial) {
  const std::optional<stats::HeatMeasure> measure = measure_heat(trial);
  return measure ? std::optional<double>(measure->log_ms) : std::nullopt;
}

std::vector<double> heat_times_ms(const std::vector<Trial>& trials, const std::string& contender) {
  std::vector<double> ms;
  for (const Trial& trial : trials) {
    if (trial.contender != contender) continue;
    if (const auto value = heat_value(trial)) ms.push_back(std::exp(*value));
  }
  return ms;
}

std::map<std::string, double> hopeless(const std::vector<Trial>& trials) {
  constexpr size_t kLooks = 2;
  std::map<std::string, std::vector<double>> looks;
  std::set<std::string> timed;
  for (const Trial& trial : trials) {
    if (!trial.dropped.empty() && trial.look_disturbed.empty())
      looks[trial.contender].push_back(trial.behind_leader);
    if (heat_value(trial)) timed.insert(trial.contender);
  }
  std::map<std::string, double> found;
  for (const auto& [contender, behind] : looks) {
    if (behind.size() >= kLooks && !timed.contains(contender))
      found[contender] = *std::min_element(behind.begin(), behind.end());
  }
  return found;
}

std::set<std::string> out_of_race(const std::vector<Trial>& trials, double tolerance) {
  std::set<std::string> out = failed_in(trials);
  for (const auto& [contender, why] : not_steady(trials, tolerance)) out.insert(contender);
  for (const auto& [contender, behind] : hopeless(trials)) out.insert(contender);
  return out;
}

}  // namespace bakeoff
