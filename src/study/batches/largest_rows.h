#pragma once

// Results of attempts at several batches: the largest one that fits, and what stopped the next. Pure
// functions of the records.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "study/batches/largest_trial.h"

namespace bakeoff {

// What ended an attempt.
enum class Stop {
  kNone,       // nothing: it fits
  kLimit,      // killed, as it had more resident memory than the limit
  kAllocator,  // its own allocator failed, and it said so
  kKilled,     // the kernel killed it for memory
  kCrash,      // it died of something else while its memory was limited
  kTime,       // it did not answer in time
  kStart,      // it never got as far as its batch: start or import failed
  kNoScript,   // there is no script of that batch
};
Stop stop_of(const std::optional<Failure>& failure);
// Whether less memory would have helped.
bool is_memory(Stop stop);
// "the allocator: RuntimeError: ... you tried to allocate 805306368 bytes", on one line.
std::string in_words(Stop stop, const Failure& failure);

struct LargestRow {
  std::string contender = {};
  int64_t limit_bytes = 0;               // 0: a GPU's own
  std::optional<int64_t> largest = {};   // batch that fits; absent: none that was tried
  int64_t peak_bytes = 0;                // there
  std::optional<int64_t> fails_at = {};  // the least batch that does not
  // Slope of the peak over the batch, by least squares over all that fit; absent below two of them, or where
  // it does not rise.
  std::optional<double> bytes_per_sample = {};
  Stop stop = Stop::kNone;  // at `fails_at`
  std::string note = {};    // what stopped the search, in words; also: "the data has 60,000 rows"
  int tried = 0;            // processes
  bool exact = false;       // the next larger batch fails
  bool operator==(const LargestRow&) const = default;
};

// Rows in the order of `ids`; contenders without any record are left out. `most`: the largest batch that may
// be tried; `rows`: of the data, 0: not known.
std::vector<LargestRow> largest_rows(const std::vector<LargestTrial>& trials,
                                     const std::vector<std::string>& ids, int64_t most, int64_t rows);

// The next batch to try for one contender, whose trials these are: from `first` doubled until one fails, or
// halved until one fits, then bisected until both are within a sixteenth. Nothing when it is over; `end`: the
// largest batch that may be tried.
std::optional<int64_t> next_to_fit(const std::vector<LargestTrial>& own, int64_t first, int64_t end);

}  // namespace bakeoff
