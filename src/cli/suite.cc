#include "cli/suite.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "base/file_lock.h"
#include "base/files.h"
#include "base/home.h"
#include "cli/command.h"
#include "cli/console.h"
#include "cli/index_run.h"
#include "cli/output.h"
#include "cli/shared_options.h"
#include "cli/surroundings.h"
#include "cli/usage.h"
#include "proc/interrupt.h"
#include "proc/launcher.h"
#include "report/html.h"
#include "report/phrases.h"
#include "report/suite_formats.h"
#include "report/suite_page.h"
#include "run/taken_profile.h"
#include "suite/suite_run.h"
#include "table/text.h"

namespace bakeoff::cli {

namespace {

using suite::Entry;
using suite::Record;

std::string quoted_words(const std::vector<std::string>& words) {
  std::string out;
  for (const std::string& word : words) out += (out.empty() ? "" : " ") + report::quoted(word);
  return out;
}

// What to type next, with what it does: the first of the open matters.
std::string next_step(const Record& record, const suite::Table& table, const fs::path& folder,
                      const std::string& engine) {
  const bool open = std::ranges::any_of(
      record.entries, [](const Entry& one) { return one.state != suite::EntryState::kEnded; });
  if (open)
    return fmt::format("to race what is left: bakeoff suite --resume {}{}", quoted_words({folder.string()}),
                       engine);
  for (const suite::TableRow& row : table.rows) {
    if (row.refusal.empty()) continue;
    std::vector<std::string> what = {record.file};
    if (record.file.empty()) {
      what.clear();
      for (const Entry& entry : record.entries) what.push_back(entry.recipe);
    }
    return "for verdicts, when the machine is idle: bakeoff suite " + quoted_words(what);
  }
  for (const suite::TableRow& row : table.rows) {
    if (row.decided || !row.failure.empty()) continue;
    const fs::path run = folder / row.folder;
    const std::string word = quoted_words({run.string()});
    return fmt::format("to settle {}: bakeoff {}", row.name,
                       fs::exists(run / kFleetFolder) ? "fleet collect " + word + " --wait"
                                                      : "run --resume " + word + " --until decided");
  }
  if (table.rows.empty()) return "";
  return fmt::format("one race in full: bakeoff report {}",
                     quoted_words({(folder / table.rows.front().folder).string()}));
}

int present_suite(const Record& record, const fs::path& folder, const SuiteOptions& options) {
  auto table = suite::table_of_folder(record, folder, options.baseline);
  if (!table) return fail(table.error());
  table->interrupted |= proc::interrupted();
  const fs::path html = options.html.empty() ? folder / "report.html" : options.html;
  const auto written = write_file(html, report::render_suite_page(*table));
  if (options.format == "json")
    print(report::render_json(*table));
  else if (options.format == "markdown")
    print(report::render_markdown(*table));
  else if (options.format == "csv")
    print(report::render_csv(*table));
  else
    print(report::render_terminal(*table, {.width = output_width(), .colour = output_has_colour()}));
  if (!written) return fail(written.error());
  if (options.format == "text") {
    if (const std::string next = next_step(record, *table, folder, options.engine_words); !next.empty())
      print(table::one_line(next) + '\n');
    print(fmt::format("{}\n", html.string()));
  }
  return code_of(record, *table);
}

// A new suite in its folder, or the one that the folder holds, ready to go on.
Result<suite::SuiteSession> open_session(const SuiteOptions& options, const NewRecord& made,
                                         run::Surroundings with, const fs::path& config) {
  if (!options.engine.chosen()) CHECK_OK(run::check_profile(options.profile));
  suite::SuiteSession session{
      .record = {}, .folder = options.resume, .profile = options.profile, .with = std::move(with)};
  const auto choose_races = [&]() -> Status {
    TRY(session.races, fleet_of(options.engine, config, session.folder, options.profile, session.with));
    return Done{};
  };
  if (!options.resume.empty()) {
    TRY(session.record, suite::resumed_record(options.resume, options.minutes));
    CHECK_OK(choose_races());
    return session;
  }
  TRY(session.record, made());
  session.folder = options.out.empty() ? dated_folder(session.record.name) : options.out;
  std::error_code failed;
  if (fs::exists(session.folder / "suite.json", failed))
    return Error{.message = fmt::format("'{}' holds a suite already", session.folder.string()),
                 .remedy = fmt::format("continue it: bakeoff {} --resume {}", options.command,
                                       session.folder.string())};
  CHECK_OK(choose_races());
  CHECK_OK(suite::write(session.record, session.folder));
  return session;
}

Status race_suite(suite::SuiteSession& session) {
  session.ended = [](const Summary& summary, const fs::path& run) {
    index_run(run);
    return write_file(run / "report.html", report::render_html(summary));
  };
  if (const auto longest = suite::longest_s(session); longest && *longest > 0)
    session.with.tell.line(session.races ? planned_for(*longest) : longest_text(*longest));
  return suite::race_all(session);
}

}  // namespace

int race_or_report(const SuiteOptions& options, const fs::path& config, const NewRecord& made,
                   const Present& present) {
  if (!options.report.empty()) {
    const auto record = suite::read(options.report);
    if (!record) return fail(record.error());
    // What a race came to is no failure of this command.
    return present(*record, options.report) == kBadInput ? kBadInput : 0;
  }
  if (const auto home = check_home(); !home) return fail(home.error());
  if (const auto started = proc::start_launcher(); !started) return fail(started.error());
  auto progress = std::make_unique<ConsoleProgress>();
  auto with = surroundings(config, *progress);
  if (!with) return fail(with.error());
  auto session = open_session(options, made, std::move(*with), config);
  if (!session) return fail(session.error());
  const auto lock = FileLock::attempt(session->folder / ".lock");
  if (!lock) return fail(lock.error());
  const auto done = race_suite(*session);
  progress.reset();
  if (!done) return fail(done.error());
  return present(session->record, session->folder);
}

void add_suite_options(CLI::App& sub, SuiteOptions& options, CLI::Option* what) {
  const std::string place = options.command == "suite" ? "suite" : "study";
  sub.add_option("--out", options.out, fmt::format("folder of the {0}; default runs/<{0}>-<date>", place));
  auto* resume = sub.add_option("--resume", options.resume,
                                fmt::format("continue an interrupted {} in its folder", place));
  auto* report = sub.add_option("--report", options.report,
                                fmt::format("compute the table again from a {}'s folder, offline", place));
  add_budget(
      sub, [&options](const Budget& budget) { options.minutes = budget.minutes; }, kTime,
      "time of all races together (90s, 20m, 1h; 6 is 6 minutes), shared out among the recipes; instead of "
      "the suite's minutes and the recipes' [budget]");
  sub.add_option("--html", options.html,
                 fmt::format("path of the HTML page; default report.html in the {}'s folder", place));
  add_profile(sub, options.profile);
  what->excludes(resume)->excludes(report);
  resume->excludes(report);
}

int code_of(const Record& record, const suite::Table& table) {
  if (proc::interrupted()) return kInterrupted;
  if (std::ranges::find(record.entries, suite::EntryState::kFailed, &Entry::state) != record.entries.end())
    return 1;
  const auto any = [&](std::string suite::TableRow::*text) {
    return std::any_of(table.rows.begin(), table.rows.end(),
                       [&](const auto& row) { return !(row.*text).empty(); });
  };
  if (any(&suite::TableRow::failure)) return 1;
  return any(&suite::TableRow::refusal) ? kRefused : 0;
}

namespace {

Action add_suite(CLI::App& sub) {
  const auto options = std::make_shared<SuiteOptions>();
  auto* what = sub.add_option("recipes", options->what, "recipes (TOML), or one suite file");
  add_baseline(sub, options->baseline);
  add_format(sub, options->format);
  add_suite_options(sub, *options, what);
  add_engine_options(sub, options->engine)->excludes(sub.get_option("--report"));
  sub.callback([options] {
    if (options->what.empty() && options->resume.empty() && options->report.empty())
      misuse("name recipes, or a suite",
             "for example `bakeoff suite quick`; or --resume DIR, or --report DIR");
  });
  return [options, &sub](const Invocation& line) {
    options->engine_words = engine_words(sub);
    return race_or_report(
        *options, line.config,
        [&] {
          return suite::new_record({options->what, options->minutes, options->baseline});
        },
        [&](const Record& record, const fs::path& folder) {
          return present_suite(record, folder, *options);
        });
  };
}

}  // namespace

const Command kSuite = {"suite",
                        "Race several recipes one after another: one table of models by contenders, with "
                        "their geometric mean",
                        "bakeoff suite quick --baseline torch", add_suite, Home::kUnused};

}  // namespace bakeoff::cli
