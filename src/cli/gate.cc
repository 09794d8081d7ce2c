#include <fmt/format.h>

#include <cstdlib>
#include <fstream>

#include "base/clock.h"
#include "base/files.h"
#include "base/home.h"
#include "base/temporary_folder.h"
#include "cli/console.h"
#include "cli/gate_init.h"
#include "cli/options.h"
#include "cli/versions.h"
#include "environments/runner_files.h"
#include "proc/interrupt.h"
#include "proc/launcher.h"
#include "regression/outputs.h"

namespace bakeoff::cli {
namespace {

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

VersionRequest request_of(const GateOptions& options, const fs::path& config) {
  return {.target = options.target,
          .repo = options.repo,
          .build = options.build,
          .python = options.python,
          .framework = options.framework,
          .arguments = options.arguments,
          .config = config};
}

std::optional<rg::Metric> metric_of(const GateOptions& options) {
  if (options.metric.empty()) return std::nullopt;
  return rg::Metric{options.metric, options.better == "higher"};
}

Result<rg::Outcome> gated(const GateOptions& options, const fs::path& config, const Progress& progress) {
  const int64_t begin_ns = monotonic_clock().now_ns();
  const VersionRequest request = request_of(options, config);
  TRY(const fs::path runner, unpack_runner(bakeoff_home()));
  TRY(const TemporaryFolder scratch, TemporaryFolder::make("explain"));
  TRY(Version base, find_version("base", options.base, request, progress));
  TRY(Version head, find_version("head", options.head, request, progress));
  rg::Outcome outcome{.base = base.info,
                      .head = head.info,
                      .target = options.target.empty() ? options.head : options.target,
                      .metric = metric_of(options),
                      .settings = {options.margin, options.alpha, options.budget_s}};
  const RaceTools tools{.runner = runner,
                        .folder = scratch.path(),
                        .whole = options.whole,
                        .budget_s = options.budget_s,
                        .metric = outcome.metric};
  TRY(const auto pair, version_pair(std::make_shared<Version>(std::move(base)),
                                    std::make_shared<Version>(std::move(head)), request, tools, progress));
  CHECK_OK(rg::race(*pair, outcome, progress, begin_ns));
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

}  // namespace

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

}  // namespace bakeoff::cli
