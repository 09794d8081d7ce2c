#include <fmt/format.h>

#include "base/files.h"
#include "cli/command.h"
#include "cli/console.h"
#include "cli/output.h"
#include "cli/shared_options.h"
#include "report/csv.h"
#include "report/html.h"
#include "report/json.h"
#include "report/markdown.h"
#include "report/self_check.h"
#include "report/terminal.h"
#include "summary/baseline.h"
#include "summary/summarise.h"
#include "table/numbers.h"

namespace bakeoff::cli {

struct ReportOptions {
  fs::path run = {};
  std::string format = "text";
  fs::path html = {};         // empty: RUN/report.html
  std::string baseline = {};  // id of a contender, in place of the run's
  bool check = false;         // hold the formats against each other instead of printing one
};

int present(const Summary& summary, const std::string& format, const fs::path& html, Page page) {
  const auto written = write_file(html, report::render_html(summary));
  if (format == "json")
    print(report::render_json(summary));
  else if (format == "markdown")
    print(report::render_markdown(summary));
  else if (format == "csv")
    print(report::render_csv(summary));
  else
    print(report::render_terminal(summary, {.width = output_width(), .colour = output_has_colour()}));
  if (!written && page == Page::kNeeded) return fail(written.error());
  if (!written) note("no page is written: " + written.error().message + "; --html names another file");
  if (written && format == "text") print(fmt::format("{}\n", html.string()));
  if (summary.interrupted) return kInterrupted;
  if (!summary.refusal.empty()) {
    note("bakeoff: no verdict: " + summary.refusal);
    return kRefused;
  }
  return summary.ranked.empty() ? 1 : 0;
}

namespace {

// Holds the formats against each other; `html` is read where it exists. 0: they agree; 1: a line for each finding.
int check_report(const Summary& summary, const fs::path& html) {
  report::Formats formats = report::render_formats(summary);
  if (std::error_code ignored; fs::exists(html, ignored)) {
    auto page = read_regular_file(html);  // the run may be another user's
    if (!page) return fail(page.error());
    formats.html = std::move(*page);
    formats.page = html.string();
  }
  const report::SelfCheck check = report::self_check(summary, formats);
  for (const std::string& finding : check.findings) print(finding + '\n');
  if (check.findings.empty())
    print(fmt::format("{} figures of {} formats agree\n", table::count(static_cast<double>(check.figures)),
                      report::kFormats));
  return check.findings.empty() ? 0 : 1;
}

int report(const ReportOptions& options) {
  const auto directory = RunDirectory::open(options.run);
  if (!directory) return fail(directory.error());
  auto summary = summarise(*directory);
  if (!summary) return fail(summary.error());
  if (!options.baseline.empty()) {
    if (const auto set = set_baseline(*summary, options.baseline); !set) return fail(set.error());
  }
  const bool named = !options.html.empty();
  const fs::path html = named ? fs::path(options.html) : directory->path() / "report.html";
  if (options.check) return check_report(*summary, html);
  // Contenders that were not ranked are a result of the run, not a failure of this command.
  // Where nothing may be written to a run, of another user for example, what it says is printed.
  const Page page = named ? Page::kNeeded : Page::kIfPossible;
  return present(*summary, options.format, html, page) == kBadInput ? kBadInput : 0;
}

Action add_report(CLI::App& sub) {
  const auto options = std::make_shared<ReportOptions>();
  sub.add_option("run", options->run, "run directory")->required()->type_name("DIR");
  add_format(sub, options->format);
  sub.add_option("--html", options->html, "path of the HTML report; default RUN/report.html");
  add_baseline(sub, options->baseline);
  sub.add_flag("--check", options->check,
               "read text, JSON, Markdown, CSV and the page back, and say whether every figure agrees")
      ->excludes("--format");
  return [options](const Invocation&) { return report(*options); };
}

}  // namespace

const Command kReport = {"report", "Recompute table and HTML report from a run directory, offline",
                         "bakeoff report runs/mnist_cnn-20261121-080000 --format markdown", add_report,
                         Home::kUnused};

}  // namespace bakeoff::cli
