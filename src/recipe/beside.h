#pragma once

// What a recipe asks for beside the race: sections whose measurements follow it.

#include <cstdint>
#include <optional>
#include <vector>

namespace bakeoff::recipe {

// Requests that arrive by themselves, in the scenario "predict" (study/latency/latency.h).
struct Latency {
  std::vector<double> arrivals_per_second = {};          // empty: latencies are not asked for
  int64_t requests = 1000;                               // of a process and rate
  double seconds = 30;                                   // of a process and rate, at most
  int64_t processes = 3;                                 // of every contender
  std::vector<double> percentiles = {50, 90, 99, 99.9};  // ascending
  static constexpr int64_t kFewest = 20;                 // requests that say anything
  bool wanted() const { return !arrivals_per_second.empty(); }
  bool operator==(const Latency&) const = default;
};

// Which batches are tried for throughput (study/batches/batch_search.h).
struct Search {
  bool wanted = false;
  std::vector<int64_t> batches = {};  // ascending; empty: doubled
  int64_t least = 1, most = 4096;     // where they are doubled
  int64_t processes = 2;              // of every contender and batch
  bool doubles() const { return batches.empty(); }
  bool operator==(const Search&) const = default;
};

// The largest batch that fits into memory (study/batches/largest_batch.h).
struct LargestBatch {
  bool wanted = false;
  int64_t memory_bytes = 0;  // 0: what is available, less a reserve
  int64_t most = 1'000'000;  // the largest one to try
  bool operator==(const LargestBatch&) const = default;
};

// What a training is to reach on rows that it does not train on (study/training/target.h). One of the two is stated.
struct Target {
  std::optional<double> accuracy = {};  // at least; a share
  std::optional<double> loss = {};      // at most
  int64_t seeds = 5;
  int64_t rows = 2000;  // held out
  int64_t every = 50;   // steps between two looks
  double epochs = 5;    // at most
  bool referee = true;  // trains as well, in float64
  bool wanted() const { return accuracy || loss; }
  bool operator==(const Target&) const = default;
};

// Whole trainings of so many epochs (study/training/fit.h).
struct Fit {
  int64_t epochs = 0;  // 0: none
  int64_t seeds = 1;
  std::optional<int64_t> rows = {};  // held out; empty: all of MNIST's test pictures, none of other data
  bool wanted() const { return epochs > 0; }
  bool operator==(const Fit&) const = default;
};

}  // namespace bakeoff::recipe
