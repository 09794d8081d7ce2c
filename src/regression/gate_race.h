#pragma once

// Base and head as contenders of one race: heats until every contender is decided, the machine is found too noisy, or
// the time is over. What runs is behind an interface, so that tests can play it.

#include <string>
#include <vector>

#include "base/progress.h"
#include "base/result.h"
#include "base/time_budget.h"
#include "regression/outcome.h"
#include "stats/burst_plan.h"
#include "stats/regression.h"

namespace bakeoff::regression {

// What one heat gave of one contender: of base (0) and head (1). A heat of whole runs gives several pairs.
struct PairHeats {
  std::vector<stats::HeatResult> heats = {};
  std::vector<stats::PastHeat> past = {};  // d = log(head / base), for each of `heats`
};

// The two versions of some contenders, ready to run.
class Pairing {
 public:
  virtual ~Pairing() = default;
  virtual std::vector<Row> rows() const = 0;  // contender and file
  // Runs these contenders (by their place in rows()), both versions of each, interleaved. Fewer results than asked for
  // mean an interruption. An error names the version that failed. `rounds`: bursts of each, fewer where they would end
  // after `left_s` seconds.
  virtual Result<std::vector<PairHeats>> heat(const std::vector<size_t>& open, int64_t rounds,
                                              double left_s) = 0;
  // What a round of the open ones costs, in seconds.
  virtual double round_s(const std::vector<size_t>& open) const = 0;
  virtual bool whole_runs() const { return false; }
  virtual std::string per() const = 0;  // what a time is of: "sample", "step", "run"
  // What differs beside the time, and what disturbed; after the race.
  virtual std::vector<std::string> notes() const { return {}; }
};

// Fills rows and seconds of `outcome`, whose settings it takes but for the budget, which `time` is. It returns early
// after Ctrl-C.
Status race(Pairing& pairing, Outcome& outcome, const Progress& progress, const TimeBudget& time);

}  // namespace bakeoff::regression
