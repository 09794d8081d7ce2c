#pragma once

// TensorFlow scripts without Keras: a tf.Module, an optimizer of explicit updates, a train_step.
//
// What a script offers by name, for the runner's adapter and for those who edit it:
//
//   class MnistCnn(tf.Module)              MnistCnn(weights), as-is MnistCnn(); model(*inputs) -> prediction
//   class RMSprop(tf.Module)               RMSprop(variables), apply_gradients(gradients)
//   loss_fn(prediction, target)
//   train_step(model, optimizer, *batch) -> loss, op by op
//   compiled(function, *modules)           the step as a graph of its tensors; mode = function
//   load_data(path) -> numpy arrays; batches(arrays) -> endless iterator of tuples of tensors
//   DROPOUT_RATE, DROPOUT_RATE_2, ...
//
// Variables are attributes of the model, "conv1.weight" as conv1_weight. Kernels are H,W,I,O (depthwise
// H,W,C,multiplier), linear weights I,O. TensorFlow's CPU kernels have no gradient for dilated, grouped and
// unevenly strided depthwise convolutions: those go through a function that XLA compiles, as Keras does too.
//
// Settings: mode = function | eager, jit_compile = false | true (function only).

#include "emit/emit.h"

namespace bakeoff::emit {

const Framework& tensorflow_framework();

}  // namespace bakeoff::emit
