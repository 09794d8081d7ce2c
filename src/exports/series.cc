#include "exports/series.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <ctime>
#include <utility>

#include "evidence/heats.h"
#include "report/phrases.h"
#include "table/numbers.h"
#include "table/text.h"

namespace bakeoff::exports {

double seconds_since_1970(const std::string& utc) {
  std::tm parts{};
  const char* end = strptime(utc.c_str(), "%Y-%m-%dT%H:%M:%SZ", &parts);
  return end == nullptr || *end != '\0' ? 0 : static_cast<double>(timegm(&parts));
}

namespace {

constexpr double kNanoseconds = 1e9;

void add(Series& series, int64_t step, double wall_s, double value) {
  if (std::isfinite(value) && std::abs(value) < kNotFinite) series.points.push_back({step, wall_s, value});
}

// What one trial shows is there only if it counts.
void add_race(const Recorded& run, const std::string& id, std::vector<Series>& all) {
  Series seconds{"race/seconds_per_step", "heat"}, throughput{"race/samples_per_second", "heat"},
      first{"race/first_step_seconds", "heat"};
  for (const Trial& trial : run.trials) {
    if (trial.contender != id) continue;
    const auto log_ms = heat_value(trial);
    if (!log_ms) continue;
    const double wall = seconds_since_1970(trial.started), per_step = std::exp(*log_ms) / 1e3;
    add(seconds, trial.heat, wall, per_step);
    add(throughput, trial.heat, wall, static_cast<double>(run.summary.batch) / per_step);
    if (trial.first_step_ns > 0)
      add(first, trial.heat, wall, static_cast<double>(trial.first_step_ns) / kNanoseconds);
  }
  for (Series* one : {&seconds, &throughput, &first}) all.push_back(std::move(*one));
}

void add_parity(const Recorded& run, const std::string& id, std::vector<Series>& all) {
  for (const Parity& parity : run.parities) {
    if (parity.contender != id) continue;
    Series loss{"parity/loss", "step"}, referee{"parity/referee_loss", "step"};
    const double wall = seconds_since_1970(parity.proven);
    for (size_t i = 0; i < parity.losses.size(); ++i)
      add(loss, static_cast<int64_t>(i) + 1, wall, parity.losses[i]);
    for (size_t i = 0; i < parity.referee_losses.size(); ++i)
      add(referee, static_cast<int64_t>(i) + 1, wall, parity.referee_losses[i]);
    all.push_back(std::move(loss));
    all.push_back(std::move(referee));
    return;
  }
}

void add_fit(const FitTrial& fit, std::vector<Series>& all) {
  const std::string prefix = fmt::format("fit/seed{}/", fit.seed);
  Series loss{prefix + "loss", "step"}, held{prefix + "held_out_loss", "epoch"},
      accuracy{prefix + "held_out_accuracy", "epoch"};
  const double began = seconds_since_1970(fit.started) + static_cast<double>(fit.start_up_ns) / kNanoseconds;
  double wall = began;
  int64_t steps = 0;
  for (const Burst& stretch : fit.stretches) {
    wall += static_cast<double>(stretch.counted_ns()) / kNanoseconds;
    for (const auto& [step, value] : stretch.losses) add(loss, step, wall, value);
    steps += stretch.steps;
  }
  int64_t epoch = 0;
  for (const TargetLook& look : fit.watched) {
    const double at = began + static_cast<double>(look.ns) / kNanoseconds;
    add(held, ++epoch, at, look.loss);
    add(accuracy, epoch, at, look.accuracy);
  }
  if (fit.watched.empty() && fit.on_held) {
    add(held, steps, wall, fit.on_held->loss);
    add(accuracy, steps, wall, fit.on_held->accuracy);
    held.over = accuracy.over = "step";
  }
  for (Series* one : {&loss, &held, &accuracy}) all.push_back(std::move(*one));
}

std::map<std::string, std::string> settings_of(const Row& row) {
  std::map<std::string, std::string> all(row.contender.settings.begin(), row.contender.settings.end());
  all["framework"] = row.contender.framework;
  if (const std::string version = framework_version(row); !version.empty())
    all["framework_version"] = version;
  return all;
}

std::map<std::string, double> numbers_of(const Row& row, bool ranked) {
  std::map<std::string, double> all;
  const auto set = [&](const std::string& name, double value) {
    if (std::isfinite(value)) all[name] = value;
  };
  if (!ranked) return all;
  set("rank_best", row.rank_best);
  set("rank_worst", row.rank_worst);
  set("ms_per_step", row.ms_per_step.value);
  set("ratio", row.ratio.value);
  for (const auto& [name, estimate] :
       {std::pair("ms_per_step", row.ms_per_step), std::pair("ratio", row.ratio)}) {
    if (table::bounded_below(estimate)) set(fmt::format("{}_low", name), estimate.low);
    if (table::bounded_above(estimate)) set(fmt::format("{}_high", name), estimate.high);
  }
  set("samples_per_second", row.samples_per_second);
  set("peak_rss_bytes", static_cast<double>(row.peak_rss_bytes));
  return all;
}

Tracked tracked(const Recorded& run, const Row& row, bool ranked) {
  Tracked out{.contender = row.contender.id,
              .failed = !ranked,
              .reason = ranked ? "" : report::unranked_reason(row),
              .settings = settings_of(row),
              .numbers = numbers_of(row, ranked)};
  add_race(run, row.contender.id, out.series);
  add_parity(run, row.contender.id, out.series);
  for (const FitTrial& fit : run.fits) {
    if (fit.contender == row.contender.id) add_fit(fit, out.series);
  }
  std::erase_if(out.series, [](const Series& one) { return one.points.empty(); });
  return out;
}

}  // namespace

Experiment experiment_of(const Recorded& run) {
  const Summary& s = run.summary;
  Experiment out{.name = s.title,
                 .run = run.run,
                 .started_s = seconds_since_1970(s.manifest.started),
                 .verdict = report::headline(s)};
  for (const Row& row : s.ranked) out.contenders.push_back(tracked(run, row, true));
  for (const Row& row : s.unranked) out.contenders.push_back(tracked(run, row, false));
  return out;
}

nlohmann::ordered_json to_json(const Experiment& experiment) {
  using Json = nlohmann::ordered_json;
  using table::clean;
  Json contenders = Json::array();
  for (const Tracked& one : experiment.contenders) {
    Json settings = Json::object(), series = Json::array();
    for (const auto& [key, value] : one.settings) settings[clean(key)] = clean(value);
    for (const Series& line : one.series) {
      Json points = Json::array();
      for (const Point& point : line.points) points.push_back({point.step, point.wall_s, point.value});
      series.push_back({{"tag", clean(line.tag)}, {"over", line.over}, {"points", std::move(points)}});
    }
    contenders.push_back({{"contender", clean(one.contender)},
                          {"failed", one.failed},
                          {"reason", clean(one.reason)},
                          {"settings", std::move(settings)},
                          {"numbers", one.numbers},
                          {"series", std::move(series)}});
  }
  return {{"name", clean(experiment.name)},
          {"run", clean(experiment.run)},
          {"started_s", experiment.started_s},
          {"verdict", clean(experiment.verdict)},
          {"contenders", std::move(contenders)}};
}

}  // namespace bakeoff::exports
