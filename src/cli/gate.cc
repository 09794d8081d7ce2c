// `bakeoff gate`: is this version slower than that one? For people it prints a table, for CI an exit code, a
// JUnit file, a JSON file and annotations. Each output is written whatever became of the others, and whatever
// the verdict: a job that fails has to show why. Exit code 3 (undecided) is no failure of the code under
// test; what a pipeline makes of it is the pipeline's choice.

#include <fmt/format.h>

#include <cstdlib>
#include <fstream>

#include "base/clock.h"
#include "base/files.h"
#include "base/home.h"
#include "base/temporary_folder.h"
#include "cli/command.h"
#include "cli/console.h"
#include "cli/gate_init.h"
#include "cli/shared_options.h"
#include "cli/usage.h"
#include "cli/versions.h"
#include "environments/runner_files.h"
#include "proc/interrupt.h"
#include "proc/launcher.h"
#include "regression/outputs.h"

namespace bakeoff::cli {
namespace {

struct GateOptions {
  std::string base = {}, head = {};  // commits, folders, interpreters, package versions, scripts or recipes
  std::string target = {};           // script or recipe of both; empty: base and head are the files
  fs::path repo = {};                // empty: the current folder
  double margin = 0.02, alpha = 0.01;
  double budget_s = 600;
  std::string build = {};   // shell command for a checkout
  bool whole = false;       // whole runs instead of steps
  std::string metric = {};  // regular expression of a figure that a script prints; empty: times are compared
  std::string better = {};  // "lower" or "higher": which metric is better
  std::string framework = {};  // of a script: as of ExplainOptions, like the next two
  fs::path python = {};
  std::vector<std::string> arguments = {};
  fs::path json = {}, junit = {}, gitlab = {};  // files; empty: not written
  std::string init = {};                        // "github" or "gitlab": write a workflow, and nothing else
  bool force = false;                           // replace what exists
};

namespace rg = bakeoff::regression;

bool on_github() {
  const char* set = std::getenv("GITHUB_ACTIONS");
  return set != nullptr && std::string_view(set) == "true";
}

// $GITHUB_STEP_SUMMARY is a file that steps add to.
Status add_step_summary(const std::string& text) {
  const char* file = std::getenv("GITHUB_STEP_SUMMARY");
  if (file == nullptr || *file == '\0') return Done{};
  std::error_code failed;
  const auto before = fs::exists(file, failed) ? fs::file_size(file, failed) : 0;
  std::ofstream out(file, std::ios::app | std::ios::binary);
  out << rg::fitted_summary(text, failed ? 0 : before);
  out.flush();
  if (!out) return Error{.message = fmt::format("cannot write the step summary '{}'", file)};
  return Done{};
}

VersionRequest request_of(const GateOptions& options, const fs::path& config, const TimeBudget& time) {
  return {.target = options.target,
          .repo = options.repo,
          .build = options.build,
          .python = options.python,
          .framework = options.framework,
          .arguments = options.arguments,
          .config = config,
          .time = time};
}

std::optional<rg::Metric> metric_of(const GateOptions& options) {
  if (options.metric.empty()) return std::nullopt;
  return rg::Metric{options.metric, options.better == "higher"};
}

Result<rg::Outcome> gated(const GateOptions& options, const fs::path& config, const Progress& progress) {
  const TimeBudget time(options.budget_s);
  const VersionRequest request = request_of(options, config, time);
  TRY(const fs::path runner, unpack_runner(bakeoff_home()));
  TRY(const TemporaryFolder scratch, TemporaryFolder::make("explain"));
  TRY(Version base, find_version("base", options.base, request, progress));
  TRY(Version head, find_version("head", options.head, request, progress));
  rg::Outcome outcome{.base = base.info,
                      .head = head.info,
                      .target = options.target.empty() ? options.head : options.target,
                      .metric = metric_of(options),
                      .settings = {options.margin, options.alpha, options.budget_s}};
  const RaceTools tools{
      .runner = runner, .folder = scratch.path(), .whole = options.whole, .metric = outcome.metric};
  TRY(const auto pair, version_pair(std::make_shared<Version>(std::move(base)),
                                    std::make_shared<Version>(std::move(head)), request, tools, progress));
  CHECK_OK(rg::race(*pair, outcome, progress, time));
  return outcome;
}

// For machines; each is tried whatever became of the others.
Status write_outputs(const GateOptions& options, const rg::Outcome& outcome) {
  Status all = Done{};
  const auto write = [&](const fs::path& file, const std::string& text) {
    if (file.empty()) return;
    if (const Status written = write_file(file, text); !written && all) all = written;
  };
  write(options.json, rg::to_json(outcome));
  write(options.junit, rg::to_junit(outcome));
  write(options.gitlab, rg::to_gitlab(outcome));
  if (on_github()) print(rg::to_annotations(outcome));
  if (const Status added = add_step_summary(rg::to_step_summary(outcome)); !added && all) all = added;
  return all;
}

int failed(const GateOptions& options, const Error& error) {
  if (!proc::interrupted()) {
    if (!options.junit.empty())
      (void)write_file(options.junit, rg::junit_of_error(options.target, error)).has_value();
    if (on_github()) print(rg::annotation_of_error(error));
    (void)add_step_summary("## bakeoff gate: error\n\n```\n" + error.text() + "\n```\n").has_value();
  }
  return fail(error);
}

int gate(const GateOptions& options, const fs::path& config) {
  if (!options.init.empty()) return write_workflow(options.init, options.force);
  if (const auto started = proc::start_launcher(); !started) return fail(started.error());
  Result<rg::Outcome> outcome = Error{};
  {
    ConsoleProgress progress;
    progress.lines()(longest_text(options.budget_s));
    outcome = gated(options, config, progress.lines());
  }
  if (!outcome) return failed(options, outcome.error());
  print(rg::to_text(*outcome, output_width()));
  if (const auto written = write_outputs(options, *outcome); !written) return fail(written.error());
  return rg::exit_code(*outcome);
}

constexpr const char* kVersionDoc =
    "a commit, branch or tag of the repository; a folder (files as they are); an interpreter or virtual "
    "environment; a package version (numpy==2.1.3); without RECIPE|SCRIPT a script or recipe";
constexpr const char* kGateFooter =
    "Exit codes: 0 no regression beyond the margin, 1 regression, 2 error, 3 undecided (it says what decides).\n\n"
    "Examples:\n  bakeoff gate --base main --head HEAD train.py\n"
    "  bakeoff gate --base old.py --head new.py --margin 5% --budget 20m\n"
    "  bakeoff gate --base numpy==1.26.4 --head numpy==2.1.3 train.py\n"
    "  bakeoff gate --base main --head . bench.py --metric 'tokens/s: ([0-9.]+)' --better higher\n"
    "  bakeoff gate --init github";

// What is raced, and what is compared.
void add_race_options(CLI::App& sub, GateOptions& options) {
  sub.add_option("--base", options.base, std::string("the old version: ") + kVersionDoc)
      ->type_name("VERSION");
  sub.add_option("--head", options.head, "the new version, named in the same ways")->type_name("VERSION");
  sub.add_option("target", options.target,
                 "script or recipe that both versions have; a script's arguments stand behind --");
  add_share(sub, "--margin", options.margin, 10, "slower by more than this is a regression; default 2%");
  add_share(
      sub, "--alpha", options.alpha, 0.5,
      "largest share of red gates among versions that are not slower by more than the margin; default 1%");
  add_budget(
      sub, [&options](const Budget& budget) { options.budget_s = 60 * budget.minutes; }, kTime,
      "time of the whole command, checkouts and builds included; default 10m");
  sub.add_option("--repo", options.repo, "folder in the repository; default the current folder");
  sub.add_option("--build", options.build,
                 "shell command that is run in each commit's checkout before the race");
  sub.add_flag("--whole", options.whole,
               "of scripts: compare whole runs, from the start of Python to the end, not steps");
  sub.add_option("--metric", options.metric,
                 "of scripts: compare a figure that they print instead of times. A regular expression; the "
                 "figure is its first (group), or the first number after what it matches")
      ->excludes("--whole");
  sub.add_option("--better", options.better, "with --metric: which figures are better, lower or higher")
      ->check(one_of({"lower", "higher"}))
      ->needs("--metric");
  add_interpreter(sub, options.framework, options.python);
}

void check_usage(const GateOptions& options) {
  if (!options.init.empty()) return;
  if (options.base.empty() || options.head.empty())
    misuse(
        fmt::format("name {}", options.base.empty() ? "the old version: --base" : "the new version: --head"),
        "for example `bakeoff gate --base main --head HEAD train.py`");
  if (!options.metric.empty() && options.better.empty())
    misuse("say which figures of --metric are better",
           "--better lower for times, losses and memory; --better higher for rates, scores and accuracies");
}

Action add_gate(CLI::App& sub) {
  const auto options = std::make_shared<GateOptions>();
  sub.footer(kGateFooter);
  add_race_options(sub, *options);
  sub.add_option("--json", options->json, "write all figures to this file");
  sub.add_option("--junit", options->junit, "write JUnit XML to this file: a test case for each contender")
      ->type_name("FILE");
  sub.add_option("--gitlab", options->gitlab, "write GitLab's code quality report to this file")
      ->type_name("FILE");
  sub.add_option("--init", options->init, "write a ready workflow file (github or gitlab), and nothing else")
      ->check(one_of({"github", "gitlab"}))
      ->type_name("SERVICE");
  sub.add_flag("--force", options->force, "with --init: replace what exists");
  sub.callback([options] { check_usage(*options); });
  return [options](const Invocation& line) {
    options->arguments = line.tail;
    return gate(*options, line.config);
  };
}

}  // namespace

const Command kGate = {
    "gate",        "Is the new version slower than the old one? Both race as one; false alarms are bounded",
    nullptr,       add_gate,
    Home::kNeeded, Tail::kBehindDashes};

}  // namespace bakeoff::cli
