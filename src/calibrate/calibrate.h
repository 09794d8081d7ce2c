#pragma once

// Calibration: real A/A measurements, two identical workers, under each control in turn. A control is kept
// only if it reduces the difference between the workers by more than chance.
//
// 1. Allocators: the default and every other one on this machine, in rounds of one block each in random
// order, so
//    that a change of the machine affects all of them. Of the settings that pass, the one with the least noise is
//    kept.
// 2. The other controls, each alone in addition to those kept so far, in rounds again.
// 3. If several passed, all of them together against the best one alone.
//
// A control passes if p_narrower() (stats/spread.h) <= alpha / number of controls that could be kept. With
// `quick` only the tuned allocator is tried: nine blocks per control suffice to detect a reduction of the
// noise to a fifth. The decision is made once, when the time of the step is over, never during it. The
// number of threads is not a noise control: one pinned thread is measured and shown, and a recipe may ask
// for it; calibration never sets it.

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "calibrate/profile.h"
#include "records/controls.h"
#include "records/watch.h"
#include "worker/grants.h"

namespace bakeoff {

struct CalibrateOptions {
  double minutes = 10;
  bool quick = false;  // tuned allocator and one pinned thread only
  double alpha = 0.05;
  uint64_t seed = 1;
};

// A control to try, or the reason why it is not tried.
struct Candidate {
  std::string name = {};
  Controls controls = {};
  std::string why_not = {};  // empty: try it
};
Controls baseline(const Machine& machine);
std::vector<Candidate> allocator_candidates(const Controls& base, const Machine& machine, bool quick);
std::vector<Candidate> other_candidates(const Controls& base, const Machine& machine, bool quick);

// Runs one A/A block: two fresh identical workers with alternating bursts. Returns both trials; an error if
// one of them failed. `block` counts from 1.
using RunBlock = std::function<Result<std::vector<Trial>>(const Controls& controls, int block,
                                                          const Happening& happening)>;

// Everything of the profile except what the caller knows (host, framework, date). After Ctrl-C: what was
// measured so far, with `complete` false. Error: the default itself cannot be measured.
Result<Profile> calibrate(const CalibrateOptions& options, const Machine& machine, const RunBlock& run_block,
                          const Clock& clock, const Watch& watch);

}  // namespace bakeoff
