#pragma once

// Results of recorded throughputs at several batches. Pure functions of the records.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "recipe/recipe.h"
#include "study/batches/batch_trial.h"

namespace bakeoff {

// A contender at one batch, over all its processes.
struct BatchPoint {
  int64_t batch = 0;
  int processes = 0;           // sound ones
  double samples_per_s = 0;    // the median of the processes
  double least = 0, most = 0;  // of the processes
  int64_t peak_rss_bytes = 0;
  std::string failure = {};  // why it has no throughput; empty: it has
  bool operator==(const BatchPoint&) const = default;
};

struct SearchRow {
  std::string contender = {};
  std::vector<BatchPoint> points = {};  // by batch
  std::optional<int64_t> best = {};     // batch of the greatest throughput
  int64_t enough = 0;                   // the least batch within the margin of it
  std::string note = {};
  const BatchPoint* at(int64_t batch) const;
  bool operator==(const SearchRow&) const = default;
};

// Rows in the order of `ids`; contenders without any record are left out.
std::vector<SearchRow> search_rows(const std::vector<BatchTrial>& trials, const std::vector<std::string>& ids,
                                   const recipe::Search& asked, double margin);

// Why a trial has no throughput; empty: it has.
std::string no_throughput(const Trial& trial);
inline bool has_failed(const BatchTrial& batch) { return !no_throughput(batch.trial).empty(); }

}  // namespace bakeoff
