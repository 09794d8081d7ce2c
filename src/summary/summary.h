#pragma once

// What a run came to: the finished struct that every renderer takes. Computed offline from the run directory.

#include <optional>
#include <string>
#include <vector>

#include "evidence/evidence.h"
#include "evidence/host_rounds.h"
#include "evidence/input_wait.h"
#include "evidence/promise.h"
#include "evidence/roofline.h"
#include "evidence/usage.h"
#include "evidence/variance.h"
#include "ir/training.h"
#include "race/outlook.h"
#include "recipe/published_table.h"
#include "records/trial.h"
#include "summary/verdicts.h"
#include "table/numbers.h"
#include "table/section.h"

namespace bakeoff {

enum class ParityState { kPassed, kReported, kFailed, kNotRun };  // kReported: as-is track, differs

struct StartUp {     // milliseconds, medians over the heats
  double start = 0;  // process start
  double import = 0;
  double build = 0;
  double first_step = 0;  // warm compilation cache where the framework keeps one
  std::optional<double> first_step_cold = {};
  double total() const { return start + import + build + first_step; }
  bool operator==(const StartUp&) const = default;
};

// Whom a contender is slower than, and how far behind it at least: 1.12 = 12%.
struct Behind {
  std::string contender = {};
  double at_least = 1;
  bool operator==(const Behind&) const = default;
};

// What stands out of what a contender was doing: "input", "serial work", "memory", ... (summary/limits.h).
struct Limit {
  std::string kind = {};
  std::string evidence = {};
  bool operator==(const Limit&) const = default;
};

struct Row {
  Contender contender = {};
  // What it computes in; rows are ranked, and held against a leader, within their group alone.
  std::string group = "float32";
  std::string support = {};  // of that precision here: "emulated: ..."; empty: nothing to say
  // Of a precision variant from its float32 twin: loss of one batch, and all its gradients as one vector;
  // where it generates, its logits.
  std::optional<double> loss_distance = {}, gradient_distance = {}, logit_distance = {};
  // Ranked rows.
  int rank_best = 0;  // rank range: places that the evidence allows, from 1
  int rank_worst = 0;
  std::string ties = {};                   // letters; contenders sharing one cannot be distinguished
  RowVerdict verdict = RowVerdict::kNone;  // kBehindAnother: that one is `behind`
  std::optional<Behind> behind = {};
  Estimate ms_per_step = {};  // the leader's times the ratio (summary/summarise.h)
  Estimate ratio = {};        // to the leader; 1 for the leader itself
  // It looked hopeless twice and was not timed: it is at least this many times slower than the leader. Its
  // times are these bounds then, in `value` and `low`, and `high` is infinite.
  std::optional<double> at_least = {};
  double samples_per_second = 0;
  double gflops = 0;  // model FLOPs of a step / time
  int threads = 0;    // that it computes with: its effective settings, at most its CPUs
  // Shares of the machine's measured limits for its threads, 1 = all of it: the model's FLOPs, and the
  // bytes that its ops move where nothing is fused (above 1: the framework moves fewer).
  std::optional<double> flop_use = {}, byte_use = {};
  Usage usage = {};       // of processors, memory and energy, a step
  MemoryUse memory = {};  // sizes
  GpuUse gpu = {};
  std::vector<std::string> remarks = {};  // on how it was measured: "its GPU's clocks were held down ..."
  EpochCost epoch = {};                   // ranked rows
  InputWait wait = {};                    // for batches
  std::optional<Limit> limit = {};
  // Step time over that of the workload as one program without a framework (emit::Framework::limit): 1 for that itself,
  // [low, infinity] of a row that was not timed. Absent where that program was not timed, or could not be compared.
  std::optional<Estimate> over_native = {};
  StartUp start_up = {};
  std::optional<Transfer> transfer = {};  // to the device: of all heats the median time
  // Step after which this contender's total time falls below the leader's (which pays more up front), or
  // until which it stays below; empty: the leader is ahead from the first step on.
  std::optional<double> break_even_step = {};
  int64_t peak_rss_bytes = 0;
  int heats = 0;  // in which it took part
  // Nothing is against it, but the run ended before its first heat, as `failure` says: it may be the fastest.
  bool waits = false;
  int confirmed =
      0;  // of them, after the decision; where there are any, heat_ms and step_ms are theirs alone
  ParityState parity = ParityState::kNotRun;
  std::optional<Parity> proof = {};
  std::optional<Failure> failure = {};  // set: the row is not ranked, for this reason
  std::optional<double> drift = {};     // it never became steady: 0.1 = a heat's second half takes 10% longer
  std::vector<double> step_ms = {};     // pooled steps of all heats, for the picture only
  std::vector<double> heat_ms = {};     // one a heat
  Texts effective = {};
  Texts versions = {};
  bool operator==(const Row&) const = default;
};

// Bytes that follow from the recipe alone, in float32: of the parameters, of as many gradients, and of the
// optimizer's state. Without training the weights alone.
struct ModelBytes {
  double weights = 0, gradients = 0, optimizer = 0;
  bool operator==(const ModelBytes&) const = default;
};

// Step time of `a` over that of `b`. The intervals of all pairs hold together, with the error rate of the run
// (PairGap::together of stats/ranking.h); those of the ranking are narrower once some contenders are out.
struct PairRatio {
  std::string a = {}, b = {};  // Contender::id
  int heats = 0;               // in which both took part
  Estimate ratio = {};
  std::string through =
      {};              // they did not meet, or too seldom: both were compared with this one (PairRatios)
  bool bound = false;  // `a` looked hopeless and was not timed: the ratio is at least ratio.low
  bool operator==(const PairRatio&) const = default;
};

struct Source {
  std::string file = {};
  std::string text = {};
  bool operator==(const Source&) const = default;
};

// Whom verdicts are about (stats/node_intervals.h). About the kind of the nodes, if everything is decided about it: that
// implies the same of the nodes that ran.
struct SpokenOf {
  int nodes = 0;  // that ran; 0: the race was no fleet's
  stats::About about = stats::About::kTheseNodes;
  size_t rivals = 0, decided_of_kind = 0;  // contenders that met the leader; those decided about the kind
  bool operator==(const SpokenOf&) const = default;
};

struct Summary {
  std::string title = {};  // recipe name
  ir::Track track = ir::Track::kEqualised;
  ir::Scenario scenario = ir::Scenario::kTrain;
  bool predicts() const { return scenario != ir::Scenario::kTrain; }
  std::string sentence = {};  // the verdict in one or two plain sentences
  // Every contender is distinguished from the leader or within the margin, and none waits for its first heat.
  bool decided = false;
  bool interrupted = false;
  std::string run = {};  // its directory; empty: not known
  bool fleet = false;    // its heats ran on the nodes of a fleet
  SpokenOf spoken_of = {};
  std::vector<Outlook> outlooks = {};  // of each group that is not decided; none where the verdict is refused
  std::string refusal = {};  // why no verdict is given at all: the host was busy, or its state is unknown
  // Id of an unranked contender that was measured faster than the leader, but never became steady; empty: none. The
  // leader is then the fastest of the steady ones alone.
  std::string unsteady = {};
  Promise promise = {};           // of low noise
  bool rests_on_promise = false;  // without it some verdict would be another
  HostTally host = {};            // how often it disturbed the race, and what was run again
  double margin = 0;              // 0.03
  double alpha = 0;               // error rate of all statements together
  int64_t batch = 0;
  int heats = 0;
  double elapsed_s = 0;  // all heats, by our clock, audits included; 0: not recorded
  RaceCost cost = {};    // of the race, and of one that times every contender in all heats
  double gflop_per_step = 0;
  int64_t parameters = 0;  // trained numbers
  int64_t frozen = 0;      // numbers that keep their values
  ModelBytes model = {};
  std::vector<Row> ranked = {};              // group by group, float32 first; best first in each
  std::vector<Row> unranked = {};            // parity failed, crashed, not installed ...
  std::vector<table::Section> studies = {};  // what each study found, in the order of study/all
  std::vector<PairRatio> pairs = {};         // of ranked contenders that met in a heat of the race
  std::string baseline = {};                 // id of the contender that all are held against; empty: none
  std::optional<Variance> variance = {};
  std::string currency = {};                  // of EpochCost::price
  std::vector<std::string> not_sampled = {};  // "energy_j: there is no ...": what no trial could tell
  std::vector<std::string> notes = {};        // stated once, below the table
  Manifest manifest = {};
  std::optional<recipe::Published> published = {};  // beside what was measured
  std::optional<Roofline> roofline = {};  // where the machine's limits were known when the race was run
  std::vector<Source> sources = {};       // emitted scripts
  bool operator==(const Summary&) const = default;
};

// Contenders that the run ended before; they point into `summary`.
inline std::vector<const Row*> waiting(const Summary& summary) {
  std::vector<const Row*> rows;
  for (const Row& row : summary.unranked) {
    if (row.waits) rows.push_back(&row);
  }
  return rows;
}

// The leader of a ranked row's group: the first of that group in `ranked`.
inline const Row& leader_of(const Summary& summary, const Row& row) {
  for (const Row& other : summary.ranked) {
    if (other.group == row.group) return other;
  }
  return row;
}
// The groups of the ranked rows, in their order.
inline std::vector<std::string> groups_of(const Summary& summary) {
  std::vector<std::string> groups;
  for (const Row& row : summary.ranked) {
    if (groups.empty() || groups.back() != row.group) groups.push_back(row.group);
  }
  return groups;
}

}  // namespace bakeoff
