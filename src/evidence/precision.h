#pragma once

// How far a precision variant is from its float32 counterpart, as the gate measured it, and how the machine
// computes in a precision.

#include <optional>
#include <string>

#include "records/trial.h"

namespace bakeoff {

// Suffixes of the names of a variant's checks: "bfloat16 loss".
inline constexpr const char* kLoss = " loss";
inline constexpr const char* kGradients = " gradients";
inline constexpr const char* kLogits = " logits";
// Text of a check whose distance was measured against the float32 counterpart instead of the referee.
inline constexpr const char* kAgainst = "against float32";

// The distances that prove_variant measured; empty if it measured none.
std::optional<double> loss_distance(const Parity& parity);
std::optional<double> gradient_distance(const Parity& parity);
std::optional<double> logit_distance(const Parity& parity);  // of one that generates

// Whether this machine computes in the precision of a group or emulates it: "computed by AVX512_BF16",
// "emulated: ...". `vector_units`: those of the processor ("avx2 avx512_bf16"); `device`: the contender's.
std::string precision_support(const std::string& group, const std::string& device,
                              const std::string& vector_units);

}  // namespace bakeoff
