#pragma once

// How close a contender comes to the limits of the machine: model FLOPs and compulsory memory traffic of a
// step, from the op table, compared with the measured limits (roofline/limits.h). Pure functions.

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "evidence/invariants.h"
#include "evidence/roofline.h"
#include "ir/cost.h"
#include "ir/training.h"
#include "ir/workload.h"
#include "records/machine_report.h"
#include "records/trial.h"
#include "roofline/limits.h"

namespace bakeoff {

// How many threads of a process compute at the same time: what its framework reports ("threads" of the
// effective settings), at most the CPUs that it may run on ("cpus"), at most the machine's `cpus`.
int threads_of(const Texts& effective, int cpus);

// The roofs for `threads` threads of a process; 0: all CPUs. Nothing if the limits lack the peak.
std::optional<Roofline> roofline_of(const roofline::Limits& limits, const ir::Workload& workload,
                                    const ir::Training& training, int64_t threads);

// The bounds of a contender's trials. If `limits` is null, the rules that need limits are not checked.
// `proof`: the gate's record of the same contender, whose losses its race must repeat; with null, or a
// workload that draws random numbers, losses are not compared.
TrialBounds trial_bounds(const Contender& contender, const Parity* proof, const ir::Workload& workload,
                         const ir::Training& training, int cores, const roofline::Limits* limits);

// The bounds of every contender of a run, by id. `machine` may be null. Limits that were measured while other
// work ran are too low to compare with; then those of `peak`, which the run measured itself (run_peak() of
// records/machine_report.h), are used. `peak` null: nothing was measured.
std::map<std::string, TrialBounds> bounds_of(const Manifest& manifest, const std::vector<Parity>& parities,
                                             const ir::Workload& workload, const ir::Training& training,
                                             const MachineReport* machine,
                                             const MachineReport* peak = nullptr);

}  // namespace bakeoff
