#pragma once

// What one member of a heat does: it starts, warms up, runs a burst whenever it is its turn, and ends.
// Between its turns it is frozen. Whatever fails is in its trial.

#include <cstdint>
#include <memory>

#include "audit/audit.h"
#include "plan/lane.h"
#include "plan/plan.h"
#include "race/sensing.h"
#include "records/trial.h"
#include "worker/worker.h"

namespace bakeoff {

// While it lives.
struct Member {
  std::unique_ptr<Worker> worker;
  Trial trial;
  WorkerSensors sensors;
  WorkerSpec granted = {};  // as it was started
  int64_t burst_steps = 2;
  double step_s = 0;                   // the last one known of the warm-up
  const AuditGround* audit = nullptr;  // none: its bursts go on from each other, and nobody audits them
  bool nudges = true;                  // its parameters can be changed between steps
  std::vector<ShownBurst> shown = {};  // what it showed of its bursts
  // Of the round under way.
  int64_t cpu_ns = 0;
  int64_t jump_ns = 0;
  size_t bursts = 0, marks = 0;  // when it began
};

// Import, build, first step; ends frozen.
void start_member(const Plan& plan, const GateContender& entry, Sensing& sensing, Member& member);
// Steps before the bursts, with the machine to itself; they also tell how long a burst is.
void warm_up(Member& member, Sensing& sensing, int64_t steps);
// Once before the bursts: back to the initial weights, a lead-in, a nudge. What a framework compiles for
// these is compiled afterwards.
void rehearse(const Plan& plan, Member& member);
// Back to the initial weights, lead-in, nudge, and the burst itself.
void run_burst(const Plan& plan, Member& member, Sensing& sensing);
// Has the referee compute the drawn bursts, and one whose losses lie apart, or that alone; a trial that shows anything else is invalid.
void audit(const std::string& group, Member& member, bool apart_alone);
// Single steps more tell outstanding work from threads that only spin (evidence/barrier.h).
void judge_barrier(Member& member);
// Takes over what its process used.
void end_member(Member& member);

}  // namespace bakeoff
