#pragma once

// How far a contender is from what the machine can do: model FLOPs and compulsory traffic of a step, from the
// op table, against the measured limits (roofline/limits.h). Pure functions.

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

// How many threads of a process compute at once: what its framework says that it uses ("threads" of the
// effective settings), at most the CPUs it may run on ("cpus"), at most the machine's `cpus`.
int threads_of(const Texts& effective, int cpus);

// The roofs over `threads` threads of a process; 0: all CPUs. Nothing where the limits lack the peak.
std::optional<Roofline> roofline_of(const roofline::Limits& limits, const ir::Workload& workload,
                                    const ir::Training& training, int64_t threads);

// What a contender's trials may not exceed. `limits` may be null: then the rules that need them are left out.
// `proof`: of the same contender, whose losses its race must repeat; null, or a workload that draws random
// numbers: not compared.
TrialBounds trial_bounds(const Contender& contender, const Parity* proof, const ir::Workload& workload,
                         const ir::Training& training, int cores, const roofline::Limits* limits);

// The same for every contender of a run, by its id. `machine` may be null; limits that were measured beside
// other work are too low to hold anybody against. Then those of `peak`, which the run measured for itself
// (run_peak() of records/machine_report.h), stand in; null: nothing was measured.
std::map<std::string, TrialBounds> bounds_of(const Manifest& manifest, const std::vector<Parity>& parities,
                                             const ir::Workload& workload, const ir::Training& training,
                                             const MachineReport* machine,
                                             const MachineReport* peak = nullptr);

}  // namespace bakeoff
