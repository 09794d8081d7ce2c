#pragma once

// Wrong statistics, to see that the proof notices: each must miss a bar (prove/prove_test.py).

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace bakeoff::prove {

enum class Mutant {
  kNone,
  // In the place of the judge.
  kIid,      // block means with the standard errors that independent steps would have
  kPooled,   // Welch's t over all steps of all blocks
  kPeeking,  // Student's t over blocks, as if each look were the only one
  kSlopes,   // bursts corrected for steal by a slope of each contender's own, learned from the heats before
  // In the measuring.
  kRerun,       // a round is run again when the first contender was slower in it than its bursts before
  kLengthened,  // a heat whose d contradicts the mean so far runs all its rounds once more
  kWholeBurst,  // the first step of a burst counts
  // Among many contenders.
  kUnshared,        // every pair at alpha
  kPooledVariance,  // every pair with the variance of all contenders
  // In what decides.
  kTrimmedAlone,  // the quicker bursts always
  // In fleets.
  kWavesOfOne,      // the next heat is planned when the last one is over, as on one machine
  kNodesForgotten,  // heats count as if one machine had run them
  kNodesVeto,       // no verdict on a pair whose difference depends on the node
};

// "iid", "pooled", "peeking", "slopes", "rerun", "lengthened", "whole-burst", "unshared", "pooled-variance",
// "trimmed-alone", "waves-of-one", "nodes-forgotten", "nodes-veto"; nothing for another word.
std::optional<Mutant> mutant(std::string_view name);
std::vector<std::string> mutants();

}  // namespace bakeoff::prove
