#pragma once

// The sections of a recipe whose measurements follow the race.

#include <cstdint>
#include <optional>
#include <vector>

namespace bakeoff::recipe {

// Requests that arrive independently of the answers, in the scenario "predict" (study/latency/latency.h).
struct Latency {
  std::vector<double> arrivals_per_second = {};          // empty: latencies are not measured
  int64_t requests = 1000;                               // requests to each process at each rate
  double seconds = 30;                                   // longest time for each process at each rate
  int64_t processes = 3;                                 // processes of every contender
  std::vector<double> percentiles = {50, 90, 99, 99.9};  // ascending
  static constexpr int64_t kFewest = 20;                 // smallest useful number of requests
  bool wanted() const { return !arrivals_per_second.empty(); }
  bool operator==(const Latency&) const = default;
};

// Words of the scenario "generate", timed one by one (study/generation/generation.h).
struct Generate {
  int64_t answers = 20;   // of each process
  int64_t processes = 3;  // of every contender, at each batch and prompt
  // What is timed besides the recipe's own batch and prompt: all pairs. Ascending.
  std::vector<int64_t> batches = {}, prompts = {};
  bool operator==(const Generate&) const = default;
};

// Search for the batch with the best throughput (study/batches/batch_search.h).
struct Search {
  bool wanted = false;
  std::vector<int64_t> batches = {};  // ascending; empty: doubled from `least`
  int64_t least = 1, most = 4096;     // first and last batch of the doubling
  int64_t processes = 2;              // processes for each contender and batch
  bool doubles() const { return batches.empty(); }
  bool operator==(const Search&) const = default;
};

// The largest batch that fits into memory (study/batches/largest_batch.h).
struct LargestBatch {
  bool wanted = false;
  int64_t memory_bytes = 0;  // memory limit; 0: what is available, less a reserve
  int64_t most = 1'000'000;  // largest batch to try
  bool operator==(const LargestBatch&) const = default;
};

// What several devices gain: each contender on several held against the same on one (study/scaling/scaling.h).
struct Scaling {
  bool wanted = false;
  int64_t heats = 4;  // of each contender
  bool operator==(const Scaling&) const = default;
};

// A target that trainings are to reach on held-out rows (study/training/target.h). Accuracy or loss is
// stated.
struct Target {
  std::optional<double> accuracy = {};  // share to reach or exceed
  std::optional<double> loss = {};      // loss to reach or fall below
  int64_t seeds = 5;
  int64_t rows = 2000;  // number of held-out rows
  int64_t every = 50;   // steps between two looks
  double epochs = 5;    // longest training
  bool referee = true;  // the referee trains too, in float64
  bool wanted() const { return accuracy || loss; }
  bool operator==(const Target&) const = default;
};

// Whole trainings of a fixed number of epochs (study/training/fit.h).
struct Fit {
  int64_t epochs = 0;  // 0: none
  int64_t seeds = 1;
  std::optional<int64_t> rows = {};  // held-out rows; empty: all of MNIST's test pictures, none of other data
  // A training ends when the held-out loss has not fallen by more than min_delta for this number of epochs; 0: never.
  int64_t patience = 0;
  double min_delta = 0;
  bool wanted() const { return epochs > 0; }
  bool operator==(const Fit&) const = default;
};

}  // namespace bakeoff::recipe
