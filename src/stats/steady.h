#pragma once

// Where warm-up ends, and whether it ends at all.
//
//   TRY(SteadyState state, find_steady(step_ms));          // from the very first step of the process
//   if (!state.steady()) report(state.state, state.drift);  // shown with its drift, not ranked as if steady
//   const auto used = span(step_ms).subspan(state.begin);
//
// 1. The first `skip` steps (compile, first iteration) are left out: they are reported on their own.
// 2. Logs; spikes (farther than 5 robust standard deviations from the median of the 11 around them) are
//    replaced by that median, for this analysis only: they stay in `used`.
// 3. PELT with penalty 3 ln n x long-run variance (stats/change_points.h). The last segment is kept.
//    Cross-check by MSER-5: where it would start later, in the first half of that segment, and what it leaves
//    out differs (99%), it is believed: the rest of a slow decay, too small for PELT to cut.
// 4. Drift. Within the last segment the second half must not differ from the first, and its trend must not
//    carry it away. PELT cuts a slow drift into stairs: where one straight line fits several segments
//    at the end no worse than their levels do, its slope is the trend; so a drift is seen for what it is, and
//    one late step is not taken for one. Both: significant (99%, 99.9%) *and* larger than `tolerance`.
//    A series that changes level twice or more in its second half is drifting, too.
//
// In a simulation a coefficient-of-variation window kept 13% of bias on a late step, and skipping ten steps
// 3.5%; PELT keeps none, but alone it misses a slow drift.

#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "stats/interval.h"

namespace bakeoff::stats {

enum class Steadiness {
  kSteady,
  kDrifting,  // NOT STEADY
  kTooShort,  // the last segment is worth fewer than 10 independent steps: run longer
};
// "steady", "not steady", "too short".
std::string_view name(Steadiness state);

struct SteadyOptions {
  size_t skip = 1;
  double tolerance = 0.01;  // relative change that is accepted as no drift
};

struct SteadyState {
  Steadiness state = Steadiness::kTooShort;
  size_t begin = 0;                   // the steady steps are [begin, end of input)
  std::vector<size_t> level_changes;  // first step of every segment after the first, PELT's
  std::vector<size_t> spikes;         // steps that were replaced; indices into the input, as all above
  double n_eff = 0;                   // of the last segment, AR(1)
  // Second half of the last segment over its first half: 0.01 = 1% slower; with its 99% interval.
  double drift = 0;
  Interval drift_interval;
  // The trend over the steps that its line covers: 0.05 = their end is 5% slower than their start. Not
  // carried further: a slope of a hundred steps says nothing about ten thousand.
  double trend = 0;
  // drift_interval lies within +-tolerance: not only is no drift seen, one of that size is excluded.
  bool equivalent = false;

  bool steady() const { return state == Steadiness::kSteady; }
  bool operator==(const SteadyState&) const = default;
};

// step_ms: consecutive steps of one process in any unit. Error when a time is not a positive finite number.
// Too few steps are no error but kTooShort, begin then being the first step after `skip` or later.
Result<SteadyState> find_steady(std::span<const double> step_ms, const SteadyOptions& options = {});

}  // namespace bakeoff::stats
