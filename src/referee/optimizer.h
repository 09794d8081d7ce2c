#pragma once

// The optimizers of ir/training.h in float64.
//
//   OptimizerState state = initial_state(weights);
//   step(optimizer, evaluation.gradients, state, weights);

#include <cstdint>

#include "ir/training.h"
#include "referee/evaluate.h"

namespace bakeoff::referee {

struct OptimizerState {
  int64_t steps = 0;  // updates made so far
  Weights first;      // SGD velocity; RMSprop momentum buffer b; Adam m
  Weights second;     // RMSprop and Adam v
  Weights average;    // Optimizer::ema; empty before the first update, and without ema
};

// All zero, one slot per parameter.
OptimizerState initial_state(const Weights& weights);

// The gradients as the update takes them: clipped where the optimizer clips.
Weights clipped(const ir::Optimizer& optimizer, Weights gradients);
// Whether clipping changes these gradients.
bool clipping_acts(const ir::Optimizer& optimizer, const Weights& gradients);

// One update, clipping and average included. Parameters whose gradient is without data (running statistics) stay. Weight decay reaches every
// trained parameter that Optimizer::no_decay does not name, biases and scales too. EpsForm::kHat is for Adam(W) only; AdamW decays decoupled
// for any decay_form.
void step(const ir::Optimizer& optimizer, const Weights& gradients, OptimizerState& state, Weights& weights);

}  // namespace bakeoff::referee
