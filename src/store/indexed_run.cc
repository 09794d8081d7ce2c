// What the index keeps of a run, and above all which results belong to one line of history. Two results do if
// the same thing was measured on the same kind of machine: contender, settings, workload, training, machine
// and what was measured are hashed to the line. Packages are not among them, as their change is what a
// history is to show; with them the hash is the series. Whatever only shapes the race around a process (a
// ceiling of noise, a pause to cool) is no part of either, or every change of it would cut a history in two.
// Hashed parts have their lengths in front, so that no two lists of parts collide.

#include "store/indexed_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <ctime>
#include <nlohmann/json.hpp>

#include "base/json_text.h"
#include "base/sha256.h"
#include "ir/training.h"
#include "plan/recorded_recipe.h"
#include "recipe/recipe.h"
#include "summary/standing.h"
#include "table/text.h"

namespace bakeoff::store {
namespace {

constexpr size_t kDigits = 16;  // of a fingerprint

std::string short_hash(const std::vector<std::string>& parts) {
  Sha256 hash;
  for (const std::string& part : parts) {
    hash.add(std::to_string(part.size()) + ":");
    hash.add(part);
  }
  return hash.hex().substr(0, kDigits);
}

std::string json_of(const Texts& texts) { return dump(nlohmann::ordered_json(texts)); }

// What its process runs with; what only shapes the race around it is no part.
std::string settings_of(const Contender& contender) {
  Texts all(contender.settings.begin(), contender.settings.end());
  for (const auto& [name, value] : contender.controls)
    if (name != "noise_ceiling" && name != "cooldown_seconds") all[name] = value;
  if (!contender.own_script.empty()) all["own script"] = contender.script;
  return json_of(all);
}

// A GPU's name, where the contender computed on one.
std::string device_of(const Row& row) {
  const auto device = row.effective.find("device");
  return device == row.effective.end() || device->second.starts_with("cpu") ? "" : device->second;
}

Series series_of(const Row& row, const Summary& summary, const std::string& workload,
                 const std::string& training) {
  const Contender& contender = row.contender;
  Series s{.name = series_name(summary.title, contender.id),
           .recipe = summary.title,
           .contender = contender.id,
           .framework = contender.framework,
           .settings = settings_of(contender),
           .workload = workload,
           .training = training,
           .machine = machine_class(summary.manifest.host),
           .packages = json_of(row.versions),
           .measured = fmt::format("seconds per step: {}, {}, {}", ir::name(summary.scenario),
                                   ir::name(summary.track), row.group)};
  if (const std::string device = device_of(row); !device.empty()) s.machine += ", " + device;
  const std::vector<std::string> parts = {s.contender, s.settings, s.workload,
                                          s.training,  s.machine,  s.measured};
  s.line = short_hash(parts);
  s.id = short_hash({s.line, s.packages});
  return s;
}

// NaN, and a number that cannot be the time of a step, is not stored.
std::optional<double> seconds(double ms) {
  return std::isfinite(ms) && ms > 0 && ms < 1e12 ? std::optional(ms / 1e3) : std::nullopt;
}

Indexed result_of(const Row& row, Series series) {
  Indexed result{.series = std::move(series),
                 .verdict = row.failure ? word(PairVerdict::kNotRanked) : verdict_of(row),
                 .heats = row.heats,
                 .reason = row.failure ? row.failure->reason : ""};
  if (row.failure) return result;
  if (row.at_least) {
    result.reason = "it looked hopeless and was not timed: the time is a lower bound";
    return result;
  }
  result.seconds = seconds(row.ms_per_step.value);
  result.low = seconds(row.ms_per_step.low);
  result.high = seconds(row.ms_per_step.high);
  if (!result.seconds) result.reason = fmt::format("{} ms is no time of a step", row.ms_per_step.value);
  return result;
}

std::string outcome_of(const Summary& summary) {
  if (!summary.refusal.empty()) return "no verdict";
  if (summary.ranked.empty()) return "nothing ranked";
  return summary.decided ? "decided" : "undecided";
}

std::string clock_note(const Summary& summary, const std::string& first_trial, const std::string& now) {
  const auto started = unix_seconds(summary.manifest.started), here = unix_seconds(now);
  if (started && here && *started > *here + 24 * 3600)
    return fmt::format("it started in the future ({}): a clock was wrong", summary.manifest.started);
  const auto trial = parse_json<nlohmann::json>(first_trial);
  if (!trial.is_object() || !trial.contains("started") || !trial["started"].is_string()) return "";
  const auto heat = unix_seconds(trial["started"].get<std::string>());
  if (heat && started && *heat < *started)
    return "the clock was set back during the run: its first heat began before it";
  return "";
}

}  // namespace

std::optional<int64_t> unix_seconds(const std::string& utc) {
  std::tm time{};
  const char* end = utc.size() == 20 ? ::strptime(utc.c_str(), "%Y-%m-%dT%H:%M:%SZ", &time) : nullptr;
  if (end == nullptr || *end != 0) return std::nullopt;
  return static_cast<int64_t>(::timegm(&time));
}

std::string run_id(int64_t unix_ms, const std::string& hash) {
  constexpr const char* kAlphabet = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";
  std::string id(26, '0');
  auto time = static_cast<uint64_t>(std::max<int64_t>(0, unix_ms));
  for (size_t i = 10; i-- > 0; time /= 32) id[i] = kAlphabet[time % 32];
  for (size_t i = 0; i < 16 && 2 * i + 1 < hash.size(); ++i)
    id[10 + i] = kAlphabet[std::stoul(hash.substr(2 * i, 2), nullptr, 16) % 32];
  return id;
}

std::string series_name(const std::string& recipe, const std::string& contender) {
  return table::one_line(recipe + " " + contender);
}

std::string machine_class(const Host& host) {
  const double gib = static_cast<double>(host.memory_bytes) / (1 << 30);
  return table::one_line(fmt::format("{}, {} CPUs, {:.0f} GiB", host.cpu, host.cpus, gib));
}

Result<IndexedRun> indexed_run(const Summary& summary, const std::vector<Commit>& commits,
                               const std::vector<AcceptedStep>& accepted, const std::string& manifest_text,
                               const std::string& first_trial, const std::string& now) {
  const Manifest& m = summary.manifest;
  const auto started = unix_seconds(m.started);
  if (!started) return Error{fmt::format("started '{}' is no time", table::one_line(m.started))};
  TRY(const recipe::Recipe recipe, recorded_recipe(m));
  IndexedRun run{.id = run_id(*started * 1000, sha256(manifest_text + "\n" + first_trial)),
                 .started = m.started,
                 .host = m.host.name,
                 .machine = machine_class(m.host),
                 .bakeoff_version = m.bakeoff_version,
                 .recipe = m.recipe_name,
                 .recipe_hash = short_hash({m.recipe_text}),
                 .outcome = outcome_of(summary),
                 .note = clock_note(summary, first_trial, now)};
  if (!commits.empty()) {
    run.commit = commits.back().hash;
    run.branch = commits.back().branch;
    run.dirty = commits.back().dirty;
  }
  const std::string workload = short_hash({m.workload_text});
  const std::string training =
      short_hash({ir::dump(recipe.training), m.data_sha256, std::to_string(m.data_rows)});
  for (const auto* rows : {&summary.ranked, &summary.unranked}) {
    for (const Row& row : *rows) {
      Indexed result = result_of(row, series_of(row, summary, workload, training));
      for (const Source& source : summary.sources)
        if (source.file == row.contender.script) result.script = short_hash({source.text});
      for (const AcceptedStep& mark : accepted)
        if (mark.contender == row.contender.id) result.accepted = mark;
      run.results.push_back(std::move(result));
    }
  }
  return run;
}

}  // namespace bakeoff::store
