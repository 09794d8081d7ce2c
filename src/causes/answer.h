#pragma once

// What a contender answered in float64, by ParamId; empty tensors for what it did not answer.

#include <vector>

#include "referee/evaluate.h"

namespace bakeoff {

struct Answer {
  double loss = 0;
  tensor::Tensor prediction = {};
  referee::Weights gradients = {};
  referee::Weights updated = {};
  referee::Weights buffers = {};
  // Losses of the training steps and parameters after them; empty if none were requested.
  std::vector<double> losses64 = {};
  referee::Weights after64 = {};
};

}  // namespace bakeoff
