#pragma once

// Audits: whether the work that was timed is the work of the recipe. The gate proves what a script computes
// while it is proven; an audit proves what it computed within one timed burst.
//
// 1. Before every burst the worker goes back to the initial weights and a fresh optimizer, and makes the
// lead-in steps. The request for the burst itself begins with random changes of a few parameters that nobody
// knew before (a nudge): the clock runs already. From there on the referee can continue in float64, and
// nobody else can know the result without computing it: not from an earlier burst, and not before the clock
// starts.
// 2. With its answer, within the clock, the worker tells the loss of every step and the sum of every trained
// parameter after the last update. Losses and sums of *every* burst are looked at: what is no number is
// refused, and bursts whose losses lie apart from those of the trial's other bursts are audited first.
// 3. After bursts that are drawn once they are over, it shows all its parameters too.
// 4. When the heat is over the referee computes the drawn bursts itself: losses, sums and parameters must be
// its own, as far as float32 allows. Where steps draw random numbers (dropout) they must be like those of
// several runs of the referee with masks of its own.
//
// A script is asked for audited bursts by the same requests as for the others, so it cannot treat them
// differently. What stays possible: computing the same numbers in another way, which is no cheat. A script
// runs with its user's rights: against one that attacks this program itself (its memory, its files), audits
// are no protection.

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "ir/training.h"
#include "ir/workload.h"
#include "records/trial.h"
#include "referee/evaluate.h"

namespace bakeoff {

// Changes of a few parameters: by ParamId; tensors without data where nothing changes.
using Nudge = referee::Weights;

// What a worker showed of one burst.
struct ShownBurst {
  size_t burst = 0;      // the number of the burst within its trial
  int64_t position = 0;  // steps that its loop had made since the build when it went back
  int64_t lead = 0;      // steps before the nudge
  int64_t steps = 0;     // timed
  Nudge nudge = {};
  std::vector<double> losses = {};          // one a timed step; empty: the framework's loop shows none
  std::optional<double> mean_loss = {};     // of all timed steps
  std::map<std::string, double> sums = {};  // of every trained parameter after them, by name
  int64_t nudge_every = 0;                  // steps after which the nudge is added once more; 0: never
  std::vector<ToldOutput> outputs = {};     // of predictions: of each step, or of the last ones
  bool drawn = false;                       // for an audit
  std::filesystem::path state = {};         // safetensors, canonical; empty: it was not asked for
};

// How far float32 may be from the referee. Rounding is amplified by every update: limits grow with the steps
// since the initial weights, up to `most`. Where a burst is beyond them they are 8 times what four more runs of
// the referee, with gradients taken beside the weights by as much as float32 sums are off, differ by, up to
// `most_shown`.
// Seen of honest contenders (mlp_small, Adam): 1e-7 and 0 after 2 steps, 2e-3 and .013 after 700, 1e-2 and .03
// after 1,600; a small conv net with BatchNorm on random labels: .05 and more after 90 steps.
struct AuditTolerances {
  double loss = 1e-5;         // of the first step, relative
  double loss_growth = 4e-5;  // for each further step
  double loss_most = 0.05;
  double moved = 0.005;  // distance of the parameters, as a share of how far the referee's moved
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
  referee::Weights initial = {};  // as every worker loads them
};

// Whether bursts of this recipe can be audited: those of the equalised track.
bool can_audit(const ir::Workload& workload, const ir::Training& training);

// `weights`: the file of initial weights.
Result<AuditGround> make_audit_ground(const ir::Workload& workload, const ir::Training& training,
                                      const std::filesystem::path& data, int64_t rows,
                                      const std::filesystem::path& weights);

// New random changes of the small parameters that are used first, large enough to show in every later number.
// From the system's source of randomness: no seed of the recipe foretells them.
Result<Nudge> draw_nudge(const AuditGround& ground);
// Writes them for the worker, by name, float32.
Status write_nudge(const AuditGround& ground, const Nudge& nudge, const std::filesystem::path& file);

// Nothing changes: for workers whose weights are constants of what they have compiled.
Nudge no_nudge(const AuditGround& ground);

// After how many steps of a burst the nudge is added again: where predictions see the same data once more.
// 0: never; in training every update changes the parameters.
int64_t nudge_every(const AuditGround& ground);

// Holds a burst against the referee's own. `precision`: the contender's group ("" or "float32": full).
// Error: the referee could not compute it.
Result<Audit> audit_burst(const AuditGround& ground, const ShownBurst& shown, const std::string& precision,
                          const AuditTolerances& tolerances = {});

}  // namespace bakeoff
