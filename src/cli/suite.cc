#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "base/clock.h"
#include "base/file_lock.h"
#include "base/files.h"
#include "base/home.h"
#include "base/nearest.h"
#include "cli/carry_out.h"
#include "cli/command.h"
#include "cli/console.h"
#include "cli/index_run.h"
#include "cli/output.h"
#include "cli/shared_options.h"
#include "cli/usage.h"
#include "proc/interrupt.h"
#include "proc/launcher.h"
#include "race/race.h"
#include "recipe/recipe.h"
#include "recipe/shipped.h"
#include "recipe/suite_file.h"
#include "report/html.h"
#include "report/phrases.h"
#include "report/suite_formats.h"
#include "report/suite_page.h"
#include "suite/suite_record.h"
#include "suite/suite_table.h"
#include "summary/summarise.h"
#include "table/text.h"

namespace bakeoff::cli {

struct SuiteOptions {
  std::vector<fs::path> what = {};  // recipes, or one suite file
  fs::path out = {};                // empty: runs/<suite>-<date>
  fs::path resume = {};             // the suite to continue
  fs::path report = {};             // the suite whose table is computed again, offline
  double minutes = 0;               // of all races together; 0: as the suite or the recipes say
  std::string baseline = {};        // id of a contender, in place of the suite's
  std::string format = "text";
  fs::path html = {};        // empty: report.html in the suite's folder
  std::string profile = {};  // as add_profile() says
};

namespace {

using suite::Entry;
using suite::Record;

// In a row of a table the remedy follows on the same line.
std::string in_a_row(Error error) {
  const std::string remedy = std::exchange(error.remedy, {});
  return remedy.empty() ? error.text() : error.text() + "; " + remedy;
}

// A recipe of a suite, as every command finds recipes, with what the suite replaces.
Result<recipe::Recipe> recipe_of_suite(const fs::path& file, const std::string& every) {
  TRY(const recipe::Recipe recipe, recipe::load(file));
  return recipe::with_every(recipe, every);
}

// A folder where a recipe or a suite file is expected.
Error folder_as_recipe(const fs::path& folder) {
  std::error_code ignored;
  const std::string name = folder.string();
  if (fs::exists(folder / "suite.json", ignored))
    return {.message = fmt::format("'{}' is the folder of a suite, not a recipe", name),
            .remedy = fmt::format(
                "`bakeoff suite --report {0}` shows it, `bakeoff suite --resume {0}` continues it", name)};
  if (fs::exists(folder / "run.json", ignored))
    return {.message = fmt::format("'{}' is the folder of a run, not a recipe", name),
            .remedy = fmt::format("`bakeoff report {}` shows it", name)};
  return {.message = fmt::format("'{}' is a folder, not a recipe", name),
          .remedy = "name recipes, or a suite: `bakeoff suite quick` is inside the program"};
}

// The suite that the command line names: a suite file, or recipes.
Result<recipe::SuiteFile> named_suite(const std::vector<fs::path>& what) {
  recipe::SuiteFile found{.name = suite::kNamedByRecipes};
  for (const fs::path& file : what) {
    if (std::error_code ignored; fs::is_directory(file, ignored)) return folder_as_recipe(file);
    const auto text = read_file(file);
    if (text && recipe::is_suite(*text)) {
      if (what.size() == 1) return recipe::parse_suite(*text, file);
      return Error{
          .message = fmt::format("'{}' is a suite, and {} files are named", file.string(), what.size()),
          .remedy = "name one suite alone, or recipes alone"};
    }
    if (const auto shipped = recipe::find_shipped_suite(file); what.size() == 1 && !text && shipped)
      return recipe::parse_suite(shipped->text, shipped->file, true);
    if (what.size() == 1 && !text && !recipe::find_shipped(file)) {
      std::vector<std::string> known = recipe::shipped_suite_names();
      for (const recipe::ShippedRecipe& one : recipe::shipped_recipes()) known.push_back(one.name);
      const std::string near = nearest(file.string(), known);
      return Error{.message = text.error().message,
                   .remedy = (near.empty() ? "" : fmt::format("did you mean '{}'? ", near)) +
                             "Name recipes, or a suite: `bakeoff suite quick` is inside the program"};
    }
    found.recipes.push_back(file);
  }
  return found;
}

// Names of rows are unique.
std::string row_name(const std::string& name, const fs::path& file, std::set<std::string>& taken) {
  std::string unique = taken.contains(name) ? fmt::format("{} ({})", name, file.filename().string()) : name;
  for (int i = 2; taken.contains(unique); ++i) unique = fmt::format("{} ({})", name, i);
  taken.insert(unique);
  return unique;
}

// What is to be raced. A recipe that cannot be read has its reason from the start; it is an error if none can.
Result<Record> new_record(const SuiteOptions& options, std::vector<std::string>& contenders) {
  TRY(const recipe::SuiteFile file, named_suite(options.what));
  Record record{.name = file.name,
                .file = file.file.string(),
                .started = utc_now(),
                .minutes = options.minutes > 0 ? options.minutes : file.minutes,
                .baseline = options.baseline.empty() ? file.baseline : options.baseline,
                .every = file.every};
  std::set<std::string> taken;
  std::optional<Error> first;
  for (const fs::path& path : file.recipes) {
    const auto recipe = recipe_of_suite(path, record.every);
    const fs::path found = recipe ? recipe->file : path;
    Entry entry{.recipe = recipe && recipe->shipped ? found.string()
                                                    : fs::weakly_canonical(fs::absolute(found)).string()};
    const std::string name = recipe ? recipe->name : path.stem().string();
    entry.name = row_name(name, path, taken);
    entry.folder = suite::folder_name(record.entries.size(), name);
    if (recipe) {
      for (const recipe::Contender& contender : recipe->contenders) contenders.push_back(contender.id);
    } else {
      entry.state = "failed";
      entry.failure = in_a_row(recipe.error());
      if (!first) first = recipe.error();
    }
    record.entries.push_back(std::move(entry));
  }
  if (contenders.empty() && first) return *first;
  return record;
}

Status check_suite_baseline(const std::string& baseline, std::vector<std::string> contenders) {
  std::sort(contenders.begin(), contenders.end());
  contenders.erase(std::unique(contenders.begin(), contenders.end()), contenders.end());
  if (baseline.empty() || std::find(contenders.begin(), contenders.end(), baseline) != contenders.end())
    return Done{};
  return Error{
      .message = fmt::format("the baseline '{}' is no contender of any recipe of the suite", baseline),
      .remedy = suggest(baseline, contenders)};
}

// A suite that is being carried out.
struct Session {
  Record record;
  fs::path folder;
  std::string profile;
  const fs::path& config;
};

// What a killed process left before its run began holds no record.
void clear_half_made(const fs::path& run) {
  std::error_code ignored;
  if (fs::exists(run, ignored) && !fs::exists(run / "run.json", ignored)) fs::remove_all(run, ignored);
}

Result<Summary> race_entry(const Session& session, const Entry& entry, ConsoleProgress& progress) {
  TRY(recipe::Recipe recipe, recipe_of_suite(entry.recipe, session.record.every));
  if (session.record.minutes > 0) {
    recipe.budget.minutes = suite::share(session.record);
    recipe.budget.includes_studies = true;
  }
  const auto of_share = [&](const Error& error) {
    return session.record.minutes > 0 ? of_budget(error, recipe, {"minutes"}, "its share of the suite's time")
                                      : error;
  };
  if (const Status enough = check_budget(recipe); !enough) return of_share(enough.error());
  if (recipe::check_baseline(recipe, session.record.baseline)) recipe.baseline = session.record.baseline;
  const auto calibration = use_profile(session.profile, recipe, progress);
  if (!calibration) return of_share(calibration.error());
  TRY(const Interpreters interpreters, find_interpreters(session.config));
  const fs::path run = session.folder / entry.folder;
  clear_half_made(run);
  return raced(recipe, run, interpreters, *calibration, progress);
}

// Seconds that the budgets of what is still to be raced allow; nothing where one has no limit.
std::optional<double> longest_s(const Session& session) {
  double sum = 0;
  for (const Entry& entry : session.record.entries) {
    if (entry.state == "ended" || entry.state == "failed") continue;
    const auto recipe = recipe_of_suite(entry.recipe, session.record.every);
    if (!recipe) continue;
    if (session.record.minutes <= 0 && recipe->budget.unlimited_time()) return std::nullopt;
    sum += 60 * (session.record.minutes > 0 ? suite::share(session.record) : recipe->budget.minutes);
  }
  return sum;
}

// Races what has not come to its end. A recipe that fails is no end of the others.
Status race_all(Session& session) {
  const size_t all = session.record.entries.size();
  if (const auto longest = longest_s(session); longest && *longest > 0) note(longest_text(*longest));
  for (size_t i = 0; i < all && !proc::interrupted(); ++i) {
    Entry& entry = session.record.entries[i];
    if (entry.state == "failed")
      note(fmt::format("recipe {} of {}: {} cannot be raced: {}", i + 1, all, entry.name, entry.failure));
    if (entry.state == "ended" || entry.state == "failed") continue;
    entry.state = "running";
    CHECK_OK(suite::write(session.record, session.folder));
    const int64_t begin = monotonic_clock().now_ns();
    ConsoleProgress progress;
    progress.lines()(fmt::format("recipe {} of {}: {}, in {}", i + 1, all, entry.name,
                                 (session.folder / entry.folder).string()));
    const auto summary = race_entry(session, entry, progress);
    entry.seconds += static_cast<double>(monotonic_clock().now_ns() - begin) / 1e9;
    if (!proc::interrupted()) {
      entry.state = summary ? "ended" : "failed";
      if (!summary) entry.failure = in_a_row(summary.error());
      if (!summary) progress.lines()(fmt::format("{}: {}", entry.name, entry.failure));
    }
    CHECK_OK(suite::write(session.record, session.folder));
    if (summary) index_run(session.folder / entry.folder);
    if (summary)
      CHECK_OK(write_file(session.folder / entry.folder / "report.html", report::render_html(*summary)));
  }
  return Done{};
}

suite::Input input_of(const Entry& entry, const fs::path& folder) {
  suite::Input input{
      .name = entry.name, .recipe = entry.recipe, .folder = entry.folder, .failure = entry.failure};
  std::error_code ignored;
  if (!fs::exists(folder / entry.folder / "run.json", ignored)) {
    if (input.failure.empty())
      input.failure = entry.state == "waiting" ? "was not raced: the suite was stopped before its turn"
                                               : "was not raced: the suite was stopped while it was prepared";
    return input;
  }
  const auto directory = RunDirectory::open(folder / entry.folder);
  auto summary = directory ? summarise(*directory) : Result<Summary>(directory.error());
  if (!summary) {
    input.failure = in_a_row(summary.error());
    return input;
  }
  summary->interrupted = entry.state == "running";
  input.summary = std::move(*summary);
  return input;
}

Result<suite::Table> table_of_suite(const Record& record, const fs::path& folder,
                                    const std::string& baseline) {
  std::vector<suite::Input> inputs;
  for (const Entry& entry : record.entries) inputs.push_back(input_of(entry, folder));
  const suite::Table table =
      suite::table_of(record.name, inputs, baseline.empty() ? record.baseline : baseline);
  if (!baseline.empty()) CHECK_OK(check_suite_baseline(baseline, table.contenders));
  return table;
}

// 0; 1 if a recipe failed or ranked nobody; 3 if a verdict is refused; 130 after Ctrl-C.
int code_of(const suite::Table& table) {
  if (proc::interrupted()) return kInterrupted;
  const auto any = [&](std::string suite::TableRow::*text) {
    return std::any_of(table.rows.begin(), table.rows.end(),
                       [&](const auto& row) { return !(row.*text).empty(); });
  };
  if (any(&suite::TableRow::failure)) return 1;
  return any(&suite::TableRow::refusal) ? kRefused : 0;
}

std::string quoted_words(const std::vector<std::string>& words) {
  std::string out;
  for (const std::string& word : words) out += (out.empty() ? "" : " ") + report::quoted(word);
  return out;
}

// What to type next, with what it does: the first of the open matters.
std::string next_step(const Record& record, const suite::Table& table, const fs::path& folder) {
  const bool open =
      std::ranges::any_of(record.entries, [](const Entry& one) { return one.state != "ended"; });
  if (open)
    return fmt::format("to race what is left: bakeoff suite --resume {}", quoted_words({folder.string()}));
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
    if (!row.decided && row.failure.empty())
      return fmt::format("to settle {}: bakeoff run --resume {} --until decided", row.name,
                         quoted_words({(folder / row.folder).string()}));
  }
  if (table.rows.empty()) return "";
  return fmt::format("one race in full: bakeoff report {}",
                     quoted_words({(folder / table.rows.front().folder).string()}));
}

int present_suite(const Record& record, const fs::path& folder, const SuiteOptions& options) {
  auto table = table_of_suite(record, folder, options.baseline);
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
    if (const std::string next = next_step(record, *table, folder); !next.empty())
      print(table::one_line(next) + '\n');
    print(fmt::format("{}\n", html.string()));
  }
  return code_of(*table);
}

// A new suite in its folder, or the one that the folder holds, ready to go on.
Result<Session> open_session(const SuiteOptions& options, const fs::path& config) {
  if (!options.resume.empty()) {
    TRY(Record record, suite::read(options.resume));
    if (options.minutes > 0) {
      record.minutes = options.minutes;
      for (Entry& entry : record.entries) entry.seconds = 0;
    }
    for (Entry& entry : record.entries) {
      if (entry.state != "failed") continue;
      entry.state = "waiting";
      entry.failure.clear();
    }
    return Session{std::move(record), options.resume, options.profile, config};
  }
  std::vector<std::string> contenders;
  TRY(Record record, new_record(options, contenders));
  CHECK_OK(check_suite_baseline(record.baseline, contenders));
  const fs::path folder = options.out.empty() ? dated_folder(record.name) : options.out;
  std::error_code failed;
  if (fs::exists(folder / "suite.json", failed))
    return Error{.message = fmt::format("'{}' holds a suite already", folder.string()),
                 .remedy = fmt::format("continue it: bakeoff suite --resume {}", folder.string())};
  CHECK_OK(suite::write(record, folder));
  return Session{std::move(record), folder, options.profile, config};
}

}  // namespace

int suite(const SuiteOptions& options, const fs::path& config) {
  if (!options.report.empty()) {
    const auto record = suite::read(options.report);
    if (!record) return fail(record.error());
    // What a race came to is no failure of this command.
    return present_suite(*record, options.report, options) == kBadInput ? kBadInput : 0;
  }
  if (const auto started = proc::start_launcher(); !started) return fail(started.error());
  auto session = open_session(options, config);
  if (!session) return fail(session.error());
  const auto lock = FileLock::attempt(session->folder / ".lock");
  if (!lock) return fail(lock.error());
  if (const auto done = race_all(*session); !done) return fail(done.error());
  return present_suite(session->record, session->folder, options);
}

namespace {

void add_budget(CLI::App& sub, double& minutes) {
  sub.add_option_function<std::string>(
         "--budget", [&minutes](const std::string& text) { minutes = parse_budget(text)->minutes; },
         "time of all races together (90s, 20m, 1h; 6 is 6 minutes), shared out among the recipes; instead of "
         "the suite's minutes and the recipes' [budget]")
      ->check(CLI::Validator(
          [](const std::string& text) {
            const auto budget = parse_budget(text);
            return budget && budget->minutes > 0 ? std::string() : "must be a time above 0: 90s, 20m, 1h";
          },
          "TIME"));
}

Action add_suite(CLI::App& sub) {
  const auto options = std::make_shared<SuiteOptions>();
  auto* what = sub.add_option("recipes", options->what, "recipes (TOML), or one suite file");
  sub.add_option("--out", options->out, "folder of the suite; default runs/<suite>-<date>");
  auto* resume = sub.add_option("--resume", options->resume, "continue an interrupted suite in its folder");
  auto* report =
      sub.add_option("--report", options->report, "compute the table again from a suite's folder, offline");
  add_budget(sub, options->minutes);
  add_baseline(sub, options->baseline);
  add_format(sub, options->format);
  sub.add_option("--html", options->html, "path of the HTML page; default report.html in the suite's folder");
  add_profile(sub, options->profile);
  what->excludes(resume)->excludes(report);
  resume->excludes(report);
  sub.callback([options] {
    if (options->what.empty() && options->resume.empty() && options->report.empty())
      misuse("name recipes, or a suite",
             "for example `bakeoff suite quick`; or --resume DIR, or --report DIR");
  });
  return [options](const Invocation& line) {
    if (const auto home = check_home(); !home && options->report.empty()) return fail(home.error());
    return suite(*options, line.config);
  };
}

}  // namespace

const Command kSuite = {"suite",
                        "Race several recipes one after another: one table of models by contenders, with "
                        "their geometric mean",
                        "bakeoff suite quick --baseline torch", add_suite, Home::kUnused};

}  // namespace bakeoff::cli
