#pragma once

// What the referee computes for a recipe, once for all contenders: its own numbers, and the files that
// contenders start from.

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "plan/lane.h"
#include "proc/interrupt.h"
#include "referee/evaluate.h"
#include "reference/dropout.h"

namespace bakeoff {

// How far rounding every value to float32 changes the referee's results: relative distances, the larger of
// those with edges open and closed (referee::Edges).
struct RoundingDistance {
  double prediction = 0;
  std::vector<double> gradients = {};  // by ParamId
};

// How far the training of proof 3 is from the exact one where every value is rounded to float32, each gradient has a
// rounding error, and ReLUs that lie on an edge are all open or all closed: the larger distance of both. Among
// millions of ReLUs some lie on an edge in some step, and honest frameworks go on from one of its sides.
struct RoundedPath {
  std::vector<double> losses = {};  // relative, by step
  std::vector<double> after = {};   // by ParamId: the sum over elements
};

// The first steps of the training of proof 3, where all of them amplify rounding beyond what can be compared.
struct FirstSteps {
  int64_t steps = 0;            // 0: the first step parts too far already
  referee::Weights after = {};  // of the exact training
  // By ParamId, sums over elements: how far noise in the gradients alone, and a RoundedPath, are away.
  std::vector<double> noise = {}, rounded = {};
};

// Computed when a contender first needs it.
struct LazyRounding {
  std::once_flag once, once_path, once_zeros, once_first;
  RoundingDistance distance = {};
  std::vector<double> zeros = {};
  RoundedPath path = {};
  FirstSteps first = {};
};

// What the referee computes for a recipe.
struct Reference {
  referee::Weights weights = {};      // perturbed, rounded to float32: proofs 1 and 2 start here
  referee::Weights initial = {};      // the recipe's, rounded to float32: proof 3 starts here
  referee::Inputs batch = {};         // rows [0, training.batch)
  referee::Evaluation at = {};        // at `weights`; scenario predict: in inference mode, without gradients
  referee::Evaluation at32 = {};      // at `initial`
  tensor::Tensor prediction32 = {};   // scenario predict: computed in float64 from the initial weights
  referee::Weights given = {};        // at.gradients, clipped where the recipe clips: contenders get these
  referee::Weights updated = {};      // after one update from them
  std::vector<double> losses64 = {};  // losses of proof 2
  std::vector<double> losses32 = {};  // losses of proof 3, computed in float64 from the initial weights
  // Parameters after those steps. The noise, by ParamId: the sum over elements of how far rounding of the
  // gradients alone moves a parameter (reference/rounding.h).
  referee::Weights after64 = {}, after32 = {};
  referee::Weights average64 = {};  // Optimizer::ema after those of proof 2; empty without ema
  int64_t clipped64 = 0;            // steps of proof 2 in which clipping changed the gradients
  std::vector<double> noise64 = {}, noise32 = {};
  std::vector<std::string> batches = {};  // batch hashes of proof 3
  // The same with channels last in inputs whose rows have equal axes; empty without such inputs.
  std::vector<std::string> batches_last = {};
  DropoutReference dropout = {};  // for proof 4, from `weights`
  std::filesystem::path weights_file = {}, gradients_file = {}, initial_file = {};
  std::shared_ptr<LazyRounding> rounding = std::make_shared<LazyRounding>();  // of at32
};

// Number of float64 steps: what an optimizer keeps (momentum, second moments, their maximum) shows from the
// second update on. A small network takes as many as in float32, as a learning rate schedule may show
// later.
inline constexpr int64_t kSteps64 = 4;
inline constexpr int64_t kCheapFlops64 = 1'000'000'000;  // limit for all steps of a small network
// With a schedule a small network takes more, to the step after its last corner.
inline constexpr int64_t kMostSteps64 = 24;
// The steps at which a schedule is compared beside: around each of its corners, between them and far beyond.
std::vector<int64_t> steps_to_compare(const ir::Schedule& schedule);

// Limit of a float64 step, and the fewest rows to which it cuts a batch.
inline constexpr int64_t kStepFlops64 = 1'000'000'000;
inline constexpr int64_t kLeastRows64 = 16;

// The same job with fewer rows in a batch, for the float64 proofs of a network whose step takes more than
// kStepFlops64: every row is computed alike there, and an error shows in few rows. Its folder and data lie in
// the job's folder. Nothing: the batch is small enough, or rows depend on each other (batch_norm).
Result<std::optional<GateJob>> cut_job(const GateJob& job);

// Whether to give up what is not computed yet.
using Stop = std::function<bool()>;

// The files, and what the float64 proofs need.
Result<Reference> make_reference64(const GateJob& job, const Stop& stop = proc::interrupted);
// The files alone.
Result<Reference> start_reference(const GateJob& job);
// Adds what the float32 proofs need. Writes no member that the float64 proofs read.
Status add_reference32(const GateJob& job, Reference& r, const Stop& stop = proc::interrupted);

// All of it.
Result<Reference> make_reference(const GateJob& job);

// The rounding distance of `r.at32`; computed by the first call.
const RoundingDistance& rounding_distance(const GateJob& job, const Reference& r);
// How far `r.at32`'s gradients are from those with ReLUs open whose input is exactly zero (Edges::kOpenAtZero): relative,
// by ParamId; computed by the first call.
const std::vector<double>& zeros_distance(const GateJob& job, const Reference& r);
// That of proof 3; computed by the first call. Zeros where the referee fails.
const RoundedPath& rounded_path(const GateJob& job, const Reference& r);
// The most steps, in whole calls, within which noise and rounding carry the parameters at most `share` of their moves away;
// computed by the first call. No steps where the referee fails.
const FirstSteps& comparable_steps(const GateJob& job, const Reference& r, double share);

}  // namespace bakeoff
