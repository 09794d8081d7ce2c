#pragma once

// Dropout at the recipe's rates. Masks are random, so what is compared are distributions: a batch holds a few
// distinct rows, each repeated many times, and every repetition draws masks of its own. One training step is
// thus as many draws as the batch has rows. Two such steps or more, in float32, against the referee's own
// draws of the same batch:
//
//   mean     of the predictions, by distinct row, along a few random directions
//   spread   the mean squared distance of predictions from that mean, each direction in units of its own spread
//   loss     against the mean over the referee's rows
//   gradients  of every parameter, their mean over the steps, against the spread between the referee's steps
//
// Errors are in standard errors of the difference. Two steps that draw the same masks differ by nothing, which
// no luck explains.

#include <cstdint>
#include <filesystem>
#include <vector>

#include "base/result.h"
#include "ir/workload.h"
#include "referee/evaluate.h"

namespace bakeoff::lab {

struct GateJob;
struct GateContender;
struct Parity;
struct Reference;
class Worker;

// Mean and variance of what was drawn `count` times.
struct Drawn {
  double mean = 0, variance = 0, count = 0;
};

// What the referee draws. Without `data` the workload has no dropout.
struct DropoutReference {
  std::filesystem::path data = {};  // training.batch rows, few of them distinct
  int64_t distinct = 1;             // row i is row i % distinct
  int64_t steps = 2;                // that a contender is to take
  // Of predictions, by distinct row and direction.
  std::vector<std::vector<Drawn>> directions = {};
  Drawn spread = {};
  Drawn loss = {};  // of one row; count 0: the loss is not one of rows
  referee::Weights gradients = {};           // the mean over the referee's steps
  std::vector<double> gradient_squares = {}; // by ParamId: mean squared distance of one step's from that mean
  int64_t gradient_steps = 0;
};

// Whether any mask is drawn in training.
bool has_dropout(const ir::Workload& workload);

// Writes the rows to the job's folder and draws. `weights`: from which steps start.
Result<DropoutReference> draw_dropout(const GateJob& job, const referee::Weights& weights);

// In a worker that has imported its framework in float32; builds anew. Adds the check "dropout" to `parity`.
void prove_dropout(Worker& worker, const GateJob& job, const Reference& reference,
                   const GateContender& contender, Parity& parity);

}  // namespace bakeoff::lab
