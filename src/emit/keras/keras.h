#pragma once

// Keras 3 scripts, for the backends tensorflow, jax and torch, and Keras 2 scripts (dialect.h: what differs).
//
// The script is a functional-API model trained by `model.fit`. What it offers by name, for the runner's
// adapter and for those who edit it:
//
//   BATCH_SIZE                       rows of a batch
//   load_data(path) -> (x, y)        arrays; x is a list where the model has several inputs
//   build_model() -> keras.Model     channels-last; layers carry the workload's layer names, '.' as '_'
//   compile_model(model)             optimizer, loss, jit_compile, steps_per_execution
//   fit(model, x, y, epochs, callbacks)
//                                    the one call of model.fit, shared by main() and the adapter
//
// Settings: backend (of Keras 3), jit_compile, steps_per_execution (1 with torch, which knows no other).
//
// What Keras lacks is written out in the script: subclasses of the stock optimizers for other places of
// epsilon, for L2 decay and (Keras 3 on TensorFlow) for embeddings, whose sparse gradients the stock
// optimizers square row by row without adding up repeated rows; average pooling that leaves out the padding;
// the sum of squared errors.
//
// Errors: a loss whose target the workload computes, a parameter shared by unlike layers, steps_per_execution
// with torch, an eps form that the optimizer does not have.

#include "emit/emit.h"

namespace bakeoff::emit {

const Framework& keras_framework();   // "keras"
const Framework& keras2_framework();  // "keras2"

}  // namespace bakeoff::emit
