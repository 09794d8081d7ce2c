// `bakeoff reproduce`: a published study, replayed as a suite.

#include <fmt/format.h>

#include <memory>
#include <utility>

#include "base/files.h"
#include "cli/command.h"
#include "cli/console.h"
#include "cli/suite.h"
#include "proc/interrupt.h"
#include "report/reproduction_report.h"
#include "suite/reproduction.h"

namespace bakeoff::cli {
namespace {

namespace fs = std::filesystem;

struct ReproduceOptions {
  SuiteOptions suite = {.command = "reproduce"};
  fs::path study = {};  // empty: list them
  std::vector<std::string> rows = {};
  bool dry_run = false;
};

report::TerminalOptions terminal() { return {.width = output_width(), .colour = output_has_colour()}; }

int list_studies() {
  std::vector<recipe::PublishedStudy> all;
  for (const recipe::StudyText& text : recipe::shipped_studies()) {
    auto study = recipe::parse_study(text.text, text.file, true);
    if (!study) return fail(study.error());
    all.push_back(std::move(*study));
  }
  print(report::list_of_studies(all, terminal()));
  return 0;
}

int show_plan(const recipe::StudyText& text, const ReproduceOptions& options) {
  const auto study = recipe::parse_study(text.text, text.file, text.shipped);
  if (!study) return fail(study.error());
  const auto record = suite::record_of(text, options.suite.minutes, options.rows);
  if (!record && !options.rows.empty()) return fail(record.error());
  print(report::plan_of(*study, record ? *record : suite::Record{}, terminal()));
  if (!record) return fail(record.error());
  print(record->minutes > 0 ? fmt::format("All races together: at most {:g} minutes.\n", record->minutes)
                            : "Each recipe's own budget.\n");
  return 0;
}

int present_study(const suite::Record& record, const fs::path& folder, const SuiteOptions& options) {
  const auto study = suite::study_of(record);
  if (!study) return fail(study.error());
  const std::vector<suite::Input> inputs = suite::inputs_of_folder(record, folder);
  suite::Reproduction result = suite::reproduction_of(*study, inputs);
  result.interrupted |= proc::interrupted();
  const fs::path html = options.html.empty() ? folder / "report.html" : options.html;
  const auto written = write_file(html, report::render_reproduction_page(result));
  const std::string json = report::render_json(result);
  const auto kept = write_file(folder / "report.json", json);
  print(options.format == "json" ? json : report::render_terminal(result, terminal()));
  for (const Status& one : {written, kept})
    if (!one) return fail(one.error());
  if (options.format == "text") print(html.string() + '\n');
  return code_of(record, suite::table_of(record.name, inputs, ""));
}

Action add_reproduce(CLI::App& sub) {
  const auto options = std::make_shared<ReproduceOptions>();
  auto* what =
      sub.add_option("study", options->study, "a study inside the program, or a file; none: list them")
          ->type_name("STUDY");
  sub.add_option("--rows", options->rows, "race these rows of its table alone, by their names, with commas")
      ->delimiter(',')
      ->type_name("NAMES");
  sub.add_flag("--dry-run", options->dry_run, "say what would be raced, row by row, and race nothing");
  sub.add_option("--format", options->suite.format, "text or json")
      ->check(CLI::IsMember({"text", "json"}))
      ->capture_default_str();
  add_suite_options(sub, options->suite, what);
  return [options](const Invocation& line) {
    const SuiteOptions& suite = options->suite;
    recipe::StudyText text;
    if (suite.resume.empty() && suite.report.empty()) {
      if (options->study.empty()) return list_studies();
      auto found = recipe::find_study(options->study);
      if (!found) return fail(found.error());
      text = std::move(*found);
      if (options->dry_run) return show_plan(text, *options);
    } else {
      const auto record = suite::read(suite.resume.empty() ? suite.report : suite.resume);
      if (!record) return fail(record.error());
      if (const auto study = suite::study_of(*record); !study) return fail(study.error());
    }
    return race_or_report(
        suite, line.config, [&] { return suite::record_of(text, suite.minutes, options->rows); },
        [&](const suite::Record& record, const fs::path& folder) {
          return present_study(record, folder, suite);
        });
  };
}

}  // namespace

const Command kReproduce = {
    "reproduce",
    "Replay a published comparison: its ratios beside those of today, and what its confounds "
    "explain",
    "bakeoff reproduce mnist_4060ti --rows float16 --budget 10m", add_reproduce, Home::kUnused};

}  // namespace bakeoff::cli
