#include "tune/tune.h"

#include <fmt/format.h>
#include <sched.h>

#include "base/files.h"
#include "cli/carry_out.h"
#include "cli/options.h"
#include "cli/output.h"
#include "environments/environments.h"
#include "proc/interrupt.h"
#include "proc/launcher.h"
#include "sample/gpu_sensor.h"
#include "summary/summarise.h"
#include "worker/grants.h"

namespace bakeoff::cli {
namespace {

tune::Machine this_machine_to_tune() {
  cpu_set_t set;
  CPU_ZERO(&set);
  tune::Machine machine;
  if (sched_getaffinity(0, sizeof set, &set) == 0) machine.processors = CPU_COUNT(&set);
  machine.gpu = fs::exists("/dev/nvidia0");
  machine.allocators = {"tuned"};
  for (const char* name : {"jemalloc", "mimalloc", "tcmalloc"})
    if (allocator_library(name, "/")) machine.allocators.emplace_back(name);
  return machine;
}

// One race in a folder of its own; one that the folder holds already goes on where it stands.
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

Result<tune::Outcome> tuned(const TuneOptions& options, const fs::path& config, const fs::path& folder,
                            recipe::Recipe& recipe) {
  ConsoleProgress progress;
  TRY(const Interpreters interpreters, find_interpreters(config));
  TRY(const Texts calibration, use_profile(options.profile, recipe, progress));
  recipe.budget.until_decided = false;
  const tune::RunRace race = [&](const recipe::Recipe& one, const std::string& name) {
    return raced(one, folder / name, interpreters, calibration, progress);
  };
  return tune::tune(recipe, this_machine_to_tune(), options.minutes, race, progress.lines());
}

Status write_outcome(const tune::Outcome& outcome, const recipe::Recipe& recipe, const fs::path& folder) {
  CHECK_OK(write_file(folder / "tune.json", tune::to_json(outcome)));
  TRY(const std::string text, tune::best_recipe(recipe.text, outcome));
  return write_file(folder / "best.toml", text);
}

}  // namespace

int tune(const TuneOptions& options, const fs::path& config) {
  if (const auto started = proc::start_launcher(); !started) return fail(started.error());
  auto recipe = recipe::load(options.recipe);
  if (!recipe) return fail(recipe.error());
  const fs::path folder = options.out.empty() ? dated_folder("tune-" + recipe->name) : options.out;
  std::error_code failed;
  fs::create_directories(folder, failed);
  if (failed)
    return fail({.message = fmt::format("cannot make '{}': {}", folder.string(), failed.message())});
  const auto outcome = tuned(options, config, folder, *recipe);
  if (!outcome) return fail(outcome.error());
  if (const auto written = write_outcome(*outcome, *recipe, folder); !written) return fail(written.error());
  print(options.format == "json" ? tune::to_json(*outcome) : tune::to_text(*outcome, output_width()));
  if (proc::interrupted() || outcome->best.ranked.empty()) return proc::interrupted() ? kInterrupted : 1;
  if (options.format == "json") return 0;
  const int code = present(outcome->best, "text", folder / "report.html");
  print(fmt::format("{}\n{}\n", (folder / "best.toml").string(),
                    (folder / "best" / "scripts" / outcome->best.ranked[0].contender.file).string()));
  return code;
}

}  // namespace bakeoff::cli
