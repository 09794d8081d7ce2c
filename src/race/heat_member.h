#pragma once

// What one member of a heat does: it starts, warms up, runs its bursts and ends; between its bursts it is
// frozen. Every failure goes into its trial.

#include <cstdint>
#include <functional>
#include <memory>

#include "audit/audit.h"
#include "plan/lane.h"
#include "plan/plan.h"
#include "race/sensed.h"
#include "race/sensing.h"
#include "records/trial.h"
#include "worker/worker.h"

namespace bakeoff {

// A contender's worker in a heat, while it lives.
struct Member {
  std::unique_ptr<Worker> worker;
  Trial trial;
  WorkerSensors sensors;
  WorkerSpec granted = {};  // what it was started from
  int64_t burst_steps = 2;
  // Takes part in every n-th round: in fewer where its step is long, or where it is far behind.
  int64_t every = 1;
  bool far_behind = false;             // HeatPlan::far_behind
  int64_t planned_bursts = 0;          // in this heat
  double step_s = 0;                   // last known step time of the warm-up
  bool began = false;                  // it was started, or failed to start
  const AuditGround* audit = nullptr;  // null: bursts continue each other and are not audited
  bool nudges = true;                  // its parameters can be changed between steps
  std::vector<ShownBurst> shown = {};  // what it reported of its bursts
  // State of the current round.
  int64_t cpu_ns = 0;
  int64_t jump_ns = 0;
  std::vector<size_t> took = {};  // rounds of the current stretch, from 0, in which it had a burst
  size_t bursts = 0, marks = 0;   // counts when the stretch began
};

// Imports, builds and makes the first step; then freezes the worker.
void start_member(const Plan& plan, const ContenderStart& entry, const Sensed& sensed, Sensing& sensing,
                  Member& member);
// Runs steps before the bursts while no other worker runs; their time also decides how many steps a burst
// has.
void warm_up(Member& member, Sensing& sensing, int64_t steps);
// Once before the bursts: restores the initial weights, runs a lead-in and a nudge. What a framework
// compiles for these is compiled then.
void rehearse(const Plan& plan, Member& member);
// Restores the initial weights, runs the lead-in, the nudge and the burst.
// `heat_ns`: when the heat began.
void run_burst(const Plan& plan, Member& member, Sensing& sensing, int64_t heat_ns);
// Lets the referee compute the drawn bursts, and one whose losses differ from the others; with
// `apart_alone` only that one. A trial that reported anything else becomes invalid. `late`: whether the budget has
// ended, after which nothing is audited.
void audit(const std::string& group, Member& member, bool apart_alone, const std::function<bool()>& late);
// Runs single steps to distinguish outstanding work from threads that only spin (evidence/barrier.h).
void judge_barrier(Member& member);
// Kills the worker and records what its process used. It has answered all that it was asked, so its own exit,
// of up to 2 s, would only cost time.
void end_member(Member& member);

}  // namespace bakeoff
