#pragma once

// Where warm-up ends, and whether it ends at all.
//
//   TRY(SteadyState state, find_steady(step_ms));          // from the very first step of the process
//   if (!state.steady()) report(state.state, state.drift);  // shown with its drift, not ranked as steady
//   const auto used = span(step_ms).subspan(state.begin);
//
// 1. The first `skip` steps (compilation, first iteration) are left out: they are reported separately.
// 2. Logs are taken. Spikes (more than 5 robust standard deviations from the median of the 11 steps around
//    them) are replaced by that median for this analysis only: they stay in `used`.
// 3. PELT with penalty 3 ln n x long-run variance (stats/change_points.h). The last segment is kept.
//    Cross-check by MSER-5: if it would start later, in the first half of that segment, and what it leaves
//    out differs (99%), its start is used: the rest of a slow decay can be too small for PELT.
// 4. Drift. Within the last segment the second half must not differ from the first, and it must have no
//    trend. PELT cuts a slow drift into steps: if one straight line fits several segments at the end as
//    well as their levels do, its slope is the trend. So a drift is recognised, and one late step is not
//    mistaken for a drift. Either counts only if it is significant (99%, 99.9%) *and* larger than
//    `tolerance`. A series that changes level twice or more in its second half drifts too.

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
  double tolerance = 0.01;  // relative change that still counts as no drift
};

struct SteadyState {
  Steadiness state = Steadiness::kTooShort;
  size_t begin = 0;                   // the steady steps are [begin, end of input)
  std::vector<size_t> level_changes;  // first step of every segment of PELT after the first
  std::vector<size_t> spikes;         // steps that were replaced; all indices refer to the input
  double n_eff = 0;                   // effective size of the last segment, AR(1)
  // Second half of the last segment over its first half: 0.01 = 1% slower; with its 99% interval.
  double drift = 0;
  Interval drift_interval;
  // The trend over the steps that its line covers: 0.05 = their end is 5% slower than their start. It is not
  // extrapolated: a slope of a hundred steps says nothing about ten thousand.
  double trend = 0;
  // drift_interval lies within +-tolerance: a drift of that size is excluded, not merely undetected.
  bool equivalent = false;

  bool steady() const { return state == Steadiness::kSteady; }
  bool operator==(const SteadyState&) const = default;
};

// step_ms: consecutive steps of one process in any unit. Error: a time is not a positive finite number. Too
// few steps are no error but kTooShort; begin is then the first step after `skip` or later.
Result<SteadyState> find_steady(std::span<const double> step_ms, const SteadyOptions& options = {});

}  // namespace bakeoff::stats
