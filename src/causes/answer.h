#pragma once

// What a contender answered in float64, by ParamId; tensors without data where it did not answer.

#include <vector>

#include "referee/evaluate.h"

namespace bakeoff {

struct Answer {
  double loss = 0;
  tensor::Tensor prediction = {};
  referee::Weights gradients = {};
  referee::Weights updated = {};
  referee::Weights buffers = {};
  // Of the training steps; empty where none were asked for.
  std::vector<double> losses64 = {};
  referee::Weights after64 = {};
};

}  // namespace bakeoff
