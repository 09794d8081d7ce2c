#pragma once

// Records of a race, as plain values. Everything shown anywhere is a pure function of the manifest, the
// parity records and the trials. Times are nanoseconds of CLOCK_MONOTONIC, measured inside the worker where
// it runs.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/texts.h"

namespace bakeoff {

inline constexpr int kRecordVersion = 1;

// A contender's end before its time: data, never an abort of the race.
struct Failure {
  std::string stage = {};     // environment, emit, start, import, build, parity, warmup, run, close
  std::string reason = {};    // one line
  std::string log_tail = {};  // last lines of what the worker printed
  bool operator==(const Failure&) const = default;
};

// How long a training loop waited for its next batch; the first one of each epoch apart.
struct BatchWait {
  int64_t ns = 0, batches = 0;
  int64_t first_ns = 0, firsts = 0;
  bool operator==(const BatchWait&) const = default;
};

// n training steps between two completion barriers.
struct Burst {
  int64_t ns = 0;
  int64_t steps = 0;
  int64_t late_ns = 0;     // of work after the end it claims (evidence/barrier.h)
  int64_t switches = 0;    // involuntary context switches of its threads meanwhile
  int64_t asked = 0;       // steps asked for; 0: not recorded
  int64_t went_by_ns = 0;  // from request to answer by our own clock; 0: not recorded
  // Losses answered since the burst before (the first one has those of first step and warm-up too), by the
  // number of steps since the weights were loaded.
  std::map<int64_t, double> losses = {};
  std::map<std::string, double> used = {};  // processor time, page faults, ... (evidence/usage.h)
  std::optional<BatchWait> wait = {};       // absent: it cannot be told from the step itself
  // Steps before the burst that do not count, right after the pause, and nanoseconds from asking to answer.
  int64_t lead_steps = 0, lead_ns = 0;
  int64_t counted_ns() const;
  double ms_per_step() const { return static_cast<double>(counted_ns()) / 1e6 / static_cast<double>(steps); }
  bool operator==(const Burst&) const = default;
};

// What a burst counts: the worker's own time, unless by our clock noticeably more went by from request to
// answer; then that. The way there and back, and the nudge (audit/audit.h), take 2 ms at
// most: a worker gains no more than that, or half a percent, by what it says.
inline int64_t Burst::counted_ns() const {
  constexpr int64_t kOnTheWay = 2'000'000;
  return went_by_ns - ns > std::max(kOnTheWay, went_by_ns / 200) ? went_by_ns : ns;
}

// What a worker tells of one output.
struct ToldOutput {
  int64_t size = 0;    // elements
  double last = 0;     // of the last row
  double squares = 0;  // the sum of all elements' squares
};

// What the referee found in one burst of a trial (audit/audit.h).
struct Audit {
  int64_t burst = 0;  // its number within the trial, from 0, void ones included
  int64_t steps = 0;
  // The worst loss, relative; the parameters' distance as a share of how far the referee's moved.
  double loss_error = 0, loss_limit = 0;
  double moved_error = 0, moved_limit = 0;
  std::string differs = {};  // what is not the referee's, in words; empty: nothing
  bool operator==(const Audit&) const = default;
};

// A copy from the host to the device by itself, the device idle before and after: the median of several.
struct Transfer {
  std::string of = {};  // "batch": what every step copies; "data": all rows, which stay on the device
  int64_t ns = 0, bytes = 0;
  bool operator==(const Transfer&) const = default;
};

// What the host did during one round of bursts, one burst of each member of a heat (evidence/host_rounds.h).
struct HostRound {
  int64_t wall_ns = 0;
  std::map<std::string, double> seen = {};  // "steal", "others", ...: HostChange's numbers, by name
  Texts absent = {};                        // the others: why there is no number
  std::string busy = {};                    // which rule was broken, in words; empty: none
  bool rerun = false;                       // its bursts do not count: the whole round was run again
  // Rounds of a heat that are too short to be judged each share a number here, counted from 1, and were
  // judged together; `seen`, `absent` and `busy` are those of all of them. 0: not recorded, a round of its
  // own.
  int64_t stretch = 0;
  bool operator==(const HostRound&) const = default;
};

// Where a framework dispatches asynchronously its marks are times of dispatch, not of work: marks show work
// only if their mean lies within a fifth of a burst's time a step. Both in one unit.
inline bool marks_show_work(double mean_mark, double step) {
  return std::abs(mean_mark - step) <= 0.2 * step;
}

// One contender in one heat, in one fresh process.
struct Trial {
  std::string contender = {};                         // Contender::id
  int heat = 0;                                       // counted from 1
  std::string started = {};                           // UTC
  std::optional<Failure> failure = {};                // absent: ok
  std::optional<std::string> invalid = std::nullopt;  // a broken rule, e.g. "loss is not finite"
  std::string dropped = {};                           // why it was not timed although it ran; empty: it was
  double behind_leader = 0;         // of a dropped one: its fastest step over the leader's step
  std::string look_disturbed = {};  // of a dropped one: why this look at it does not count; empty: it does
  int64_t start_ns = 0;             // process start to hello
  int64_t import_ns = 0;            // importing the framework
  int64_t build_ns = 0;             // script, model, weights, data
  int64_t first_step_ns = 0;        // first training step up to the barrier: compilation included
  bool cold = false;                // no compilation cache of this run existed before
  bool confirms = false;            // of the heats that measure the winner again: no part of the verdict
  bool alone = false;               // start, import, build and first step had the machine to themselves
  int64_t start_up_ns = 0;          // all of that, seen from outside; 0: not recorded
  std::optional<Transfer> transfer = {};  // absent: it computes on the CPU, or does not tell
  int64_t warmup_ns = 0;                  // further steps before the bursts
  std::vector<Burst> bursts = {};
  std::vector<int64_t> step_ns = {};         // pipelined step times from the marks, bursts only
  std::vector<int64_t> warmup_step_ns = {};  // the same of the warm-up
  int64_t warmup_bursts = 0;                 // leading bursts that were still warm-up (evidence/warm_up.h)
  std::string steadiness = {};               // of what follows: "steady", "not steady", "too short"
  double drift = 0;                          // second half over first half, less 1
  std::vector<HostRound> rounds = {};        // in the order they were run; one for each burst and rerun
  std::vector<Burst> void_bursts = {};       // of the rounds that were run again
  std::vector<Audit> audits = {};            // of some bursts, drawn at random
  std::optional<double> last_loss = std::nullopt;
  double user_s = 0;  // rusage of the worker and its children
  double system_s = 0;
  int64_t peak_rss_bytes = 0;
  int64_t involuntary_switches = 0;
  // Bytes, each where it can be had: "built_rss_bytes" (model, weights and data, before the first step),
  // "pss_bytes" (after the last burst), "allocator_peak_bytes" (the framework's own count); "on_gpu": 1 where
  // it computes on one.
  std::map<std::string, double> memory = {};
  Texts not_sampled = {};   // of what evidence/usage.h and race/sensing.h name: why some burst lacks it
  Texts sensors_lost = {};  // of these: what earlier bursts had, and why there is no more
  Texts effective = {};     // what the framework actually did
  Texts versions = {};
  bool operator==(const Trial&) const = default;
};

// One comparison of the gate: the worst tensor of a group.
struct ParityCheck {
  std::string what = {};    // "float64 loss", "float64 gradients", "optimizer update", "float32 losses", ...
  std::string tensor = {};  // the worst one: "grad/conv1.weight", "step 7"
  double error = 0;         // relative
  double tolerance = 0;
  bool passed = false;
  bool operator==(const ParityCheck&) const = default;
};

struct Parity {
  std::string contender = {};
  std::optional<Failure> failure = {};  // the gate could not be run
  std::vector<ParityCheck> checks = {};
  // The first diverging tensor in the order output, loss, gradients, update, buffers, losses; empty: equal.
  std::string diverges_at = {};
  double divergence = 0;
  // Which known variant of the recipe reproduces what the contender did, e.g. "matches epsilon inside the
  // root".
  std::string explanation = {};
  std::vector<double> losses = {};          // float32, one a step
  std::vector<double> referee_losses = {};  // what they were compared with, float64
  int64_t first_step_cold_ns = 0;           // of the float32 process: 0 where it was not measured
  Texts effective = {};
  Texts versions = {};
  std::string proven = {};  // UTC
  bool reused = false;      // by an earlier run, from exactly the same inputs (gate/proofs.h)
  bool passed() const { return !failure && diverges_at.empty(); }
  bool operator==(const Parity&) const = default;
};

// A framework with its execution settings.
struct Contender {
  std::string id = {};           // "torch[compile=default]": unique within a run, as shown
  std::string framework = {};    // "torch"
  std::string environment = {};  // "torch"
  std::map<std::string, std::string> settings = {};  // every setting of the framework
  std::string script = {};                           // file name in RUN/scripts
  std::string own_script = {};                       // the user's file, where one is named
  Texts controls = {};        // every control of records/controls.h that its process is to run under
  Texts stated = {};          // those of them that the recipe states for this contender
  int64_t compile_ns = 0;     // of a program (worker/compiled_contender.h), apart from every start-up
  std::string compiler = {};  // its compiler; empty: nothing was compiled
  bool operator==(const Contender&) const = default;
};

struct Host {
  std::string name = {}, kernel = {}, cpu = {}, os = {};
  int cpus = 0;  // in the affinity mask
  int64_t memory_bytes = 0;
  Texts more = {};  // governor, THP, malloc settings, cgroup quota, ...
  bool operator==(const Host&) const = default;
};

// A line of the fairness diff: what each framework does where the user says nothing.
struct FairnessLine {
  std::string topic = {};
  std::vector<std::string> values = {};  // parallel to `FairnessDiff::frameworks`
  bool differs = false;
  bool operator==(const FairnessLine&) const = default;
};
struct FairnessDiff {
  std::vector<std::string> frameworks = {};
  std::vector<FairnessLine> lines = {};
  bool operator==(const FairnessDiff&) const = default;
};

// What a run set out to do: run.json, written before the first worker starts.
struct Manifest {
  int version = kRecordVersion;
  std::string bakeoff_version = {};
  std::string started = {};
  std::string recipe_name = {};
  std::string recipe_file = {};
  std::string recipe_text = {};
  std::string workload_text = {};   // IR
  std::string published_text = {};  // CSV of the recipe's [published]
  std::string weights_sha256 = {};
  std::string data_sha256 = {};
  Texts text_sha256 = {};             // of each file of a text, by path (plan/data_digests.h)
  std::string data_description = {};  // "MNIST, 60,000 train images"
  int64_t data_rows = 0;              // samples of an epoch; 0: not recorded
  Host host = {};
  std::vector<Contender> contenders = {};
  std::vector<Failure> not_started = {};    // parallel to contenders; empty reason = fine
  std::vector<double> referee_losses = {};  // float64, one a step
  FairnessDiff fairness = {};
  Texts worker_environment = {};  // variables set for every worker
  Texts controls = {};            // of all contenders that state none of their own (records/controls.h)
  Texts calibration = {};         // what was used of the machine's profile (calibrate/profile.h), for people
  std::vector<std::string> notes = {};  // what the machine refused, said before the race
  bool operator==(const Manifest&) const = default;
};

}  // namespace bakeoff
