#pragma once

// Why a contender failed the gate: the referee tries known variants of the recipe; one that reproduces the
// contender's numbers is the explanation, verified by having been computed.

#include <optional>
#include <string>
#include <vector>

#include "lab/gate.h"

namespace bakeoff::lab {

// What a contender answered in float64, by ParamId; tensors without data where it did not answer.
struct Answer {
  double loss = 0;
  tensor::Tensor prediction = {};
  referee::Weights gradients = {};
  referee::Weights updated = {};
  referee::Weights buffers = {};
  std::vector<double> losses64 = {};
};

// "matches: epsilon inside the root: sqrt(v + eps)"; empty if no variant matches.
std::string explain_model(const GateJob& job, const Reference& reference, const Answer& answer);
std::string explain_update(const GateJob& job, const Reference& reference, const Answer& answer);
std::string explain_buffers(const GateJob& job, const Reference& reference, const Answer& answer,
                            bool unbiased);
std::string explain_losses(const GateJob& job, const Reference& reference, const Answer& answer);

}  // namespace bakeoff::lab
