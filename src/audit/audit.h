#pragma once

// Audits: whether the work that was timed is the work of the recipe. The gate proves what a script computes
// while it is in the gate; an audit proves what it computed within one timed burst.
//
// 1. Before every burst the worker loads the initial weights and a fresh optimizer again, and makes the
// lead-in steps. The request for the burst begins with a nudge: random changes of a few parameters that
// could not be known before, made while the clock runs. From there the referee can continue in float64. The
// result cannot be known without computing it: not from an earlier burst, and not before the clock starts.
// 2. With its answer, while the clock runs, the worker reports the loss of every step and the sum of every
// trained parameter after the last update. Losses and sums of *every* burst are checked: values that are
// not finite are refused, and bursts whose losses differ from those of the trial's other bursts are audited
// first.
// 3. After some bursts, drawn at random once they are over, it also writes all its parameters.
// 4. When the heat is over, the referee computes the drawn bursts: losses, sums and parameters must equal
// its own within float32 accuracy. If steps draw random numbers (dropout), they must be like those of
// several runs of the referee with different masks.
//
// Audited bursts are requested exactly like the others, so a script cannot treat them differently. It may
// still compute the same numbers in another way, which is no cheat. A script runs with its user's rights:
// audits do not protect against one that attacks this program itself (its memory, its files).

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "ir/training.h"
#include "ir/workload.h"
#include "proc/interrupt.h"
#include "records/trial.h"
#include "referee/evaluate.h"

namespace bakeoff {

// A nudge: changes of a few parameters, by ParamId; the tensor of a parameter that does not change is empty.
using Nudge = referee::Weights;

// What a worker reported of one burst.
struct ShownBurst {
  size_t burst = 0;      // number of the burst within its trial
  int64_t position = 0;  // steps of its loop since the build, when it loaded the initial weights again
  int64_t lead = 0;      // lead-in steps before the nudge
  int64_t steps = 0;     // timed steps
  Nudge nudge = {};
  std::vector<double> losses = {};       // one for each timed step; empty: the framework does not report them
  std::optional<double> mean_loss = {};  // mean of the losses of all timed steps
  std::map<std::string, double> sums = {};   // sum of every trained parameter after the steps, by name
  int64_t nudge_every = 0;                   // steps after which the nudge is added again; 0: never
  std::vector<ReportedOutput> outputs = {};  // predictions: outputs of all steps, or of the last ones
  bool drawn = false;                        // drawn for an audit
  std::filesystem::path state = {};          // safetensors, canonical; empty: it was not requested
};

// How far float32 may be from the referee. Every update amplifies rounding, so the limits grow with the
// steps since the initial weights, up to `most`. If a burst exceeds them, the limits become 8 times the
// differences among four more runs of the referee, whose gradients are taken at weights that are off by
// float32 rounding, up to `most_shown`. Twelve further runs, off by two to four times that, widen the limits of
// the parameters alone, and follow only where the losses are right. Errors of honest contenders: mlp_small with
// Adam, 1e-7 (loss) and 0 (moved) after 2 steps, 2e-3 and 0.013 after 700, 1e-2 and 0.03 after 1,600; a small
// network with convolutions and BatchNorm on random labels, 0.05 and more after 90 steps.
struct AuditTolerances {
  double loss = 1e-5;         // relative error of the first step's loss
  double loss_growth = 4e-5;  // added for each further step
  double loss_most = 0.05;
  double moved = 0.005;  // distance of the parameters, divided by how far the referee's moved
  double moved_growth = 1e-4;
  double moved_most = 0.35;
  double loss_most_shown = 0.25, moved_most_shown = 0.7;
};

// What every audit of a run needs.
struct AuditGround {
  ir::Workload workload = {};
  ir::Training training = {};
  std::filesystem::path data = {};  // safetensors
  int64_t rows = 0;
  referee::Weights initial = {};  // initial weights, as every worker loads them
};

// Whether bursts of this recipe can be audited: only in the equalised track.
bool can_audit(const ir::Workload& workload, const ir::Training& training);

// `weights`: the file of initial weights.
Result<AuditGround> make_audit_ground(const ir::Workload& workload, const ir::Training& training,
                                      const std::filesystem::path& data, int64_t rows,
                                      const std::filesystem::path& weights);

// Steps that the referee makes in kLongestAudit or so on this machine's processors, by the arithmetic of a step: the
// longest burst. mnist_cnn on two processors has fewer steps in a usual burst; a GPU makes hundreds of steps in that
// time, and the referee, which repeats a burst that differs up to sixteen times, would take minutes. Predictions: no
// limit, as only some of the outputs are computed again.
inline constexpr double kLongestAudit = 3;  // seconds, of one repetition
int64_t most_audited_steps(const AuditGround& ground);
// Seconds that one repetition of `steps` steps takes, by the same arithmetic.
double audit_seconds(const AuditGround& ground, int64_t steps);

// Draws random changes of the small parameters that are used first, large enough to show in every later
// number. They come from the system's source of randomness: no seed of the recipe predicts them.
Result<Nudge> draw_nudge(const AuditGround& ground, std::optional<uint64_t> seed_of_tests = {});
// Writes the nudge for the worker, by name, as float32.
Status write_nudge(const AuditGround& ground, const Nudge& nudge, const std::filesystem::path& file);

// An empty nudge, for workers that have compiled their weights as constants.
Nudge no_nudge(const AuditGround& ground);

// Number of steps of a burst after which the nudge is added again: when predictions see the same data
// again. 0: never; in training every update changes the parameters.
int64_t nudge_every(const AuditGround& ground);

// Compares a burst with the referee's own. `precision`: the contender's group ("" or "float32": full
// precision). Error: the referee could not compute it, or `stop` said so between two of its steps.
Result<Audit> audit_burst(const AuditGround& ground, const ShownBurst& shown, const std::string& precision,
                          const AuditTolerances& tolerances = {},
                          const std::function<bool()>& stop = proc::interrupted);

}  // namespace bakeoff
