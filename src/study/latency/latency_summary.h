#pragma once

// Results of recorded requests: percentiles with bounds where the queue is steady, its growth where it is
// not. Pure functions of the records.

#include <string>
#include <vector>

#include "evidence/invariants.h"
#include "recipe/recipe.h"
#include "stats/percentiles.h"
#include "study/latency/latency_trial.h"

namespace bakeoff {

enum class LatencyState {
  kSteady,
  kGrowing,    // more requests arrive than it can answer: there is no latency to quote
  kUnsettled,  // too close to its capacity, or too few requests, for a steady queue
  kFailed,     // the process failed, or its times break a rule
};

// One contender in one mode, all its processes together.
struct LatencyRow {
  std::string contender = {};
  double rate = 0;  // arrivals a second; 0: single stream
  LatencyState state = LatencyState::kFailed;
  int processes = 0;
  int64_t requests = 0;                             // that the percentiles rest on
  std::vector<stats::Percentile> percentiles = {};  // ms; kSteady only
  std::vector<stats::Interval> by_process = {};     // parallel: from the least to the greatest process, ms
  double mean_ms = 0;                               // of the latencies; kSteady only
  double service_ms = 0;                            // mean time of an answer, without waiting
  double load = 0;                                  // share of its capacity that is asked for; open loop only
  double growth_per_s = 0;                          // of the requests that wait; kGrowing only
  double late_ms = 0;     // 99% of the requests without a queue were begun within this
  std::string note = {};  // why there are no percentiles, or what to know of them; may be empty
  bool single_stream() const { return rate == 0; }
  bool operator==(const LatencyRow&) const = default;
};

// What a sound record cannot break: requests are taken up one at a time and not before they arrive; the
// worker's clock claims what went by, no more and hardly less; Little's law; an answer takes at least half of
// a step at full throughput (less: it was given before the output was there). None of a record that failed.
std::vector<Broken> check_latency(const LatencyTrial& trial);

// By rate, single stream first; contenders in the order of `ids`. `level` of every bound on its own.
std::vector<LatencyRow> latency_rows(const std::vector<LatencyTrial>& trials,
                                     const std::vector<std::string>& ids, const recipe::Latency& asked,
                                     double level);

// What a reader must know of the rows: how often the host disturbed them.
std::vector<std::string> latency_notes(const std::vector<LatencyTrial>& trials);

}  // namespace bakeoff
