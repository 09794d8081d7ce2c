#pragma once

// What one member of a heat does: it starts, warms up, runs a burst whenever it is its turn, and ends.
// Between its turns it is frozen. Whatever fails is in its trial.

#include <cstdint>
#include <memory>

#include "lab/plan.h"
#include "lab/sensing.h"
#include "lab/trial.h"
#include "lab/worker.h"

namespace bakeoff::lab {

// While it lives.
struct Member {
  std::unique_ptr<Worker> worker;
  Trial trial;
  WorkerSensors sensors;
  int64_t burst_steps = 2;
  double step_s = 0;  // the last one known of the warm-up
  // Of the round under way.
  int64_t cpu_ns = 0;
  int64_t jump_ns = 0;
  size_t bursts = 0, marks = 0;  // when it began
};

// Import, build, first step; ends frozen.
void start_member(const Plan& plan, const GateContender& entry, Sensing& sensing, Member& member);
// Steps before the bursts, with the machine to itself; they also tell how long a burst is.
void warm_up(Member& member, Sensing& sensing, int64_t steps);
void run_burst(Member& member, Sensing& sensing);
// Single steps more tell outstanding work from threads that only spin (lab/barrier.h).
void judge_barrier(Member& member);
// Takes over what its process used.
void end_member(Member& member);

}  // namespace bakeoff::lab
