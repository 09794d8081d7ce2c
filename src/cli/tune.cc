#include "tune/tune.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/files.h"
#include "cli/command.h"
#include "cli/engine_options.h"
#include "cli/explain.h"
#include "cli/output.h"
#include "cli/recipe_options.h"
#include "cli/shared_options.h"
#include "cli/surroundings.h"
#include "cli/usage.h"
#include "environments/environments.h"
#include "proc/interrupt.h"
#include "proc/launcher.h"
#include "recipe/shipped.h"
#include "run/taken_profile.h"

namespace bakeoff::cli {

struct TuneOptions {
  fs::path recipe = {};  // or a script
  RecipeChanges changes = {};
  fs::path out = {};            // empty: runs/tune-<recipe>-<date>; races that it has are not run again
  double minutes = 20;          // of all races together
  bool half_precision = false;  // of a recipe: try bfloat16, too
  std::string format = "text";
  std::string profile = {};  // as add_profile() says
  EngineOptions engine = {};
  std::string framework = {};  // of a script: as of ExplainOptions, like the next two
  fs::path python = {};
  std::vector<std::string> arguments = {};
};

namespace {

Result<tune::Outcome> tuned(const TuneOptions& options, const fs::path& config, const fs::path& folder,
                            recipe::Recipe& recipe) {
  ConsoleProgress progress;
  TRY(const run::Surroundings with, surroundings(config, progress));
  if (const std::string how = environments_to_make(recipe, with.interpreters); !how.empty())
    with.tell.line(how);
  TRY(std::unique_ptr<run::Races> races, fleet_of(options.engine, config, folder, options.profile, with));
  with.tell.line(races ? planned_for(60 * options.minutes) : longest_text(60 * options.minutes));
  if (!races) {
    TRY(const Texts calibration, run::take_profile(options.profile, recipe, with.tell.line));
    races = std::make_unique<run::RealRaces>(with, calibration);
  }
  CHECK_OK(make_folder(folder));
  recipe.budget.until_decided = false;
  return tune::tune(recipe, tune::this_machine(), options.minutes, *races, folder, with.tell.line);
}

Status write_outcome(const tune::Outcome& outcome, const recipe::Recipe& recipe, const fs::path& folder) {
  CHECK_OK(write_file(folder / "tune.json", tune::to_json(outcome)));
  TRY(const std::string text, tune::best_recipe(recipe.text, outcome));
  // A recipe inside the program names files that are there, too.
  if (recipe.shipped)
    for (const std::string& file : recipe::shipped_files_of(text))
      CHECK_OK(write_file(folder / file, *recipe::shipped_file(file)));
  return write_file(folder / "best.toml", text);
}

ExplainOptions of_script(const TuneOptions& options) {
  return {.scripts = {options.recipe.string()},
          .arguments = options.arguments,
          .tuning = true,
          .framework = options.framework,
          .python = options.python,
          .out = options.out,
          .seconds = 60 * options.minutes,
          .format = options.format};
}

int tune(const TuneOptions& options, const fs::path& config) {
  if (options.recipe.extension() == ".py") {
    if (!options.changes.empty())
      return fail({.message = fmt::format("tune: {} changes a recipe, and '{}' is a script",
                                          options.changes[0].option, options.recipe.string()),
                   .remedy = "leave it out; arguments of the script stand behind --"});
    if (options.engine.chosen())
      return fail(
          {.message = fmt::format("a fleet races recipes, and '{}' is a script", options.recipe.string()),
           .where = "--engine",
           .remedy = "leave it out"});
    return explain(of_script(options), config);
  }
  if (const auto started = proc::start_launcher(); !started) return fail(started.error());
  auto recipe = chosen_recipe(options.recipe, options.changes);
  if (!recipe) return fail(recipe.error());
  if (options.half_precision) *recipe = tune::with_half_precision(std::move(*recipe));
  const fs::path folder = options.out.empty() ? dated_folder("tune-" + recipe->name) : options.out;
  const auto outcome = tuned(options, config, folder, *recipe);
  if (!outcome) return fail(outcome.error());
  if (const auto written = write_outcome(*outcome, *recipe, folder); !written) return fail(written.error());
  print(options.format == "json" ? tune::to_json(*outcome) : tune::to_text(*outcome, output_width()));
  if (proc::interrupted() || outcome->best.ranked.empty()) return proc::interrupted() ? kInterrupted : 1;
  if (options.format == "json") return 0;
  const Contender& best = tune::winner(outcome->best)->contender;
  const int code = present(outcome->best, "text", folder / "report.html");
  print(fmt::format("{}\n{}\n", (folder / "best.toml").string(),
                    (folder / "best" / "scripts" / best.script).string()));
  return code;
}

Action add_tune(CLI::App& sub) {
  const auto options = std::make_shared<TuneOptions>();
  sub.add_option("recipe", options->recipe,
                 std::string(kRecipeDoc) + ", or a training script (.py) whose arguments stand behind --")
      ->required();
  add_recipe_options(sub, options->changes);
  sub.add_option("--minutes", options->minutes, "time of all races together, about")
      ->check(number_from(at_least(1.0), 10000.0))
      ->capture_default_str();
  sub.add_flag(
      "--half-precision", options->half_precision,
      "of a recipe: tune and race bfloat16 as well, as a group of its own, since it changes numbers");
  sub.add_option("--out", options->out,
                 "folder of its races; default runs/tune-<recipe>-<date>. Races that it has are continued");
  sub.add_option("--format", options->format, "text or json")->check(one_of({"text", "json"}));
  add_interpreter(sub, options->framework, options->python);
  add_profile(sub, options->profile);
  add_engine_options(sub, options->engine);
  return [options](const Invocation& line) {
    options->arguments.assign(line.tail.begin(), std::find(line.tail.begin(), line.tail.end(), "--"));
    return tune(*options, line.config);
  };
}

}  // namespace

const Command kTune = {"tune",
                       "Find the best setting of every framework of a recipe, or of a training script",
                       "bakeoff tune mnist_cnn --minutes 30",
                       add_tune,
                       Home::kNeeded,
                       Tail::kBehindDashes};

}  // namespace bakeoff::cli
