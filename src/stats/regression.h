#pragma once

// Whether a new version (head) is slower than an old one (base) by more than a margin: a test that may be looked at
// after every heat and stopped at any time.
//
//   RegressionTest test({.margin = 0.02, .alpha = 0.01});
//   for (;;) {
//     CHECK_OK(test.add(heat));                                // base is contender 0, head is contender 1
//     const NextStep next = next_step(test, past, time);
//     if (next.what != NextStep::What::kRunHeat) break;       // next.what says why the gate ends
//   }
//
// Two claims are possible, each one-sided, about d = log(head / base) and epsilon = log1p(margin):
//
//   REGRESSION      d > epsilon     false with probability <= alpha, whatever d <= epsilon is true
//   NO REGRESSION   d < epsilon     false with probability <= alpha, whatever d >= epsilon is true
//
// at all looks together. Both rest on the interval that races use (stats/level.h: the calibrated boundary of the t
// statistic, the mean instead of the quicker bursts where stalls differ, the sign-flip backup where the data show a
// sign) at level 2 alpha, so that either of its ends has alpha for itself. Where neither holds it is undecided.

#include <cstddef>
#include <optional>
#include <span>
#include <string_view>

#include "base/result.h"
#include "stats/burst_plan.h"
#include "stats/interval.h"
#include "stats/pair_table.h"

namespace bakeoff::stats {

struct RegressionOptions {
  double margin = 0.02;  // relative, > 0
  double alpha = 0.01;   // of either claim, 0 < alpha < 0.5
  bool operator==(const RegressionOptions&) const = default;
};

enum class Change { kUndecided, kRegression, kNone };
// "UNDECIDED", "REGRESSION", "NO REGRESSION".
std::string_view name(Change change);

class RegressionTest {
 public:
  explicit RegressionTest(const RegressionOptions& options);

  // A heat of base (contender 0) and head (contender 1). Errors as of PairTable::add().
  Status add(const HeatResult& heat);

  size_t heats() const { return table_.met(1, 0); }
  double mean() const;  // of d = log(head / base); 0 before the first heat
  // Of d: the lower end is below the truth with probability 1 - alpha, and so is the upper one above it.
  Interval interval() const;
  Change change() const;
  // At the level of one end; what the claims of a later number of heats will be made at.
  double level() const;
  const RegressionOptions& options() const { return options_; }

 private:
  RegressionOptions options_;
  PairTable table_;
};

// What a gate has used and may use, in seconds. Its claims hold for any reason to stop.
struct GateTime {
  double spent_s = 0;
  double heat_s = 0;  // of the next heat
  double budget_s = 0;
};

// Heats before which nothing is said about what the budget allows.
inline constexpr size_t kTellingHeats = 4;

// What is known about the rest of a gate that has decided nothing.
struct GateOutlook {
  double reachable_margin =
      0;  // relative: identical versions would be found to differ by less in this budget
  std::optional<double> decides_s =
      {};                  // whole budget with which it is likely decided if the ratio is as seen
  bool too_noisy = false;  // identical versions would remain undecided in this budget
};

struct NextStep {
  enum class What {
    kRunHeat,
    kDecided,   // REGRESSION or NO REGRESSION
    kTooNoisy,  // the margin is not reachable on this machine within the budget
    kNoTime,    // the next heat would exceed the budget
  };
  What what = What::kRunHeat;
  GateOutlook outlook = {};
};

// `past`: the heats so far (for the variance of those to come); `rounds`: of the next heat.
NextStep next_step(const RegressionTest& test, std::span<const PastHeat> past, int64_t rounds,
                   const GateTime& time);

}  // namespace bakeoff::stats
