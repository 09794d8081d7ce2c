#include "cli/index_run.h"

#include <fmt/format.h>

#include "base/clock.h"
#include "base/files.h"
#include "cli/console.h"
#include "proc/interrupt.h"
#include "store/import.h"
#include "store/read_run.h"

namespace bakeoff::cli {
namespace {

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

void index_run(const fs::path& run) {
  if (const auto done = add_to_index(run); !done) warn_of_index(done.error(), run);
}

}  // namespace bakeoff::cli
