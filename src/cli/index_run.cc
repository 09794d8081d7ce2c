#include "cli/index_run.h"

#include <fmt/format.h>

#include "base/clock.h"
#include "base/files.h"
#include "base/texts.h"
#include "cli/console.h"
#include "proc/interrupt.h"
#include "proc/run.h"
#include "records/marks.h"
#include "store/import.h"
#include "store/read_run.h"

namespace bakeoff::cli {
namespace {

// What git prints; nothing where it fails.
std::optional<std::string> git(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), {"git", "--no-optional-locks"});
  const auto done = proc::run_command({.child = {.argv = arguments}, .timeout_ns = 10 * kSecond});
  if (!done || !done->ok()) return std::nullopt;
  return std::string(trimmed(done->output_tail));
}

bool is_hash(const std::string& text) {
  return (text.size() == 40 || text.size() == 64) &&
         text.find_first_not_of("0123456789abcdef") == std::string::npos;
}

void warn_of_index(const Error& error, const fs::path& run) {
  note(fmt::format(
      "bakeoff: the run is complete, but is not in the index: {}\n  afterwards `bakeoff store import {}` "
      "adds it",
      error.text(), run.string()));
}

Status add_to_index(const fs::path& run) {
  TRY(const std::string url, store::database_url());
  const fs::path home = bakeoff_home();
  CHECK_OK(store::keep_root(home, run));
  TRY(store::Index index, store::Index::open(home, url, [] { return proc::interrupted(); }));
  TRY(store::IndexedRun indexed, store::read_run(run));
  TRY(const auto later, index.later_run(indexed.host, utc_now()));
  if (later && indexed.note.empty())
    indexed.note =
        fmt::format("the clock was set back: run {} of this host started at {}", later->id, later->started);
  const auto put = index.put({&indexed, 1});
  return put ? Status(Done{}) : Status(put.error());
}

}  // namespace

void note_commit(const RunDirectory& directory) {
  const auto hash = git({"rev-parse", "--verify", "HEAD"});
  if (!hash || !is_hash(*hash)) return;
  const auto changed = git({"status", "--porcelain", "--untracked-files=no"});
  const Commit commit{.hash = *hash,
                      .branch = git({"symbolic-ref", "--short", "-q", "HEAD"}).value_or(""),
                      .dirty = changed && !changed->empty(),
                      .started = utc_now()};
  if (const auto kept = directory.append(commit); !kept)
    note("bakeoff: the commit is not recorded: " + kept.error().text());
}

void index_run(const fs::path& run) {
  if (const auto done = add_to_index(run); !done) warn_of_index(done.error(), run);
}

}  // namespace bakeoff::cli
