#include "cli/carry_out.h"

#include <fmt/format.h>

#include <cstdlib>
#include <ctime>
#include <optional>

#include "base/clock.h"
#include "base/files.h"
#include "base/texts.h"
#include "calibrate/profile.h"
#include "cli/index_run.h"
#include "environments/environments.h"
#include "evidence/promise.h"
#include "gate/prove_all.h"
#include "machine/clock_keeper.h"
#include "machine/host.h"
#include "proc/interrupt.h"
#include "race/race.h"
#include "recipe/schema.h"
#include "records/names.h"
#include "sample/machine_limits.h"
#include "study/all/studies.h"
#include "summary/summarise.h"
#include "table/numbers.h"
#include "worker/grants.h"

namespace bakeoff::cli {
namespace {

// Of a budget that includes them; a race that ends earlier leaves them more.
constexpr double kShareOfStudies = 0.5;
// Of the rest, kept for heats: what is proven by then is raced.
constexpr double kShareOfHeats = 0.4;

// Every contender's proof. A new run has its first heat as soon as two contenders are proven, so that a first
// standing is known within a minute.
Result<std::vector<Parity>> prove_contenders(Plan& plan, const Watch& watch, const Progress& progress) {
  TRY(std::vector<Parity> parities, plan.directory.read<Parity>());
  TRY(const std::vector<Trial> trials, plan.directory.read<Trial>());
  TRY(Gate gate, Gate::open(plan, std::move(parities)));
  if (trials.empty()) {
    CHECK_OK(gate.prove(watch, 2));  // two can be compared, however short the budget
    if (!proc::interrupted() && !gate.finished()) CHECK_OK(first_heat(plan, gate.parities(), watch));
  }
  const double kept =
      plan.recipe.budget.unlimited_time() ? 0 : kShareOfHeats * (left_s(plan) + seconds_since(plan.begin_ns));
  if (!proc::interrupted()) CHECK_OK(gate.prove(watch, Gate::kAll, [&] { return left_s(plan) - kept; }));
  if (!proc::interrupted() && !gate.finished())
    progress(fmt::format(
        "the budget of {} left no time to prove every contender; `bakeoff run --resume {} --budget TIME` "
        "proves the others",
        table::duration(60e3 * plan.recipe.budget.minutes), plan.directory.path().string()));
  return gate.parities();
}

}  // namespace

fs::path dated_folder(const std::string& name) {
  const std::time_t now = std::time(nullptr);
  std::tm local{};
  localtime_r(&now, &local);
  char date[32];
  std::strftime(date, sizeof date, "%Y%m%d-%H%M%S", &local);
  return fs::path("runs") / (name + "-" + date);
}

Error of_budget(Error error, const recipe::Recipe& recipe, const std::vector<std::string>& keys,
                const std::string& instead) {
  for (const std::string& key : keys)
    if (error.where == recipe::where(recipe, "budget", key)) error.where = instead;
  return error;
}

Result<Texts> use_profile(const std::string& profile_name, recipe::Recipe& recipe,
                          ConsoleProgress& progress) {
  if (profile_name == "none") return Texts{};
  const fs::path file = profile_name.empty() ? profile_file(bakeoff_home()) : fs::path(profile_name);
  if (profile_name.empty() && !fs::exists(file)) {
    progress.lines()(
        "no noise profile for this machine; `bakeoff calibrate` creates one (less noise, predicted time)");
    return Texts{};
  }
  TRY(const Profile profile, load_profile(file, read_host()));
  Texts record = {{"profile", file.string()},
                  {"measured", profile.measured},
                  {"with", profile.framework + ", " + profile.work}};
  for (const auto& [key, value] : take_over(profile, recipe)) record["taken: race." + key] = value;
  const size_t cpus = sample::allowed_cpus().size();
  const auto ceiling = promised_ceiling(profile, recipe, cpus);
  if (ceiling && !recipe.race.stated.contains("noise_ceiling")) {
    recipe.race.noise_ceiling = *ceiling;
    record[kTakenCeiling] = fmt::format("{:.3f}", *ceiling);
  }
  if (const auto prediction = predict(profile, recipe, cpus)) {
    CHECK_OK(check_prediction(*prediction, recipe));
    record["prediction"] = prediction->text;
    progress.lines()(prediction->text);
  }
  return record;
}

void apply_sensor_variables(Plan& plan) {
  if (const char* root = std::getenv("BAKEOFF_SENSORS"); root && *root) plan.sensors = root;
  if (const char* library = std::getenv("BAKEOFF_NVML"); library && *library) plan.gpu_library = library;
}

// One after another; where the budget includes them, each has its share of what is left.
Status carry_out_studies(const Plan& plan, const std::vector<Parity>& parities,
                         const std::vector<Trial>& trials, ConsoleProgress& progress) {
  const recipe::Budget& budget = plan.recipe.budget;
  size_t left = wanted_studies(plan.recipe).size();
  std::vector<std::string> unfinished;
  for (const Study& study : studies()) {
    if (proc::interrupted()) break;
    if (!study.wanted(plan.recipe)) continue;
    const double seconds = left_s(plan) / static_cast<double>(budget.includes_studies ? left-- : 1);
    const int64_t begin = monotonic_clock().now_ns();
    bool spent = false;
    const auto over = [&] {
      if (proc::interrupted()) return true;
      spent = spent || (budget.includes_studies && seconds_since(begin) > seconds);
      return spent;
    };
    CHECK_OK(study.run({.plan = plan,
                        .parities = parities,
                        .trials = trials,
                        .left_s = budget.unlimited_time() ? std::nullopt : std::optional(seconds),
                        .over = over,
                        .progress = progress.lines(),
                        .watch = with_names(plan.manifest.contenders, progress.race())}));
    if (spent) unfinished.push_back(fmt::format("[{}]", study.name));
  }
  if (!unfinished.empty()) {
    progress.lines()(
        fmt::format("the budget of {:g} min is spent before the end of {}; `bakeoff run --resume {} "
                    "--budget TIME` goes on",
                    budget.minutes, join(unfinished, ", "), plan.directory.path().string()));
  }
  return Done{};
}

Status carry_out(Plan& plan, ConsoleProgress& progress) {
  note_commit(plan.directory);
  const recipe::Budget& budget = plan.recipe.budget;
  if (budget.includes_studies && !wanted_studies(plan.recipe).empty())
    plan.studies_s = kShareOfStudies * 60 * budget.minutes;
  std::optional<ClockKeeper> clocks;
  if (const int64_t mhz = plan.recipe.race.gpu_clock_mhz; mhz > 0) {
    clocks.emplace(mhz, plan.gpu_library);
    plan.gpu_clock = clocks->status();
    progress.lines()(fmt::format("GPUs' clocks: {}", plan.gpu_clock));
  }
  const Watch watch = with_names(plan.manifest.contenders, progress.race());
  TRY(const std::vector<Parity> parities, prove_contenders(plan, watch, progress.lines()));
  if (proc::interrupted()) return Done{};
  TRY(std::vector<Trial> trials, plan.directory.read<Trial>());
  CHECK_OK(race(plan, parities, std::move(trials), watch));
  TRY(trials, plan.directory.read<Trial>());
  plan.studies_s = 0;
  return carry_out_studies(plan, parities, trials, progress);
}

tune::Machine this_machine_to_tune() {
  tune::Machine machine;
  machine.processors = static_cast<int64_t>(sample::allowed_cpus().size());
  machine.gpu = fs::exists("/dev/nvidia0");
  for (const emit::Setting& setting : recipe::common_settings()) {
    if (setting.name != "allocator") continue;
    for (const std::string& name : setting.values)
      if (name == "tuned" || (name != "default" && allocator_library(name)))
        machine.allocators.push_back(name);
  }
  return machine;
}

Result<Summary> raced(const recipe::Recipe& recipe, const fs::path& folder, const Interpreters& interpreters,
                      const Texts& calibration, ConsoleProgress& progress) {
  const int64_t begin = monotonic_clock().now_ns();
  auto plan = fs::exists(folder) ? reopen_plan(folder, interpreters)
                                 : make_plan(recipe, folder, interpreters, progress.lines(), calibration);
  if (!plan) return plan.error();
  plan->recipe.budget = recipe.budget;
  plan->begin_ns = begin;
  plan->proofs = bakeoff_home() / "proofs";
  apply_sensor_variables(*plan);
  progress.limit(left_s(*plan));
  CHECK_OK(carry_out(*plan, progress));
  return summarise(plan->directory);
}

}  // namespace bakeoff::cli
