#pragma once

// Precision variants (emit::precision_group): contenders that round more than float32 does and so compute
// something else. Each has a float32 counterpart (its twin): the same contender without that setting. The
// twin passes the gate in its place; the variant is then compared with the same numbers, and the distances
// are recorded:
//
//   "bfloat16 loss"           loss of one batch, from the gate's weights, relative
//   "bfloat16 gradients"      all gradients as one vector, relative to its norm
//   "bfloat16 gradient norm"  the norm of that vector, relative
//   "bfloat16 losses"         the largest error of the losses of the first training steps, relative
//
// A variant that generates computes words instead, at the gate's weights:
//
//   "bfloat16 logits"         of the words of the data that follow the prompt, relative to their norm
//   "bfloat16 words"          those chosen freely: how far their logits lie below the referee's largest
//
// In the track as-is the first three are measured against what the twin itself computes from the gate's
// weights, and nothing else is compared: every contender trains from its own weights.
//
// The distances are shown; a variant is refused only if rounding cannot explain its distance
// (docs/precision.md).

#include <optional>
#include <string>
#include <vector>

#include "plan/lane.h"
#include "records/trial.h"
#include "reference/reference.h"
#include "worker/worker.h"

namespace bakeoff {

bool is_variant(const ContenderStart& contender);

// The contender that the proofs run instead: its float32 counterpart, or itself if it computes in float32.
ContenderStart twin_of(const ContenderStart& contender);

// Reports a device that does not compute in the contender's precision: TF32 on a CPU. `device`: "cpu",
// "cuda:0".
std::optional<Failure> no_such_precision(const Contender& contender, const std::string& device);

// Runs after the proofs of the twin: measures the distances and checks the batches. The effective settings,
// losses and first step in `parity` become those of the variant.
void prove_variant(const GateJob& job, const Reference& reference, const ContenderStart& contender,
                   Parity& parity);

// |value - reference| / |reference|; infinite if the value is not finite.
double relative(double value, double reference);

// Hashes of the batches that a contender's own pipeline delivers. A worker that cannot report them is checked
// by its losses alone.
std::optional<std::vector<std::string>> ask_batches(Worker& worker, const GateJob& job);
// Compares them with the recipe's.
void check_batches(const Reference& reference, const std::vector<std::string>& seen, Parity& parity);

// The check "batches": passed if all are equal, else it names the first that differs.
ParityCheck compare_batches(const std::vector<std::string>& expected, const std::vector<std::string>& seen);

}  // namespace bakeoff
