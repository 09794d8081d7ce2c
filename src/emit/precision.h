#pragma once

// What a contender computes in: settings that several frameworks share. Weights, gradients as the optimizer
// sees them, and its state are float32 always; `precision` is what activations and products are rounded to.

#include <string>
#include <vector>

#include "emit/emit.h"

namespace bakeoff::emit {

struct Precision {
  std::string half = {};  // "bfloat16", "float16"; empty: float32
  bool tf32 = false;      // float32 products may round their inputs to TF32
  bool scaler = false;    // the loss is scaled up before it goes backward
  bool mixed() const { return !half.empty(); }
};

// Of a request to train or to generate; a prediction is in float32.
Precision precision_of(const Request& request);

// By ParamId: weights that a script in half precision stores in it: frozen ones, as people load the base of LoRA, and all
// where words are generated. Those that products and lookups alone read: these round them anyway, so the numbers are the
// same and the memory is half.
std::vector<bool> stored_in_half(const Request& request);

// Lines that keep a GPU from rounding float32 to TF32, or let it, one for each kind of kernel. `backends`: the module
// that has them (2.9 or later). Its own fp32_precision alone leaves convolutions and recurrences in TF32 up to 2.11.
std::vector<std::string> precision_lines(const std::string& backends, bool tf32);

// Settings of frameworks. `how`: what the framework does to compute in half precision; `generates`: also for answers.
Setting precision_setting(const std::string& how, bool generates = false);
Setting tf32_setting(const std::string& how);

}  // namespace bakeoff::emit
