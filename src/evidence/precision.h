#pragma once

// Distances of a precision variant from its float32 counterpart, as the gate found them, and what a machine
// offers for a precision.

#include <optional>
#include <string>

#include "records/trial.h"

namespace bakeoff {

// Ends of the names of a variant's checks: "bfloat16 loss".
inline constexpr const char* kLoss = " loss";
inline constexpr const char* kGradients = " gradients";
// What such a distance was measured against.
inline constexpr const char* kAgainst = "against float32";

// The distances found by prove_variant; empty where there are none.
std::optional<double> loss_distance(const Parity& parity);
std::optional<double> gradient_distance(const Parity& parity);

// Whether this machine computes in a group's precision or emulates it: "computed by AVX512_BF16",
// "emulated: ...". `vector_units`: of the processor ("avx2 avx512_bf16"); `device`: of the contender.
std::string precision_support(const std::string& group, const std::string& device,
                              const std::string& vector_units);

}  // namespace bakeoff
