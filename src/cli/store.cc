// `bakeoff store`: the index of runs, which is made from run directories and can be made again from them. So
// nothing is lost with it: a damaged or older index is moved aside with a message instead of being repaired,
// and one run that cannot be read is listed with its reason while the others are imported.

#include <fmt/format.h>

#include "base/clock.h"
#include "base/files.h"
#include "cli/command.h"
#include "cli/console.h"
#include "cli/usage.h"
#include "proc/interrupt.h"
#include "report/history_formats.h"
#include "store/import.h"
#include "store/index.h"
#include "store/read_run.h"
#include "table/numbers.h"
#include "table/text.h"

namespace bakeoff::cli {
namespace {

struct StoreOptions {
  int (*action)(const StoreOptions&) = nullptr;
  std::vector<fs::path> folders = {};
  bool again = false;    // import what has not changed, too
  bool forget = false;   // rebuild: drop runs whose directories are gone
  bool skipped = false;  // list what could not be read
  int64_t most = 20;     // rows of the list
  std::string format = "text";
};

constexpr size_t kShownReasons = 10;

Result<store::Index> open_index() {
  TRY(const std::string url, store::database_url());
  return store::Index::open(bakeoff_home(), url, [] { return proc::interrupted(); });
}

Status check_folders(const std::vector<fs::path>& folders) {
  for (const fs::path& folder : folders) {
    std::error_code failed;
    if (!fs::is_directory(folder, failed))
      return Error{.message = fmt::format("'{}' is no folder", folder.string()),
                   .remedy = "name run directories, or folders that hold some"};
  }
  return Done{};
}

// What came of an import, and its exit code.
int tell(const store::Imported& imported, const std::string& where) {
  const size_t skipped = imported.skipped.size();
  for (size_t i = 0; i < std::min(skipped, kShownReasons); ++i)
    note("bakeoff: skipped " +
         table::one_line(imported.skipped[i].directory + ": " + imported.skipped[i].reason));
  if (skipped > kShownReasons)
    note(fmt::format("bakeoff: and {} more; `bakeoff store list --skipped` lists them",
                     skipped - kShownReasons));
  const std::string copies =
      imported.copies == 0
          ? ""
          : fmt::format(", {} left out as copies of runs in other directories", imported.copies);
  print(fmt::format("{} read, {} unchanged, {} skipped{}: {}\n", table::counted(imported.read, "run"),
                    imported.unchanged, skipped, copies, where));
  return imported.stopped ? kInterrupted : 0;
}

int import_folders(store::Index& index, std::vector<fs::path> folders, bool again) {
  store::Imported imported;
  {
    ConsoleProgress progress;
    auto done = store::import_runs(index, {.roots = std::move(folders),
                                           .again = again,
                                           .stop = [] { return proc::interrupted(); },
                                           .progress = progress.lines()});
    if (!done) return fail(done.error());
    imported = std::move(*done);
  }
  return tell(imported, index.where());
}

int import_into_index(const StoreOptions& options) {
  if (const auto ok = check_folders(options.folders); !ok) return fail(ok.error());
  auto index = open_index();
  if (!index) return fail(index.error());
  for (const fs::path& folder : options.folders)
    if (const auto kept = store::keep_root(bakeoff_home(), folder); !kept) return fail(kept.error());
  return import_folders(*index, options.folders, options.again);
}

int list(const StoreOptions& options) {
  auto index = open_index();
  if (!index) return fail(index.error());
  const auto tally = index->tally();
  const auto runs = index->runs(options.most);
  const auto skipped = index->skipped(options.skipped ? 1'000'000'000 : options.most);
  for (const Error* error : {tally ? nullptr : &tally.error(), runs ? nullptr : &runs.error(),
                             skipped ? nullptr : &skipped.error()})
    if (error != nullptr) return fail(*error);
  const report::TerminalOptions terminal{.width = output_width(), .colour = output_has_colour()};
  if (options.format == "json")
    print(report::render_store_json(*runs, *skipped, *tally, index->where()));
  else if (options.skipped)
    print(skipped->empty() ? "Every folder that was imported could be read.\n"
                           : report::render_skipped(*skipped, terminal.width));
  else
    print(report::render_store_list(*runs, *tally, index->where(), terminal));
  return 0;
}

// Moves a file that is no index of this version aside, with the files that SQLite keeps beside it.
Status make_room(const fs::path& home) {
  const fs::path file = store::index_file(home);
  std::string why = store::damage_of(file);
  if (why.empty()) {
    if (const auto index = store::Index::open(home, ""); !index) why = index.error().message;
  }
  if (why.empty()) return Done{};
  std::string now = utc_now();
  std::erase(now, ':');
  const fs::path aside = file.string() + ".aside-" + now;
  std::error_code failed;
  fs::rename(file, aside, failed);
  if (failed)
    return Error{.message = fmt::format("cannot move {} aside: {}", file.string(), failed.message()),
                 .remedy = "is the folder yours to write?"};
  for (const char* tail : {"-journal", "-wal", "-shm"}) {
    std::error_code ignored;
    fs::rename(file.string() + tail, aside.string() + tail, ignored);
  }
  note(fmt::format("bakeoff: {}: {}\n  it is kept as {}", file.string(), table::one_line(why),
                   aside.string()));
  return Done{};
}

// Directories that the index knows and that are no runs any more.
std::vector<std::string> gone(const std::map<std::string, std::string>& stamps) {
  std::vector<std::string> found;
  for (const auto& [directory, unused] : stamps) {
    std::error_code ignored;
    if (!fs::exists(store::path_of(directory) / "run.json", ignored)) found.push_back(directory);
  }
  return found;
}

int rebuild(const StoreOptions& options) {
  if (const auto ok = check_folders(options.folders); !ok) return fail(ok.error());
  const fs::path home = bakeoff_home();
  const auto url = store::database_url();
  if (!url) return fail(url.error());
  if (url->empty())
    if (const auto room = make_room(home); !room) return fail(room.error());
  auto index = open_index();
  if (!index) return fail(index.error());
  auto stamps = index->stamps();
  if (!stamps) return fail(stamps.error());
  std::vector<fs::path> folders = options.folders;
  for (const fs::path& folder : options.folders)
    if (const auto kept = store::keep_root(home, folder); !kept) return fail(kept.error());
  for (const fs::path& root : store::kept_roots(home)) {
    std::error_code ignored;
    if (fs::is_directory(root, ignored)) folders.push_back(root);
  }
  const std::vector<std::string> lost = gone(*stamps);
  for (const auto& [directory, unused] : *stamps)
    if (std::ranges::find(lost, directory) == lost.end()) folders.push_back(store::path_of(directory));
  if (options.forget)
    if (const auto forgotten = index->forget(lost); !forgotten) return fail(forgotten.error());
  if (!lost.empty())
    note(fmt::format(
        "bakeoff: the directories of {} are gone; {}", table::counted(std::ssize(lost), "run"),
        options.forget ? "they are forgotten" : "what the index has of them stays (--forget drops it)"));
  return import_folders(*index, std::move(folders), true);
}

int path(const StoreOptions&) {
  const auto url = store::database_url();
  if (!url) return fail(url.error());
  if (url->empty()) {
    print(store::index_file(bakeoff_home()).string() + "\n");
    return 0;
  }
  const auto index = open_index();
  if (!index) return fail(index.error());
  print(index->where() + "\n");
  return 0;
}

void add_import(CLI::App& store, StoreOptions& options) {
  CLI::App* sub = add_subcommand(
      store, "import", "Add the runs in and below folders; what is known and unchanged is not read again",
      "bakeoff store import runs /srv/ci/bakeoff");
  sub->add_option("folders", options.folders, "run directories, or folders that hold some")
      ->required()
      ->type_name("DIR");
  sub->add_flag("--again", options.again, "read runs whose files have not changed, too");
  sub->callback([&options] { options.action = import_into_index; });
}

void add_list(CLI::App& store, StoreOptions& options) {
  CLI::App* sub = add_subcommand(store, "list", "List the latest runs", "bakeoff store list --last 50");
  sub->add_option("--last", options.most, "number of runs")
      ->check(number_from(1, 1e9))
      ->capture_default_str();
  sub->add_flag("--skipped", options.skipped, "list folders that could not be read instead, with the reason");
  sub->add_option("--format", options.format, "text or json")
      ->check(one_of({"text", "json"}))
      ->capture_default_str();
  sub->callback([&options] { options.action = list; });
}

void add_rebuild(CLI::App& store, StoreOptions& options) {
  CLI::App* sub = add_subcommand(
      store, "rebuild", "Make the index again from the run directories; a damaged file is moved aside",
      "bakeoff store rebuild");
  sub->add_option("folders", options.folders,
                  "further folders that hold runs; those imported before are known")
      ->type_name("DIR");
  sub->add_flag("--forget", options.forget, "drop runs whose directories are gone");
  sub->callback([&options] { options.action = rebuild; });
}

Action add_store(CLI::App& sub) {
  const auto options = std::make_shared<StoreOptions>();
  sub.require_subcommand(1);
  add_import(sub, *options);
  add_list(sub, *options);
  add_rebuild(sub, *options);
  add_subcommand(sub, "path", "Print where the index is, for SQL of your own",
                 "sqlite3 \"$(bakeoff store path)\" 'SELECT COUNT(*) FROM runs'")
      ->callback([options] { options->action = path; });
  return [options](const Invocation&) { return options->action(*options); };
}

}  // namespace

const Command kStore = {"store", "Keep an index of all runs: import, list, rebuild",
                        "bakeoff store import runs", add_store};

}  // namespace bakeoff::cli
