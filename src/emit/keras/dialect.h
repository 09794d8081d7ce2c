#pragma once

// The two generations of Keras, whose scripts are the same but for what is told here. One room writes both:
// a Dialect goes along with the request.
//
//                      Keras 3                            Keras 2 (the package tf_keras)
//   module             import keras                       import tf_keras as keras
//   backend            $KERAS_BACKEND                     TensorFlow alone
//   functions          keras.ops                          TensorFlow's own, on symbolic tensors too
//   variables          paths, "conv1/kernel"              names, "conv1/kernel:0"
//   optimizers         update_step(gradient, variable,    update_step(gradient, variable); Adam has
//                      learning_rate)                     adaptive_epsilon, the eps form "outside"; the rows
//                                                         of an embedding's gradient come added up
//   attention          ops.dot_product_attention          written out
//   jit_compile        "auto", True, False                True, False
//   half precision     losses in float32; functions mix   losses as the prediction, which is cast back;
//                      dtypes                             functions refuse two dtypes, so inputs are cast
//   BatchNormalization moments, then                      of pictures in float32: a fused kernel, whose
//                      batch_normalization                running variance is the unbiased one

#include <string>
#include <string_view>

#include "emit/emit.h"

namespace bakeoff::emit::keras {

struct Dialect {
  std::string framework;  // "keras2"
  std::string title;      // "Keras 2"
  bool second = false;    // Keras 2

  // "tensorflow", "jax", "torch".
  std::string backend(const Settings& settings) const;
  // The function that keras.ops calls `name`: "ops.concatenate", in Keras 2 "tf.concat". A name without one
  // in TensorFlow is a bug and aborts.
  std::string op(std::string_view name) const;
  // `text` with every call of an "ops.name(" by op(name).
  std::string translate(std::string_view text) const;
};

const Dialect& keras_2();
const Dialect& keras_3();

}  // namespace bakeoff::emit::keras
