#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <optional>

#include "base/clock.h"
#include "base/files.h"
#include "cli/console.h"
#include "cli/options.h"
#include "cli/output.h"
#include "lab/batch_search.h"
#include "lab/clock_keeper.h"
#include "lab/environments.h"
#include "lab/fit.h"
#include "lab/host.h"
#include "lab/largest_batch.h"
#include "lab/latency.h"
#include "lab/plan.h"
#include "lab/profile.h"
#include "lab/promise.h"
#include "lab/prove_all.h"
#include "lab/race.h"
#include "lab/summarise.h"
#include "lab/target.h"
#include "proc/interrupt.h"
#include "proc/launcher.h"
#include "recipe/recipe.h"

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

// A budget in pairs has no limit in time, and on a resumed run counts from where that run stands.
void apply(const Budget& wanted, int64_t ran, recipe::Budget& budget) {
  if (wanted.minutes > 0) budget.minutes = wanted.minutes;
  if (wanted.pairs > 0) budget = {.minutes = recipe::Budget::kNoLimit, .heats = ran + wanted.pairs};
}

// What the machine's profile says about the race, before it starts; the recipe takes its controls over.
Result<lab::Texts> use_profile(const RunOptions& options, recipe::Recipe& recipe, Progress& progress) {
  if (options.profile == "none") return lab::Texts{};
  const fs::path file =
      options.profile.empty() ? lab::profile_file(bakeoff_home()) : fs::path(options.profile);
  if (options.profile.empty() && !fs::exists(file)) {
    progress.lines()(
        "this machine has no profile: `bakeoff calibrate` makes one, lowers the noise and predicts the time");
    return lab::Texts{};
  }
  TRY(const lab::Profile profile, lab::load_profile(file, lab::read_host()));
  lab::Texts record = {{"profile", file.string()},
                       {"measured", profile.measured},
                       {"with", profile.framework + ", " + profile.work}};
  for (const auto& [key, value] : lab::take_over(profile, recipe)) record["taken: race." + key] = value;
  const size_t cpus = lab::allowed_cpus().size();
  const auto ceiling = lab::promised_ceiling(profile, recipe, cpus);
  if (ceiling && !recipe.race.stated.contains("noise_ceiling")) {
    recipe.race.noise_ceiling = *ceiling;
    record[lab::kTakenCeiling] = fmt::format("{:.3f}", *ceiling);
  }
  if (const auto prediction = lab::predict(profile, recipe, cpus)) {
    CHECK_OK(lab::check_prediction(*prediction, recipe));
    record["prediction"] = prediction->text;
    progress.lines()(prediction->text);
  }
  return record;
}

Result<lab::Plan> prepare(const RunOptions& options, const fs::path& config, Progress& progress) {
  TRY(const auto interpreters, find_interpreters(config));
  if (!options.resume.empty()) {
    TRY(lab::Plan plan, lab::reopen_plan(options.resume, interpreters));
    TRY(const std::vector<lab::Trial> trials, plan.directory.trials());
    int64_t ran = 0;
    for (const lab::Trial& trial : trials) ran = std::max<int64_t>(ran, trial.heat);
    apply(options.budget, ran, plan.recipe.budget);
    return plan;
  }
  TRY(recipe::Recipe recipe, recipe::load(options.recipe));
  apply(options.budget, 0, recipe.budget);
  CHECK_OK(lab::check_budget(recipe));
  TRY(const lab::Texts calibration, use_profile(options, recipe, progress));
  const fs::path folder = options.out.empty() ? dated_folder(recipe.name) : options.out;
  return lab::make_plan(recipe, folder, interpreters, progress.lines(), calibration);
}

// Of the budget, for what follows the race; empty where there is no limit in time.
std::optional<double> left_s(const recipe::Budget& budget, int64_t begin) {
  if (budget.unlimited_time()) return std::nullopt;
  return std::max(0.0, budget.minutes * 60 - seconds_since(begin));
}

// For tests: sensors are files below another folder than /, and GPUs those of another library than NVIDIA's.
void look_elsewhere(lab::Plan& plan) {
  if (const char* root = std::getenv("BAKEOFF_SENSORS"); root && *root) plan.sensors = root;
  if (const char* library = std::getenv("BAKEOFF_NVML"); library && *library) plan.gpu_library = library;
}

// Gate and race; everything found is in the run directory afterwards, whatever ended them.
Status carry_out(lab::Plan& plan, Progress& progress) {
  TRY(std::vector<lab::Parity> parities, plan.directory.parities());
  TRY(parities, lab::gate_all(plan, std::move(parities), progress.race()));
  if (proc::interrupted()) return Done{};
  TRY(std::vector<lab::Trial> trials, plan.directory.trials());
  std::optional<lab::ClockKeeper> clocks;
  if (const int64_t mhz = plan.recipe.race.gpu_clock_mhz; mhz > 0) {
    clocks.emplace(mhz, plan.gpu_library);
    plan.gpu_clock = clocks->words();
    progress.lines()(fmt::format("GPUs' clocks: {}", plan.gpu_clock));
  }
  const int64_t begin = monotonic_clock().now_ns();
  CHECK_OK(lab::race(plan, parities, std::move(trials), progress.race()));
  TRY(trials, plan.directory.trials());
  if (!proc::interrupted()) CHECK_OK(lab::measure_latencies(plan, parities, trials, progress.race()));
  if (!proc::interrupted()) {
    CHECK_OK(lab::train_to_target(plan, parities, trials, left_s(plan.recipe.budget, begin), progress.lines(),
                                  progress.race()));
  }
  if (!proc::interrupted()) CHECK_OK(lab::fit(plan, parities, trials, progress.lines(), progress.race()));
  if (proc::interrupted()) return Done{};
  const lab::LaneAt lanes = lab::lanes_of(plan, progress.lines());
  CHECK_OK(lab::search_batches(plan, parities, trials, lanes, progress.race()));
  return lab::search_largest(plan, parities, trials, lanes, progress.race());
}

}  // namespace

Result<lab::Interpreters> find_interpreters(const fs::path& config) {
  const fs::path home = bakeoff_home();
  TRY(const auto loaded, lab::load_config(config, home, lab::environment_names()));
  lab::Interpreters interpreters;
  for (const lab::Environment& e : lab::list_environments({.home = home, .config = loaded})) {
    std::string identity = e.python.string();
    for (const auto& [package, version] : e.versions) identity += "\n" + package + " " + version;
    interpreters[e.name] = {e.python, e.why_not(), identity};
  }
  return interpreters;
}

int run(const RunOptions& options, const fs::path& config) {
  if (const auto started = proc::start_launcher(); !started) return fail(started.error());
  std::optional<lab::Plan> plan;
  {
    Progress progress;
    auto prepared = prepare(options, config, progress);
    if (!prepared) return fail(prepared.error());
    plan.emplace(std::move(*prepared));
    look_elsewhere(*plan);
    if (!options.prove_again) plan->proofs = bakeoff_home() / "proofs";
    for (const std::string& note : plan->manifest.notes) progress.lines()(note);
    progress.lines()(fmt::format("run directory: {}", plan->directory.path().string()));
    const auto done = carry_out(*plan, progress);
    if (!done && !proc::interrupted()) return fail(done.error());
  }
  auto summary = lab::summarise(plan->directory);
  if (!summary) return fail(summary.error());
  summary->interrupted = proc::interrupted();
  return present(*summary, options.format, plan->directory.path() / "report.html");
}

}  // namespace bakeoff::cli
