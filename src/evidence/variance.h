#pragma once

// Where the variance of a race is (stats/components.h), from its records, and what follows from it in words.

#include <optional>
#include <string>
#include <vector>

#include "records/trial.h"
#include "stats/components.h"

namespace bakeoff {

// One record per sound trial of `entrants`. Single steps are taken only where their marks add up to the
// bursts: a framework that dispatches asynchronously marks the dispatch, not the work.
std::vector<stats::ProcessRecord> process_records(const std::vector<Trial>& trials,
                                                  const std::vector<std::string>& entrants);

// Medians over sound trials, in seconds of the race's time: process start up to the end of the warm-up (of
// two that start beside each other, half), and one burst.
struct ProcessCost {
  double start_s = 0, burst_s = 0;
};
ProcessCost process_cost(const std::vector<Trial>& trials);

// What the report shows. Standard deviations as fractions of a step time.
struct Variance {
  std::optional<double> heats = {};  // the machine's state
  std::optional<double> processes = {};
  std::optional<double> bursts = {};
  std::optional<double> steps = {};
  // Upper 95% bounds of the first three: what is estimated as nothing may be as large.
  std::optional<double> heats_high = {}, processes_high = {}, bursts_high = {};
  std::optional<int64_t> cheapest_bursts = {};
  std::string sentence = {};
  bool operator==(const Variance&) const = default;
};

// Nothing while the records cannot tell processes from bursts. `undecided`: whether some contender is;
// `heats`: most that a pair has met; alpha: of one comparison.
std::optional<Variance> variance_of(const std::vector<Trial>& trials,
                                    const std::vector<std::string>& entrants, bool undecided, double margin,
                                    double alpha);

}  // namespace bakeoff
