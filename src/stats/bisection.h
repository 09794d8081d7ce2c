#pragma once

// The first slow version among many, found by noisy comparisons.
//
//   Bisection search(64, shift);                 // version 0 is good, version 64 is slower by `shift` (log scale)
//   while (const auto at = search.next()) {
//     if (does not build) search.skip(*at);
//     else search.observe(*at, {.mean = d, .variance = v});   // version *at against version 0, raced as a pair
//   }
//   search.found();                              // {36, 36, 0.998}: version 36 is the first slow one
//
// One step is assumed: versions before the culprit are as fast as version 0, those from it on are slower by about
// `shift`. The prior is uniform over the positions 1 to n. A probe at m whose paired difference has mean d and variance
// v multiplies the posterior odds of "the culprit is at or before m" by N(d; shift, v) / N(d; 0, v) (Waeber, Frazier &
// Henderson 2013), but by no more than e^5 for one probe: noise that is not normal cannot settle a search alone. A probe
// tells most where the mass at or before it is nearest to 1/2. A version that cannot be probed leaves the culprit within
// a range.

#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "base/result.h"
#include "stats/burst_plan.h"

namespace bakeoff::stats {

// What a paired race of version 0 and another showed: d = log(other / version 0).
struct ProbeSeen {
  double mean = 0;
  double variance = 0;  // of the mean, > 0
  bool operator==(const ProbeSeen&) const = default;
};

// From the heats of a pair; at least one.
ProbeSeen seen_in(std::span<const PastHeat> heats);

// Whether the mean of some heats says enough about 0 against `shift`, so that a probe can end.
bool says_enough(const ProbeSeen& seen, double shift);

class Bisection {
 public:
  // positions >= 1; shift > 0, log scale. `sure`: posterior probability of one range at which the search ends.
  Bisection(size_t positions, double shift, double sure = 0.995);

  // A position strictly between good and bad. Any order, and again.
  void observe(size_t position, const ProbeSeen& seen);
  void skip(size_t position);

  // Where a probe tells most; nothing: one range is sure, or nothing is left to probe.
  std::optional<size_t> next() const;

  // The most probable range of versions that probes can separate: the first slow version is one of first ... last.
  struct Range {
    size_t first = 0, last = 0;
    double probability = 0;
    bool operator==(const Range&) const = default;
  };
  Range found() const;
  // Of each position 1 ... n being the first slow one; index 0 is position 1.
  std::vector<double> posterior() const;
  bool skipped(size_t position) const { return skipped_[position]; }

 private:
  std::vector<Range> ranges() const;

  double shift_, sure_;
  std::vector<double> log_odds_;  // by position: sum of the logarithms of its probes' odds for "slow here"
  std::vector<bool> skipped_;
};

// What became of one probe.
struct Probe {
  std::optional<ProbeSeen> seen = {};  // absent: it does not build or run
};
// A probe ends after this number of heats even if they do not say enough; a later probe may return to the version.
inline constexpr size_t kMostHeatsOfProbe = 12;
// Runs one probe; an error ends the search, as the end of time does.
using RunProbe = std::function<Result<Probe>(size_t position)>;

// Probes until one range is sure, nothing is left to probe, or `most` probes were made.
Status search(Bisection& bisection, const RunProbe& probe, size_t most);

}  // namespace bakeoff::stats
