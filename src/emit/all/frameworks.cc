#include "emit/all/frameworks.h"

#include "emit/jax/jax.h"
#include "emit/keras/keras.h"
#include "emit/libtorch/libtorch.h"
#include "emit/native/native.h"
#include "emit/onnxruntime/onnxruntime.h"
#include "emit/tensorflow/tensorflow.h"
#include "emit/torch/torch.h"

namespace bakeoff::emit {

const std::vector<const Framework*>& frameworks() {
  static const std::vector<const Framework*> all = {
      &torch_framework(), &tensorflow_framework(), &keras_framework(),       &keras2_framework(),
      &jax_framework(),   &libtorch_framework(),   &onnxruntime_framework(), &native_framework()};
  return all;
}

const Framework* find_framework(std::string_view name) {
  for (const Framework* framework : frameworks()) {
    if (framework->name == name) return framework;
  }
  return nullptr;
}

}  // namespace bakeoff::emit
