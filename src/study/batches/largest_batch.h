#pragma once

// The largest batch of each contender that fits into memory, found without ever filling the machine's: every
// attempt is a fresh process that takes three steps under a limit, alone. Its private memory is limited
// (RLIMIT_DATA), so that an allocation beyond it fails in the process itself; its resident memory and that
// of its descendants is watched (every 20 ms), and all of them are killed above it. A batch that fails is an
// answer, and the search goes on from there (study/batches/largest_rows.h).
//
// The limit is the recipe's, but never more than what the machine has available when the search begins, less
// a reserve. On a GPU the device itself is the limit: its allocator fails, which harms no other process.

#include <filesystem>
#include <vector>

#include "study/batches/batch_search.h"
#include "study/batches/largest_rows.h"

namespace bakeoff {

// Bytes that a process may be given: what /proc/meminfo and the cgroup below `root` say is available, the
// smaller of both, less a tenth and at least 512 MiB. Error: not known, or nothing is left.
Result<int64_t> memory_to_give(const std::filesystem::path& root = "/");

// Study::run of the search for the largest batch, into largest.jsonl.
Status search_largest(const Afterwards& race, const LaneAt& lane_at);

}  // namespace bakeoff
