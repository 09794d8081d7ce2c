// `bakeoff run`: options to a Session (run/session.h), which does everything, then the report. The launcher
// of processes is started before anything else, while the program is small and has one thread. Two hidden
// options serve heats in other processes: --heats-by hands each heat to a command, --serve-heat is what such
// a command runs.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "base/clock.h"
#include "base/files.h"
#include "base/texts.h"
#include "cli/command.h"
#include "cli/console.h"
#include "cli/index_run.h"
#include "cli/output.h"
#include "cli/recipe_options.h"
#include "cli/shared_options.h"
#include "cli/surroundings.h"
#include "cli/usage.h"
#include "cli/why_accounts.h"
#include "proc/interrupt.h"
#include "proc/launcher.h"
#include "recipe/recipe.h"
#include "run/budget_error.h"
#include "run/heats_by_command.h"
#include "run/races.h"
#include "run/taken_profile.h"
#include "study/all/studies.h"
#include "table/numbers.h"
#include "tune/why.h"

namespace bakeoff::cli {

struct RunOptions {
  fs::path recipe = {};
  RecipeChanges changes = {};
  fs::path out = {};     // empty: runs/<recipe>-<date>
  fs::path resume = {};  // the run to continue
  Budget budget = {};
  std::string format = "text";
  bool why = false;           // race the runner-up's settings afterwards
  bool prove_again = false;   // do not reuse proofs of earlier runs
  std::string baseline = {};  // id of a contender, in place of the recipe's baseline
  std::string profile = {};   // as add_profile() says
  // For fleets and tests. A command that runs the heats (run/heats_by_command.h), its words with spaces between them;
  // and the other side: the folder of a run, the file of an order and that of its result.
  std::string heats_by = {};
  std::vector<fs::path> serve_heat = {};
};

namespace {

// A race that is not decided within a day is not worth its time.
constexpr double kLongestRun = 24 * 60;  // minutes

// A budget in pairs has no limit in time, and on a resumed run counts from where that run stands.
void apply(const Budget& wanted, int64_t ran, recipe::Budget& budget) {
  if (wanted.until_decided)
    budget = {.minutes = kLongestRun, .heats = std::numeric_limits<int64_t>::max(), .until_decided = true};
  if (wanted.minutes > 0) {
    budget.minutes = wanted.minutes;
    budget.includes_studies = true;
  }
  if (wanted.pairs > 0) budget = {.minutes = recipe::Budget::kNoLimit, .heats = ran + wanted.pairs};
}

// An error that names the recipe's budget names --budget instead where that states it.
Error of_option(const Error& error, const recipe::Recipe& recipe, const Budget& wanted) {
  const bool stated = wanted.minutes > 0 || wanted.pairs > 0;
  return stated ? run::of_budget(error, recipe, {"minutes", "heats"}, "--budget") : error;
}

// What the budget does not limit, said before anything starts; empty: it limits all.
std::string beyond_the_budget(const recipe::Recipe& recipe) {
  const recipe::Budget& budget = recipe.budget;
  const std::vector<std::string> wanted = wanted_studies(recipe);
  if (wanted.empty() || budget.unlimited_time() || budget.until_decided || budget.includes_studies) return "";
  return fmt::format(
      "the recipe's budget of {:g} min is that of proofs and race; after it {} take{} the time needed "
      "(--budget TIME limits all)",
      budget.minutes, join(wanted, ", "), wanted.size() == 1 ? "s" : "");
}

Result<run::Session> prepare(const RunOptions& options, const run::Surroundings& with) {
  if (!options.resume.empty()) {
    TRY(run::Session session, run::Session::reopen(options.resume, with));
    TRY(const std::vector<Trial> trials, session.plan().directory.read<Trial>());
    int64_t ran = 0;
    for (const Trial& trial : trials) ran = std::max<int64_t>(ran, trial.heat);
    recipe::Budget budget = session.plan().recipe.budget;
    apply(options.budget, ran, budget);
    session.limit(budget);
    if (!options.baseline.empty()) CHECK_OK(recipe::check_baseline(session.plan().recipe, options.baseline));
    return session;
  }
  TRY(recipe::Recipe recipe, chosen_recipe(options.recipe, options.changes));
  apply(options.budget, 0, recipe.budget);
  if (!options.baseline.empty()) {
    CHECK_OK(recipe::check_baseline(recipe, options.baseline));
    recipe.baseline = options.baseline;
  }
  if (const Status enough = check_budget(recipe); !enough)
    return of_option(enough.error(), recipe, options.budget);
  const auto calibration = run::take_profile(options.profile, recipe, with.tell.line);
  if (!calibration) return of_option(calibration.error(), recipe, options.budget);
  if (const std::string how = environments_to_make(recipe, with.interpreters); !how.empty())
    with.tell.line(how);
  if (const std::string beyond = beyond_the_budget(recipe); !beyond.empty()) with.tell.line(beyond);
  const fs::path folder = options.out.empty() ? dated_folder(recipe.name) : options.out;
  return run::Session::make(recipe, folder, with, *calibration);
}

// What a new run's budget that is too short for all leaves out, by what contenders take on a machine with two processors;
// empty: it may hold a heat of each.
std::string left_out(const run::Session& session) {
  constexpr double kHeat = 3;  // seconds of a contender
  const auto count = static_cast<double>(std::ranges::count_if(
      session.plan().lanes, [](const Lane& lane) { return !lane.failure.has_value(); }));
  const double all_s = count * (kProofSeconds + kHeat);
  if (count < 3 || all_s <= session.left_s()) return "";
  return fmt::format(
      "{:.0f} contenders: it takes about {} until each is proven and has had a heat, less where proofs are kept; in "
      "{} some will have none",
      count, table::duration(1e3 * all_s), table::duration(1e3 * session.left_s()));
}

// The runner-up's settings raced one by one, in the run's folder "why", and what its steps and the leader's do; it gets as
// much time again as the run, 15 minutes at most.
Status ask_why(const run::Session& session, const run::Surroundings& with) {
  const Plan& plan = session.plan();
  TRY(const Summary summary, session.summary());
  run::RealRaces races(with);
  TRY(auto found,
      tune::why(plan.recipe, summary, tune::this_machine(), races, plan.directory.path() / "why"));
  if (!found) {
    with.tell.line("why: no contender is certainly slower than the leader");
    return Done{};
  }
  CHECK_OK(observe_accounts(plan, *found, with.tell.line));
  return plan.directory.append(*found);
}

// After a table without a row: what all its reasons come to.
void say_what_to_make(const Plan& plan, const fs::path& config) {
  const auto interpreters = find_interpreters(config);
  if (!interpreters) return;
  if (const std::string how = environments_to_make(plan.recipe, *interpreters); !how.empty())
    note("bakeoff: " + how);
}

int run(const RunOptions& options, const fs::path& config) {
  const int64_t begin = monotonic_clock().now_ns();
  if (const auto started = proc::start_launcher(); !started) return fail(started.error());
  std::optional<run::Session> session;
  {
    ConsoleProgress progress;
    auto with = surroundings(config, progress);
    if (!with) return fail(with.error());
    with->begin_ns = begin;
    if (options.prove_again) with->proofs.clear();
    run::HeatsByCommand elsewhere(split(options.heats_by, " "));
    if (!options.heats_by.empty()) with->heats = &elsewhere;
    auto prepared = prepare(options, *with);
    if (!prepared) return fail(prepared.error());
    session.emplace(std::move(*prepared));
    for (const std::string& note : session->plan().manifest.notes) with->tell.line(note);
    with->tell.line(fmt::format("run directory: {}", session->plan().directory.path().string()));
    if (std::isfinite(session->left_s()) && !session->plan().recipe.budget.until_decided)
      with->tell.line(longest_text(session->left_s()));
    if (const std::string some = left_out(*session); options.resume.empty() && !some.empty())
      with->tell.line(some);
    const auto done = session->carry_out();
    if (!done && !proc::interrupted()) return fail(done.error());
    if (options.why && !proc::interrupted()) {
      if (const auto asked = ask_why(*session, *with); !asked && !proc::interrupted())
        return fail(asked.error());
    }
  }
  auto summary = session->summary();
  if (!summary) return fail(summary.error());
  const Plan& plan = session->plan();
  if (!options.baseline.empty()) summary->baseline = options.baseline;
  summary->interrupted = proc::interrupted();
  if (plan.recipe.budget.until_decided && !summary->outlooks.empty() && !summary->interrupted)
    note("bakeoff: stopped undecided: to decide would take more than 24 hours in all");
  index_run(plan.directory.path());
  const int code = present(*summary, options.format, plan.directory.path() / "report.html");
  if (summary->ranked.empty()) say_what_to_make(plan, config);
  return code;
}

int serve_heat(const std::vector<fs::path>& files, const fs::path& config) {
  if (const auto started = proc::start_launcher(); !started) return fail(started.error());
  ConsoleProgress progress;
  const auto with = surroundings(config, progress);
  if (!with) return fail(with.error());
  const auto done = run::run_ordered_heat(files[0], files[1], files[2], with->interpreters, with->sensed);
  return done ? 0 : fail(done.error());
}

void add_limits(CLI::App& sub, Budget& budget) {
  add_budget(
      sub,
      [&budget](const Budget& stated) {
        budget.minutes = stated.minutes;
        budget.pairs = stated.pairs;
      },
      kTimeOrPairs,
      "time of the whole command, proofs included (90s, 3m, 1h; 6 is 6 minutes), or number of paired blocks "
      "(20pairs), instead of the recipe's [budget]");
  sub.add_option_function<std::string>(
         "--until", [&budget](const std::string&) { budget.until_decided = true; },
         "decided: race until every contender is decided, without a limit; Ctrl-C ends it with what is known")
      ->type_name("WHEN")
      ->check(one_of({"decided"}));
}

void check_usage(const RunOptions& options) {
  if (options.recipe.empty() && options.resume.empty() && options.serve_heat.empty())
    misuse(
        "name a recipe",
        "for example `bakeoff run mnist_cnn` (`bakeoff recipes` lists those inside this program), or --resume DIR");
  if (!options.changes.empty() && !options.resume.empty())
    misuse(fmt::format("{} changes a recipe, and --resume goes on with the run's own",
                       options.changes[0].option),
           "leave out one of the two");
  if (options.budget.until_decided && (options.budget.minutes > 0 || options.budget.pairs > 0))
    misuse("--until decided races without a limit, and --budget states one", "leave out one of the two");
}

Action add_run(CLI::App& sub) {
  const auto options = std::make_shared<RunOptions>();
  auto* recipe = sub.add_option("recipe", options->recipe, kRecipeDoc);
  add_recipe_options(sub, options->changes);
  sub.add_option("--out", options->out, "run directory; default runs/<recipe>-<date>");
  auto* resume = sub.add_option("--resume", options->resume, "continue an interrupted or undecided run");
  add_limits(sub, options->budget);
  add_format(sub, options->format);
  sub.add_flag(
      "--why", options->why,
      "afterwards race the runner-up with its settings changed one by one, and say which part of the gap "
      "each is");
  sub.add_flag("--prove-again", options->prove_again,
               "do not reuse parity proofs of earlier runs with the same inputs");
  add_profile(sub, options->profile);
  add_baseline(sub, options->baseline);
  recipe->excludes(resume);
  sub.add_option("--heats-by", options->heats_by)->group("");
  sub.add_option("--serve-heat", options->serve_heat)->expected(3)->group("");
  sub.callback([options] { check_usage(*options); });
  return [options](const Invocation& line) {
    return options->serve_heat.empty() ? run(*options, line.config)
                                       : serve_heat(options->serve_heat, line.config);
  };
}

}  // namespace

const Command kRun = {"run", "Prove that the contenders of a recipe compute the same, race them and report",
                      "bakeoff run mnist_cnn --budget 6m", add_run};

}  // namespace bakeoff::cli
