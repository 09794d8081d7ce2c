#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <limits>
#include <optional>

#include "base/clock.h"
#include "base/files.h"
#include "calibrate/profile.h"
#include "cli/console.h"
#include "cli/options.h"
#include "cli/output.h"
#include "environments/environments.h"
#include "evidence/promise.h"
#include "gate/prove_all.h"
#include "machine/clock_keeper.h"
#include "machine/host.h"
#include "plan/plan.h"
#include "proc/interrupt.h"
#include "proc/launcher.h"
#include "race/race.h"
#include "recipe/recipe.h"
#include "sample/machine_limits.h"
#include "study/all/studies.h"
#include "summary/summarise.h"

namespace bakeoff::cli {
namespace {

fs::path dated_folder(const std::string& name) {
  const std::time_t now = std::time(nullptr);
  std::tm local{};
  localtime_r(&now, &local);
  char date[32];
  std::strftime(date, sizeof date, "%Y%m%d-%H%M%S", &local);
  return fs::path("runs") / (name + "-" + date);
}

// A race that is not decided within a day is not worth its time.
constexpr double kLongestRun = 24 * 60;  // minutes

// A budget in pairs has no limit in time, and on a resumed run counts from where that run stands.
void apply(const Budget& wanted, int64_t ran, recipe::Budget& budget) {
  if (wanted.until_decided)
    budget = {.minutes = kLongestRun, .heats = std::numeric_limits<int64_t>::max(), .until_decided = true};
  if (wanted.minutes > 0) budget.minutes = wanted.minutes;
  if (wanted.pairs > 0) budget = {.minutes = recipe::Budget::kNoLimit, .heats = ran + wanted.pairs};
}

// What the machine's profile says about the race, before it starts; the recipe takes its controls over.
Result<Texts> use_profile(const RunOptions& options, recipe::Recipe& recipe, ConsoleProgress& progress) {
  if (options.profile == "none") return Texts{};
  const fs::path file = options.profile.empty() ? profile_file(bakeoff_home()) : fs::path(options.profile);
  if (options.profile.empty() && !fs::exists(file)) {
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

Result<Plan> prepare(const RunOptions& options, const fs::path& config, ConsoleProgress& progress) {
  TRY(const auto interpreters, find_interpreters(config));
  if (!options.resume.empty()) {
    TRY(Plan plan, reopen_plan(options.resume, interpreters));
    TRY(const std::vector<Trial> trials, plan.directory.read<Trial>());
    int64_t ran = 0;
    for (const Trial& trial : trials) ran = std::max<int64_t>(ran, trial.heat);
    apply(options.budget, ran, plan.recipe.budget);
    return plan;
  }
  TRY(recipe::Recipe recipe, recipe::load(options.recipe));
  apply(options.budget, 0, recipe.budget);
  CHECK_OK(check_budget(recipe));
  TRY(const Texts calibration, use_profile(options, recipe, progress));
  const fs::path folder = options.out.empty() ? dated_folder(recipe.name) : options.out;
  return make_plan(recipe, folder, interpreters, progress.lines(), calibration);
}

// For tests: sensors are files below another folder than /, and GPUs those of another library than NVIDIA's.
void apply_sensor_variables(Plan& plan) {
  if (const char* root = std::getenv("BAKEOFF_SENSORS"); root && *root) plan.sensors = root;
  if (const char* library = std::getenv("BAKEOFF_NVML"); library && *library) plan.gpu_library = library;
}

// Every contender's proof. A new run has its first heat as soon as two contenders are proven, so that a first
// standing is known within a minute.
Result<std::vector<Parity>> prove_contenders(Plan& plan, ConsoleProgress& progress) {
  TRY(std::vector<Parity> parities, plan.directory.read<Parity>());
  TRY(const std::vector<Trial> trials, plan.directory.read<Trial>());
  TRY(Gate gate, Gate::open(plan, std::move(parities)));
  if (trials.empty()) {
    CHECK_OK(gate.prove(progress.race(), 2));
    if (!proc::interrupted() && !gate.finished())
      CHECK_OK(first_heat(plan, gate.parities(), progress.race()));
  }
  if (!proc::interrupted()) CHECK_OK(gate.prove(progress.race()));
  return gate.parities();
}

// Gate, race and studies; everything found is in the run directory afterwards, whatever ended them.
Status carry_out(Plan& plan, ConsoleProgress& progress) {
  std::optional<ClockKeeper> clocks;
  if (const int64_t mhz = plan.recipe.race.gpu_clock_mhz; mhz > 0) {
    clocks.emplace(mhz, plan.gpu_library);
    plan.gpu_clock = clocks->status();
    progress.lines()(fmt::format("GPUs' clocks: {}", plan.gpu_clock));
  }
  TRY(const std::vector<Parity> parities, prove_contenders(plan, progress));
  if (proc::interrupted()) return Done{};
  TRY(std::vector<Trial> trials, plan.directory.read<Trial>());
  CHECK_OK(race(plan, parities, std::move(trials), progress.race()));
  TRY(trials, plan.directory.read<Trial>());
  const bool limited = !plan.recipe.budget.unlimited_time();
  for (const Study& study : studies()) {
    if (proc::interrupted()) break;
    CHECK_OK(study.run({.plan = plan,
                        .parities = parities,
                        .trials = trials,
                        .left_s = limited ? std::optional(left_s(plan)) : std::nullopt,
                        .progress = progress.lines(),
                        .watch = progress.race()}));
  }
  return Done{};
}

}  // namespace

Result<Interpreters> find_interpreters(const fs::path& config) {
  const fs::path home = bakeoff_home();
  TRY(const auto loaded, load_config(config, home, environment_names()));
  Interpreters interpreters;
  for (const Environment& e : list_environments({.home = home, .config = loaded})) {
    std::string identity = e.python.string();
    for (const auto& [package, version] : e.versions) identity += "\n" + package + " " + version;
    interpreters[e.name] = {e.python, e.why_not(), identity};
  }
  return interpreters;
}

int run(const RunOptions& options, const fs::path& config) {
  const int64_t begin = monotonic_clock().now_ns();
  if (const auto started = proc::start_launcher(); !started) return fail(started.error());
  std::optional<Plan> plan;
  {
    ConsoleProgress progress;
    auto prepared = prepare(options, config, progress);
    if (!prepared) return fail(prepared.error());
    plan.emplace(std::move(*prepared));
    plan->begin_ns = begin;
    if (!plan->recipe.budget.until_decided) progress.limit(left_s(*plan));
    apply_sensor_variables(*plan);
    if (!options.prove_again) plan->proofs = bakeoff_home() / "proofs";
    for (const std::string& note : plan->manifest.notes) progress.lines()(note);
    progress.lines()(fmt::format("run directory: {}", plan->directory.path().string()));
    const auto done = carry_out(*plan, progress);
    if (!done && !proc::interrupted()) return fail(done.error());
  }
  auto summary = summarise(plan->directory);
  if (!summary) return fail(summary.error());
  summary->interrupted = proc::interrupted();
  if (plan->recipe.budget.until_decided && !summary->outlooks.empty() && !summary->interrupted)
    std::fputs("bakeoff: stopped undecided: to decide would take more than 24 hours in all\n", stderr);
  return present(*summary, options.format, plan->directory.path() / "report.html");
}

}  // namespace bakeoff::cli
