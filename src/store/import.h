#pragma once

// Brings run directories into the index: found, read by several threads, stored in batches.

#include <atomic>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "base/progress.h"
#include "base/result.h"
#include "store/index.h"

namespace bakeoff::store {

struct ImportWish {
  std::vector<std::filesystem::path> roots = {};
  bool again = false;  // read runs whose files have not changed, too
  std::function<bool()> stop = [] { return false; };
  Progress progress = kSilent;
};

struct Imported {
  int64_t read = 0;       // new or changed, and stored
  int64_t unchanged = 0;  // as the index has them
  int64_t copies = 0;     // of runs that the index has from another directory; not stored
  std::vector<Skipped> skipped = {};
  bool stopped = false;  // before the end; what was read so far is stored
};

// Each batch is one transaction: if the process is killed, the index is as after some batch, and the same import
// goes on from there. Several may run at once. Errors are those of the database; the error's remedy says what is
// kept.
Result<Imported> import_runs(Index& index, const ImportWish& wish);

// The directories that were ever imported from, kept beside the index (index.roots, a line each), so that a lost
// index can be made again.
Status keep_root(const std::filesystem::path& home, const std::filesystem::path& root);
std::vector<std::filesystem::path> kept_roots(const std::filesystem::path& home);

}  // namespace bakeoff::store
