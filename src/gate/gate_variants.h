#pragma once

// Precision variants (emit::precision_group): contenders that round more than float32 does, and so compute
// something else. Each has a float32 twin, the same contender with that setting off, which passes the gate in
// its place; the variant itself is then held against the same numbers, and the distances are recorded:
//
//   "bfloat16 loss"           of one batch, from the gate's weights, relative
//   "bfloat16 gradients"      all of them as one vector, relative to its norm
//   "bfloat16 gradient norm"  that norm, relative
//   "bfloat16 losses"         the worst of the first training steps, relative
//
// In the track as-is all but the last are measured against what the twin itself computes from the gate's
// weights, and nothing else is compared: every contender trains from weights of its own.
//
// They are shown, and refuse only what no rounding explains (docs/precision.md).

#include <optional>
#include <string>
#include <vector>

#include "plan/lane.h"
#include "records/trial.h"
#include "reference/reference.h"
#include "worker/worker.h"

namespace bakeoff {

bool is_variant(const GateContender& contender);

// The contender that stands for it in the proofs: itself where it is in float32.
GateContender twin_of(const GateContender& contender);

// Why a device does not compute in the contender's precision: TF32 on a CPU. `device`: "cpu", "cuda:0".
std::optional<Failure> no_such_precision(const Contender& contender, const std::string& device);

// After the proofs of its twin: the distances, and the hashes of its batches. Effective settings, losses and
// the first step in `parity` become the variant's own.
void prove_variant(const GateJob& job, const Reference& reference, const GateContender& contender,
                   Parity& parity);

// Hashes of the batches that a contender's own pipeline delivers, against the recipe's. A worker that cannot
// tell has only its losses to show.
void prove_batches(Worker& worker, const GateJob& job, const Reference& reference, Parity& parity);

// "batches": all equal, or the first that is not.
ParityCheck compare_batches(const std::vector<std::string>& expected, const std::vector<std::string>& seen);

}  // namespace bakeoff
