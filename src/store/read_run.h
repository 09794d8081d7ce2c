#pragma once

// Run directories on disk: finding them, and reading what the index keeps of one.

#include <filesystem>
#include <functional>
#include <string>

#include "base/result.h"
#include "store/indexed_run.h"

namespace bakeoff::store {

// Calls `found` for every folder at or below `root` that holds run.json, in no certain order. Links are not
// followed, and what a run keeps for its workers (scripts, logs, cache) is not searched. `found` returns false to
// end the search. Folders that cannot be read are passed to `unreadable` with the reason.
void find_runs(const std::filesystem::path& root,
               const std::function<bool(const std::filesystem::path&)>& found,
               const std::function<void(const std::filesystem::path&, const std::string& why)>& unreadable);

// Sizes and times of the files that the index depends on.
std::string stamp_of(const std::filesystem::path& run);

// Error: it is damaged, half written, or of another version; the message says why.
Result<IndexedRun> read_run(const std::filesystem::path& run);

// A path as the index keeps it: absolute; one that is no UTF-8, or has control characters, as "bytes:" and percent
// codes. And back.
std::string stored_path(const std::filesystem::path& path);
std::filesystem::path path_of(const std::string& stored);

}  // namespace bakeoff::store
