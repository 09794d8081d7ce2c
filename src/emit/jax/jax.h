#pragma once

// JAX scripts: plain functions and optax, no layer library.
//
// What a script offers by name, for the runner's adapter and for those who edit it:
//
//   load_data(path) -> arrays              numpy, in the order of train_step's last arguments
//   batches(arrays) -> endless iterator    tuples of BATCH_SIZE rows
//   init_params(weights)                   equalised; as-is: init_params(key)
//   forward, loss_fn, make_optimizer, OPTIMIZER
//   train_step(params, opt_state, *batch) -> params, opt_state, loss
//
// Models with BatchNorm or dropout carry TrainState(params, stats, opt_state, key), with the fields they
// need:
//
//   init_state(weights), as-is init_state()   -> TrainState
//   forward(params, stats, *inputs, key)      -> prediction, stats
//   loss_fn(params, stats, *inputs, key)      -> loss, stats
//   train_step(state, *batch)                 -> state, loss
//   DROPOUT_RATE, DROPOUT_RATE_2, ...
//
// Parameters live in one flat dict under their canonical names; kernels are H,W,I,O and linear weights I,O.
// Settings: donate. All forms of ir::Optimizer are exact.

#include "emit/emit.h"

namespace bakeoff::emit {

const Framework& jax_framework();

}  // namespace bakeoff::emit
