// One command reads the index of own runs and files of other programs, and both become lines with points
// (store::Line), so that shifts are found and shown in one way. What a file leaves open (its column of times,
// which columns tell series apart) is guessed, and each guess is said, since a wrong one gives a series that
// looks right.
//
// `accept` writes its mark into the run's own directory and only then into the index, because the index can
// be lost and is made again from the directories.

#include "history/history.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

#include "base/clock.h"
#include "base/files.h"
#include "base/nearest.h"
#include "base/texts.h"
#include "cli/command.h"
#include "cli/console.h"
#include "cli/usage.h"
#include "history/series_file.h"
#include "proc/interrupt.h"
#include "records/marks.h"
#include "records/records.h"
#include "report/history_formats.h"
#include "report/history_page.h"
#include "store/index.h"
#include "store/read_run.h"
#include "table/text.h"

namespace bakeoff::cli {
namespace {

struct HistoryOptions {
  std::string series = {};           // an id, a name or a part of one; empty: all
  int64_t last = 0;                  // points of each series; 0: 1,000, or as many as a page has room for
  fs::path read = {};                // a CSV file with series of other programs; empty: the index
  double unit = 1;                   // of its times, in seconds
  std::string time = {};             // its column of times; empty: guessed
  std::vector<std::string> by = {};  // its columns that tell series apart; empty: guessed
  std::string format = "text";
  fs::path html = {};
  bool accept = false;
  bool withdraw = false;  // take back what was accepted
  std::string run = {};   // where the step begins; empty: the latest nominated shift
  std::string note = {};
};

constexpr int64_t kPointsOfOne = 1000;
constexpr int64_t kPointsInList = 100;  // of each series
constexpr int64_t kPointsOfPage = 20'000;

Result<store::Index> open_history() {
  TRY(const std::string url, store::database_url());
  return store::Index::open(bakeoff_home(), url, [] { return proc::interrupted(); });
}

Result<std::vector<store::Line>> chosen_lines(const std::vector<store::Line>& lines,
                                              const std::string& words) {
  auto found = lines_named(lines, words);
  if (!found.empty() || words.empty()) return found;
  std::vector<std::string> names;
  for (const store::Line& line : lines) names.insert(names.end(), {line.name, title_of(line)});
  const std::string near = nearest(words, names);
  return Error{
      .message = fmt::format("no series is called '{}'", table::one_line(words)),
      .remedy = near.empty() ? "without a name all are listed" : fmt::format("did you mean '{}'?", near)};
}

int64_t points_of(const HistoryOptions& options, size_t lines) {
  if (options.last > 0) return options.last;
  if (!options.html.empty())
    return std::max<int64_t>(50, kPointsOfPage / std::max<int64_t>(1, static_cast<int64_t>(lines)));
  return lines > 1 && options.format == "text" ? kPointsInList : kPointsOfOne;
}

// Histories, and where they are from.
struct Found {
  std::string where = {};
  std::vector<History> histories = {};
  std::vector<std::string> notes = {};  // what was guessed of a file
  std::optional<Pairs> pairs = {};
};

Result<Found> of_index(const HistoryOptions& options) {
  TRY(store::Index index, open_history());
  TRY(const auto all, index.lines());
  TRY(const auto lines, chosen_lines(all, options.series));
  Found found{.where = index.where()};
  for (const store::Line& line : lines) {
    if (proc::interrupted()) return Error{"interrupted"};
    TRY(auto points, index.points(line.id, points_of(options, lines.size())));
    found.histories.push_back(history_of(line, std::move(points)));
  }
  return found;
}

Result<Found> of_file(const HistoryOptions& options) {
  TRY(auto read, read_series(options.read, {.unit = options.unit, .time = options.time, .by = options.by}));
  std::vector<store::Line> lines;
  for (const FileSeries& one : read.series) lines.push_back(one.line);
  TRY(const auto chosen, chosen_lines(lines, options.series));
  Found found{.where = options.read.string(), .notes = std::move(read.notes), .pairs = read.pairs};
  for (FileSeries& one : read.series) {
    if (std::ranges::find(chosen, one.line) == chosen.end()) continue;
    const auto most = static_cast<size_t>(options.last);
    if (most > 0 && one.points.size() > most)
      one.points.erase(one.points.begin(), one.points.end() - static_cast<long>(most));
    found.histories.push_back(history_of(one.line, std::move(one.points)));
    found.histories.back().of_index = false;
  }
  return found;
}

int show(const HistoryOptions& options) {
  const auto found = options.read.empty() ? of_index(options) : of_file(options);
  if (!found) return fail(found.error());
  const std::vector<History>& histories = found->histories;
  for (const std::string& guess : found->notes) note(guess);
  if (const auto& pairs = found->pairs; pairs && options.format == "text")
    print(table::paragraph(
              fmt::format(
                  "{} takes {} times as long as {}, {} (99%, in {}). These are pairs, compared as such; what "
                  "follows are the times of each side one after another.",
                  pairs->head, table::ratio(pairs->ratio.value), pairs->base,
                  table::interval(pairs->ratio, table::ratio), table::counted(pairs->pairs, "pair")),
              output_width()) +
          "\n\n");
  if (!options.html.empty()) {
    const auto written =
        write_file(options.html, report::render_history_page(histories, found->where, utc_now()));
    if (!written) return fail(written.error());
    if (options.format == "text") {
      print(options.html.string() + "\n");
      return 0;
    }
  }
  const report::TerminalOptions terminal{.width = output_width(), .colour = output_has_colour()};
  if (options.format == "json")
    print(report::render_history_json(histories));
  else if (options.format == "csv")
    print(report::render_history_csv(histories));
  else if (histories.size() == 1)
    print(report::render_history(histories.front(), terminal));
  else
    print(report::render_history_list(histories, found->where, terminal));
  return 0;
}

// The one series that the words mean.
Result<store::Line> one_line_of(store::Index& index, const std::string& words) {
  TRY(const auto all, index.lines());
  TRY(const auto lines, chosen_lines(all, words));
  if (lines.size() == 1) return lines.front();
  std::vector<std::string> ids;
  for (const store::Line& line : lines)
    ids.push_back(fmt::format("{} ({})", line.id.substr(0, 8), title_of(line)));
  return Error{.message = fmt::format("'{}' means {} series", table::one_line(words), lines.size()),
               .remedy = fmt::format("name one by its id: {}", join(ids, ", "))};
}

// The point at which the step begins.
Result<store::LinePoint> step_of(const History& history, const std::string& run) {
  if (run.empty()) {
    for (size_t i = history.shifts.size(); i-- > 0;)
      if (history.shifts[i].open()) return history.points[history.shifts[i].at];
    return Error{
        .message = fmt::format("no shift of {} is open", title_of(history.line)),
        .remedy = "--run marks a step where none is nominated; `bakeoff history SERIES` shows the runs"};
  }
  std::vector<std::string> runs;
  for (size_t i = 1; i < history.points.size(); ++i) {
    if (history.points[i].run == run) return history.points[i];
    runs.push_back(history.points[i].run);
  }
  if (!history.points.empty() && history.points.front().run == run)
    return Error{.message = fmt::format("{} is the first run of {}: no step begins there", run,
                                        title_of(history.line)),
                 .remedy = "name a later run"};
  const std::string near = nearest(run, runs);
  return Error{.message = fmt::format("{} has no run '{}'", title_of(history.line), table::one_line(run)),
               .remedy = near.empty() ? "`bakeoff history SERIES` shows the ids of its runs"
                                      : fmt::format("did you mean '{}'?", near)};
}

// The mark is kept in the run's directory; the index follows.
Result<std::string> accept_step(const HistoryOptions& options) {
  TRY(store::Index index, open_history());
  TRY(const store::Line line, one_line_of(index, options.series));
  TRY(auto points, index.points(line.id, 1'000'000));
  const History history = history_of(line, std::move(points));
  if (options.withdraw && options.run.empty())
    return Error{.message = "--withdraw needs --run",
                 .remedy = "the id of the run whose mark is to be taken back"};
  TRY(const store::LinePoint point, step_of(history, options.run));
  if (options.withdraw && !point.accepted)
    return Error{.message = fmt::format("run {} has no accepted step of {}", point.run, title_of(line)),
                 .remedy = "`bakeoff history SERIES` shows the accepted steps"};
  const fs::path folder = store::path_of(point.directory);
  const auto directory = RunDirectory::open(folder);
  if (!directory)
    return Error{
        .message = fmt::format("the run's directory cannot be opened: {}", directory.error().message),
        .where = point.directory,
        .remedy = "the mark is kept there; if it was moved, import its new place first"};
  CHECK_OK(directory->append(AcceptedStep{.contender = line.contender,
                                          .at = utc_now(),
                                          .note = table::one_line(options.note),
                                          .withdrawn = options.withdraw}));
  TRY(const store::IndexedRun indexed, store::read_run(folder));
  TRY(const int64_t copies, index.put({&indexed, 1}));
  if (copies > 0)
    return Error{
        .message = "the mark is kept in the run's directory, which is not the one that the index has",
        .where = point.directory,
        .remedy = "`bakeoff store import` of that directory, on its machine, brings it into the index"};
  return fmt::format("{}: the step of {} that begins with run {} ({}); kept in {}\n",
                     options.withdraw ? "no longer accepted" : "accepted", title_of(line), point.run,
                     point.started, (folder / Kept<AcceptedStep>::kFile).string());
}

int history(const HistoryOptions& options) {
  if (!options.accept) return show(options);
  if (!options.read.empty())
    return fail(Error{.message = "a step in a file is not marked by this command",
                      .where = options.read.string(),
                      .remedy = "write 'accepted' into the column 'shift' of its first line"});
  const auto done = accept_step(options);
  if (!done) return fail(done.error());
  print(*done);
  return 0;
}

void add_file_options(CLI::App& sub, HistoryOptions& options) {
  sub.add_option("--read", options.read,
                 "take the series from this CSV file instead of the index: times that another program "
                 "measured, with a header ('time,commit,seconds')")
      ->check(CLI::ExistingFile);
  sub.add_option("--unit", options.unit, "unit of the times in the file of --read; default: s")
      ->transform(CLI::CheckedTransformer(
          std::map<std::string, double>{{"s", 1}, {"ms", 1e-3}, {"us", 1e-6}, {"ns", 1e-9}}));
  sub.add_option("--time", options.time,
                 "column of that file that holds the times, or a rate; default: by its name and its cells");
  sub.add_option(
         "--by", options.by,
         "columns of that file whose texts tell series apart (benchmark,host); default: those whose texts "
         "come again and again")
      ->delimiter(',');
}

void add_accept(CLI::App& sub, HistoryOptions& options) {
  CLI::App* accept = add_subcommand(
      sub, "accept", "Mark a step in a history as accepted: no alert, and later runs are judged from there",
      "bakeoff history accept 3f2a91bc --note \"float64 is meant\"");
  accept->add_option("series", options.series, "id, or name, of the series")->required()->type_name("SERIES");
  accept
      ->add_option("--run", options.run,
                   "id of the run that the step begins with; default: the latest nominated shift")
      ->type_name("RUN");
  accept->add_option("--note", options.note, "why, for those who look at it later");
  accept->add_flag("--withdraw", options.withdraw, "take the mark of --run back");
  accept->callback([&options] { options.accept = true; });
}

Action add_history(CLI::App& sub) {
  const auto options = std::make_shared<HistoryOptions>();
  sub.add_option("series", options->series, "id, name or part of a name; default: a list of all")
      ->type_name("SERIES");
  sub.add_option("--last", options->last,
                 "number of runs of each series; default 1000, for --html as many as fit")
      ->check(number_from(1, 1e9));
  sub.add_flag_callback(
      "--json", [options] { options->format = "json"; }, "print JSON");
  sub.add_flag_callback(
      "--csv", [options] { options->format = "csv"; }, "print CSV, a line for each run");
  sub.add_option("--html", options->html, "write a page with all of it into this file");
  add_file_options(sub, *options);
  add_accept(sub, *options);
  return [options](const Invocation&) { return history(*options); };
}

}  // namespace

const Command kHistory = {"history",
                          "Show how step times developed over all runs, and where their level shifted",
                          "bakeoff history \"mnist_cnn torch\"", add_history};

}  // namespace bakeoff::cli
