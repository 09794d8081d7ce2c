#pragma once

// What a contender computes in: settings that several frameworks share. Weights, gradients as the optimizer
// sees them, and its state are float32 always; `precision` is what activations and products are rounded to.

#include <string>

#include "emit/emit.h"

namespace bakeoff::emit {

struct Precision {
  std::string half = {};  // "bfloat16", "float16"; empty: float32
  bool tf32 = false;      // float32 products may round their inputs to TF32
  bool scaler = false;    // the loss is scaled up before it goes backward
  bool mixed() const { return !half.empty(); }
};

// Of a request to train; a prediction is in float32.
Precision precision_of(const Request& request);

// Settings of frameworks. `how`: what the framework does to compute in half precision.
Setting precision_setting(const std::string& how);
Setting tf32_setting(const std::string& how);

}  // namespace bakeoff::emit
