#include "cli/gate_options.h"

#include <fmt/format.h>

#include <cstdlib>
#include <optional>

#include "cli/usage.h"

namespace bakeoff::cli {
namespace {

// "5%", "0.05".
std::optional<double> share_of(const std::string& text) {
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  if (end == text.c_str()) return std::nullopt;
  if (std::string_view(end) == "%") return value / 100;
  return *end == '\0' ? std::optional(value) : std::nullopt;
}

// "90s", "10m", "1h"; 10 is 10 minutes.
std::optional<double> seconds_of(const std::string& text) {
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  const std::string_view unit = end;
  if (end == text.c_str() || !(value > 0 && value < 1e7)) return std::nullopt;
  if (unit.empty() || unit == "m" || unit == "min") return 60 * value;
  if (unit == "s") return value;
  return unit == "h" ? std::optional(3600 * value) : std::nullopt;
}

void add_share(CLI::App* sub, const std::string& name, double& into, double most, const std::string& doc) {
  const std::string wrong = fmt::format("must be above 0 and below {:g}%: 5%, or 0.05", 100 * most);
  sub->add_option_function<std::string>(
         name, [&into](const std::string& text) { into = *share_of(text); }, doc)
      ->check(CLI::Validator(
          [most, wrong](const std::string& text) {
            const auto share = share_of(text);
            return share && *share > 0 && *share < most ? std::string() : wrong;
          },
          "SHARE"));
}

void add_time(CLI::App* sub, const std::string& name, double& into, const std::string& doc) {
  sub->add_option_function<std::string>(
         name, [&into](const std::string& text) { into = *seconds_of(text); }, doc)
      ->check(CLI::Validator(
          [](const std::string& text) {
            return seconds_of(text) ? std::string() : "must be a time above 0: 90s, 10m, 1h";
          },
          "TIME"));
}

constexpr const char* kVersionDoc =
    "a commit, branch or tag of the repository; a folder (files as they are); an interpreter or virtual "
    "environment; a package version (numpy==2.1.3); without RECIPE|SCRIPT a script or recipe";

}  // namespace

void add_gate_command(CLI::App& app, GateOptions& options) {
  CLI::App* gate = app.add_subcommand(
      "gate", "Is the new version slower than the old one? Both race as one; false alarms are bounded");
  gate->footer(
      "Exit codes: 0 no regression beyond the margin, 1 regression, 2 error, 3 undecided (it says what decides).\n\n"
      "Examples:\n  bakeoff gate --base main --head HEAD train.py\n"
      "  bakeoff gate --base old.py --head new.py --margin 5% --budget 20m\n"
      "  bakeoff gate --base numpy==1.26.4 --head numpy==2.1.3 train.py\n  bakeoff gate --base main --head . bench.py --metric 'tokens/s: ([0-9.]+)' --better higher\n  bakeoff gate --init github");
  gate->add_option("--base", options.base, std::string("the old version: ") + kVersionDoc);
  gate->add_option("--head", options.head, "the new version, named in the same ways");
  gate->add_option("target", options.target,
                   "script or recipe that both versions have; a script's arguments stand behind --");
  add_share(gate, "--margin", options.margin, 10, "slower by more than this is a regression; default 2%");
  add_share(
      gate, "--alpha", options.alpha, 0.5,
      "at most so many gates of versions that are not slower by more than the margin are red; default 1%");
  add_time(gate, "--budget", options.budget_s,
           "time of the race, checkouts and builds not counted; default 10m");
  gate->add_option("--repo", options.repo, "folder in the repository; default the current folder");
  gate->add_option("--build", options.build,
                   "shell command that is run in each commit's checkout before the race");
  gate->add_flag("--whole", options.whole,
                 "of scripts: compare whole runs, from the start of Python to the end, not steps");
  gate->add_option("--metric", options.metric,
                   "of scripts: compare a figure that they print instead of times. A regular expression; the "
                   "figure is its first (group), or the first number after what it matches")
      ->excludes("--whole");
  gate->add_option("--better", options.better, "with --metric: which figures are better, lower or higher")
      ->check(one_of({"lower", "higher"}))
      ->needs("--metric");
  gate->add_option("--framework", options.framework,
                   "of a script: framework whose environment runs it; default the one that it imports");
  gate->add_option("--python", options.python,
                   "of a script: interpreter that runs it, in place of an environment's");
  gate->add_option("--json", options.json, "write all figures to this file");
  gate->add_option("--junit", options.junit, "write JUnit XML to this file: a test case for each contender");
  gate->add_option("--gitlab", options.gitlab, "write GitLab's code quality report to this file");
  gate->add_option("--init", options.init, "write a ready workflow file (github or gitlab), and nothing else")
      ->check(one_of({"github", "gitlab"}));
  gate->add_flag("--force", options.force, "with --init: replace what exists");
}

void add_bisect_command(CLI::App& app, BisectOptions& options) {
  CLI::App* bisect = app.add_subcommand(
      "bisect",
      "Which commit or package version made a script slower? Each probe is a race against the good end");
  bisect->footer(
      "Exit codes: 0 found and confirmed, 1 the bad end is not slower, 2 error, 3 undecided.\n\n"
      "Examples:\n  bakeoff bisect --good v1.0 --bad main train.py\n"
      "  bakeoff bisect --package numpy==1.26..2.1 train.py\n  bakeoff bisect --resume runs/bisect-20261124-101500");
  auto* good = bisect->add_option("--good", options.good, "a commit that is fast");
  bisect->add_option("--bad", options.bad, "a later commit that is slow")->needs(good);
  auto* package = bisect->add_option(
      "--package", options.package,
      "versions of a package instead of commits, oldest first: numpy==1.26..2.1 for all that pip's "
      "index has between, or a list, numpy==1.26.4,2.0.2,2.1.3");
  bisect->add_option("target", options.target,
                     "script or recipe that the versions have; a script's arguments stand behind --");
  add_share(bisect, "--margin", options.margin, 10,
            "slower by less than this is nothing to find; default 2%");
  add_share(
      bisect, "--alpha", options.alpha, 0.5,
      "at most so many of the commits that are named are not slower than their parent by the margin; default 1%");
  add_time(bisect, "--budget", options.budget_s, "time of all races and builds together; default 60m");
  bisect->add_option(
      "--contender", options.contender,
      "of a recipe: id of the contender that is searched for; default the one that regressed most");
  bisect->add_option("--repo", options.repo, "folder in the repository; default the current folder");
  bisect->add_option(
      "--build", options.build,
      "shell command that is run in each commit's checkout; where it fails the commit is skipped");
  bisect->add_flag("--whole", options.whole,
                   "of scripts: compare whole runs, from the start of Python to the end, not steps");
  bisect->add_option("--framework", options.framework,
                     "of a script: framework whose environment runs it; default the one that it imports");
  bisect->add_option("--python", options.python,
                     "of a script: interpreter that runs it, in place of an environment's");
  bisect->add_option("--out", options.out, "folder of the search's record; default runs/bisect-<date>");
  auto* resume = bisect->add_option("--resume", options.resume, "continue a search in its folder");
  bisect->add_option("--json", options.json, "write all figures to this file");
  good->excludes(package);
  resume->excludes(good)->excludes(package);
}

void add_compare_command(CLI::App& app, CompareOptions& options) {
  CLI::App* compare = app.add_subcommand(
      "compare",
      "Two finished runs side by side: what differs, and how their times compare; no proof, and it says why");
  compare->footer(
      "Example:\n  bakeoff compare runs/mnist_cnn-20261121-080000 runs/mnist_cnn-20261124-101500");
  compare->add_option("first", options.first, "run directory")->required();
  compare->add_option("second", options.second, "the run to compare with")->required();
  compare->add_flag("--json", options.json, "print all of it as JSON");
}

std::string misuse(const BisectOptions& options) {
  if (!options.resume.empty()) return "";
  if (options.package.empty() && (options.good.empty() || options.bad.empty()))
    return "bakeoff: bisect: name both ends: --good and --bad\n  for example `bakeoff bisect --good v1.0 --bad main "
           "train.py`; or --package numpy==1.26..2.1\n";
  if (options.target.empty())
    return "bakeoff: bisect: name a script or a recipe\n  for example `bakeoff bisect --good v1.0 --bad main train.py`\n";
  return "";
}

std::string misuse(const GateOptions& options) {
  if (!options.init.empty()) return "";
  if (options.base.empty() || options.head.empty())
    return fmt::format(
        "bakeoff: gate: name {}\n  for example `bakeoff gate --base main --head HEAD train.py`\n",
        options.base.empty() ? "the old version: --base" : "the new version: --head");
  if (!options.metric.empty() && options.better.empty())
    return "bakeoff: gate: say which figures of --metric are better\n  --better lower for times, losses and memory; "
           "--better higher for rates, scores and accuracies\n";
  return "";
}

}  // namespace bakeoff::cli
