#pragma once

// Records of a race, as plain values. Everything that is shown is a pure function of the manifest, the parity
// records and the trials. Times are nanoseconds of CLOCK_MONOTONIC, measured inside the worker unless stated
// otherwise.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/texts.h"
#include "records/failure.h"

namespace bakeoff {

inline constexpr int kRecordVersion = 1;

// How long a training loop waited for its batches. The first batch of each epoch is counted separately.
struct BatchWait {
  int64_t ns = 0, batches = 0;       // all batches but the first of an epoch
  int64_t first_ns = 0, firsts = 0;  // first batches of an epoch
  bool operator==(const BatchWait&) const = default;
};

// n training steps between two completion barriers.
struct Burst {
  int64_t ns = 0;
  int64_t steps = 0;
  int64_t late_ns = 0;     // time that it worked on after the end that it reported (evidence/barrier.h)
  int64_t switches = 0;    // involuntary context switches of its threads during the burst
  int64_t asked = 0;       // steps that were requested; 0: not recorded
  int64_t elapsed_ns = 0;  // time from request to answer by our clock; 0: not recorded
  // Losses reported since the previous burst, by the number of steps since the weights were loaded. Those of
  // the first burst include the first step and the warm-up.
  std::map<int64_t, double> losses = {};
  std::map<std::string, double> used = {};  // processor time, page faults, ... (evidence/usage.h)
  std::optional<BatchWait> wait = {};       // absent: the framework takes batches inside its step
  // The lead-in: steps right after the pause, before the burst, that do not count; and its duration from
  // request to answer, in ns.
  int64_t lead_steps = 0, lead_ns = 0;
  // By our clock in ns, 0: not recorded: when the worker was woken for it, since the heat began, and from then
  // until it was frozen again: what the burst costs with everything that does not count.
  int64_t woken_ns = 0, awake_ns = 0;
  int64_t counted_ns() const;
  double ms_per_step() const { return static_cast<double>(counted_ns()) / 1e6 / static_cast<double>(steps); }
  bool operator==(const Burst&) const = default;
};

// The duration that counts: the worker's own, or ours if ours is noticeably longer. The messages and the
// nudge (audit/audit.h) take 2 ms at most, so a worker that reports too little gains at most 2 ms or 0.5%.
inline int64_t Burst::counted_ns() const {
  constexpr int64_t kMessages = 2'000'000;
  return elapsed_ns - ns > std::max(kMessages, elapsed_ns / 200) ? elapsed_ns : ns;
}

// What a worker reports of one output.
struct ReportedOutput {
  int64_t size = 0;                 // number of elements
  double last = 0;                  // last element of the last row
  double squares = 0;               // sum of the squares of all elements
  std::vector<int64_t> words = {};  // scenario "generate": all elements
};

// The referee's check of one burst of a trial (audit/audit.h).
struct Audit {
  int64_t burst = 0;  // number of the burst within the trial, from 0, void bursts included
  int64_t steps = 0;
  // loss_error: the worst relative error of a loss. moved_error: the distance between the parameters and the
  // referee's, divided by how far the referee's moved.
  double loss_error = 0, loss_limit = 0;
  double moved_error = 0, moved_limit = 0;
  std::string differs = {};  // what differs from the referee, in words; empty: nothing
  bool operator==(const Audit&) const = default;
};

// A copy from host to device while nothing else runs on the device: the median of several.
struct Transfer {
  std::string of = {};  // "batch": copied in every step; "data": all rows, which stay on the device
  int64_t ns = 0, bytes = 0;
  bool operator==(const Transfer&) const = default;
};

// The state of the host during one round: one burst of each member of a heat (evidence/host_rounds.h).
struct HostRound {
  int64_t wall_ns = 0;
  std::map<std::string, double> seen = {};  // "steal", "others", ...: numbers of sample::HostChange, by name
  Texts absent = {};                        // why a number is missing, by name
  std::string busy = {};                    // the rule that was broken, in words; empty: none
  bool rerun = false;                       // its bursts do not count: the whole round was run again
  // Rounds that are too short to be judged alone are judged together: they share a number here, counted
  // from 1 within the heat, and have the same `seen`, `absent` and `busy`. 0: the round was judged alone,
  // or no number was recorded.
  int64_t stretch = 0;
  bool operator==(const HostRound&) const = default;
};

// Whether step marks are times of work. A framework that dispatches asynchronously marks the dispatch; marks
// show work if their mean lies within 20% of the burst's time per step. Both arguments have the same unit.
inline bool marks_show_work(double mean_mark, double step) {
  return std::abs(mean_mark - step) <= 0.2 * step;
}

// One contender in one heat, in one fresh process.
struct Trial {
  std::string contender = {};           // Contender::id
  int heat = 0;                         // counted from 1
  std::string node = {};                // machine of a fleet that ran the heat; empty: the run's own host
  std::string started = {};             // UTC
  int64_t heat_ns = 0;                  // duration of its heat, audits included; 0: not recorded
  std::optional<Failure> failure = {};  // absent: ok
  std::optional<std::string> invalid = std::nullopt;  // a broken rule, e.g. "loss is not finite"
  std::string dropped = {};                           // reason it was skipped; empty if it was timed
  double behind_leader = 0;               // if dropped: its fastest step divided by the leader's step
  std::string look_disturbed = {};        // if dropped: why this look does not count; empty: it counts
  int64_t start_ns = 0;                   // process start to hello
  int64_t import_ns = 0;                  // importing the framework
  int64_t build_ns = 0;                   // loading script, weights and data, building the model
  int64_t first_step_ns = 0;              // first training step up to the barrier, compilation included
  bool cold = false;                      // this run had no compilation cache before
  bool confirms = false;                  // belongs to a confirmation heat, which has no part in the verdict
  bool alone = false;                     // no other worker ran during start, import, build and first step
  int64_t start_up_ns = 0;                // duration of these four by our clock; 0: not recorded
  std::optional<Transfer> transfer = {};  // absent: it computes on the CPU, or does not report it
  int64_t warmup_ns = 0;                  // duration of the warm-up steps
  std::vector<Burst> bursts = {};
  std::vector<int64_t> step_ns = {};         // step times in the bursts, from the marks
  std::vector<int64_t> warmup_step_ns = {};  // step times in the warm-up, from the marks
  int64_t warmup_bursts = 0;                 // first bursts that were still warm-up (evidence/warm_up.h)
  std::string steadiness = {};               // the later bursts: "steady", "not steady", "too short"
  double drift = 0;                          // second half of the steps over the first half, minus 1
  std::vector<HostRound> rounds = {};        // in the order they were run; one for each burst and rerun
  std::vector<Burst> void_bursts = {};       // bursts of the rounds that were run again
  std::vector<Audit> audits = {};            // audits of some bursts, drawn at random
  std::string not_audited = {};              // why some that were due are missing: "the budget ended"
  std::optional<double> last_loss = std::nullopt;
  double user_s = 0;  // rusage of the worker and its children
  double system_s = 0;
  int64_t peak_rss_bytes = 0;  // of a worker with ranks, the sum of each one's own
  int64_t involuntary_switches = 0;
  // Each in bytes, if known: "built_rss_bytes" (model, weights and data, before the first step),
  // "pss_bytes" (after the last burst), "allocator_peak_bytes" (the framework's own count). "on_gpu" is 1
  // if it computes on a GPU.
  std::map<std::string, double> memory = {};
  Texts not_sampled = {};   // why a number of evidence/usage.h or race/sensing.h is missing in some burst
  Texts sensors_lost = {};  // numbers that earlier bursts had: why later bursts have them no more
  Texts effective = {};     // settings that the framework really used
  Texts versions = {};      // of packages
  bool operator==(const Trial&) const = default;
};

// One comparison of the gate. It names the worst tensor of its kind.
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
  std::optional<Failure> failure = {};  // why the gate could not be run
  std::vector<ParityCheck> checks = {};
  // The first tensor that diverges, in the order output, loss, gradients, update, buffers, losses; empty:
  // none.
  std::string diverges_at = {};
  double divergence = 0;
  // The known variant of the recipe that reproduces the contender's result: "matches epsilon inside the
  // root".
  std::string explanation = {};
  std::vector<double> losses = {};       // float32, one for each step
  std::vector<double> loss_limits = {};  // the relative error that was allowed for each; empty: not recorded
  std::vector<double> referee_losses = {};  // float64 losses that they were compared with
  int64_t first_step_cold_ns = 0;           // first step of the float32 process; 0: not measured
  Texts effective = {};
  Texts versions = {};
  std::string proven = {};  // UTC
  bool reused = false;      // proven by an earlier run from exactly the same inputs (parity/proof_store.h)
  bool passed() const { return !failure && diverges_at.empty(); }
  bool operator==(const Parity&) const = default;
};

// A framework with its execution settings.
struct Contender {
  std::string id = {};           // "torch[compile=default]": unique within a run, and shown
  std::string framework = {};    // "torch"
  std::string environment = {};  // "torch"
  std::map<std::string, std::string> settings = {};  // every setting of the framework
  std::string script = {};                           // file name in RUN/scripts
  std::string own_script = {};                       // path of the user's script; empty: it was emitted
  Texts controls = {};        // all controls that its process is to have (records/controls.h)
  Texts stated = {};          // the controls that the recipe states for this contender
  int64_t compile_ns = 0;     // compiling a C++ contender (worker/compiled_contender.h); in no start-up time
  std::string compiler = {};  // the compiler of a C++ contender; empty: nothing was compiled
  bool operator==(const Contender&) const = default;
};

struct Host {
  std::string name = {}, kernel = {}, cpu = {}, os = {};
  int cpus = 0;  // number of CPUs in the affinity mask
  int64_t memory_bytes = 0;
  Texts more = {};  // governor, THP, malloc settings, cgroup quota, ...
  bool operator==(const Host&) const = default;
};

// One line of the fairness diff: what each framework does by default.
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

// What a run is to do: run.json, written before the first worker starts.
struct Manifest {
  int version = kRecordVersion;
  std::string bakeoff_version = {};
  std::string started = {};
  std::string recipe_name = {};
  std::string recipe_file = {};
  std::string recipe_text = {};
  std::string workload_text = {};   // IR
  std::string published_text = {};  // CSV text of the recipe's published table
  std::string weights_sha256 = {};
  std::string data_sha256 = {};
  Texts source_sha256 = {};           // SHA-256 of what the data was made of, by path (data/own_data.h)
  std::string data_description = {};  // "MNIST, 60,000 train images"
  int64_t data_rows = 0;              // number of rows of the data; 0: not recorded
  Host host = {};
  std::vector<Contender> contenders = {};
  std::vector<Failure> not_started = {};    // parallel to contenders; an empty reason means no failure
  std::vector<double> referee_losses = {};  // float64, one for each step
  FairnessDiff fairness = {};
  Texts worker_environment = {};  // variables set for every worker
  Texts controls = {};            // controls of contenders that state none (records/controls.h)
  Texts calibration = {};         // values taken from the machine's profile, in words (calibrate/profile.h)
  std::vector<std::string> notes = {};  // controls that the machine refused, reported before the race
  std::string baseline = {};            // id of the contender that all are held against; empty: none
  bool operator==(const Manifest&) const = default;
};

}  // namespace bakeoff
