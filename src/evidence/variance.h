#pragma once

// Where the variance of a race comes from (stats/components.h), from its records, and the consequence in
// words.

#include <optional>
#include <string>
#include <vector>

#include "records/trial.h"
#include "stats/components.h"

namespace bakeoff {

// One record for each sound trial of `contenders`. Single steps are used only if their marks add up to the
// bursts: a framework that dispatches asynchronously marks the dispatch, not the work.
std::vector<stats::ProcessRecord> process_records(const std::vector<Trial>& trials,
                                                  const std::vector<std::string>& contenders);

// Medians over sound trials, in seconds: from process start to the end of the warm-up (half of it if two
// start at the same time), and one burst.
struct ProcessCost {
  double start_s = 0, burst_s = 0;
};
ProcessCost process_cost(const std::vector<Trial>& trials);

// What the report shows. Standard deviations as fractions of a step time, by the level that causes them.
struct Variance {
  std::optional<double> heats = {};  // the machine's state
  std::optional<double> processes = {};
  std::optional<double> bursts = {};
  std::optional<double> steps = {};
  // Upper 95% bounds of the first three: a component that is estimated as zero may be this large.
  std::optional<double> heats_high = {}, processes_high = {}, bursts_high = {};
  std::optional<int64_t> cheapest_bursts = {};
  std::string sentence = {};
  bool operator==(const Variance&) const = default;
};

// "3.1%"; "at most 2.9%", the upper bound, if the deviation is estimated as nothing.
std::string deviation(double sd, const std::optional<double>& high = std::nullopt);

// Nothing if the records cannot separate processes from bursts. `undecided`: whether some contender is; nothing:
// there is no verdict, and the sentence does not say what would have been enough for one. alpha: of one comparison.
std::optional<Variance> variance_of(const std::vector<Trial>& trials,
                                    const std::vector<std::string>& contenders, std::optional<bool> undecided,
                                    double margin, double alpha);

}  // namespace bakeoff
