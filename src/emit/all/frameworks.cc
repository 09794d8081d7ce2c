#include "emit/all/frameworks.h"

#if __has_include("emit/torch/torch.h")
#include "emit/torch/torch.h"
#define HAVE_TORCH 1
#endif
#if __has_include("emit/tensorflow/tensorflow.h")
#include "emit/tensorflow/tensorflow.h"
#define HAVE_TENSORFLOW 1
#endif
#if __has_include("emit/keras/keras.h")
#include "emit/keras/keras.h"
#define HAVE_KERAS 1
#endif
#if __has_include("emit/jax/jax.h")
#include "emit/jax/jax.h"
#define HAVE_JAX 1
#endif

namespace bakeoff::emit {

const std::vector<const Framework*>& frameworks() {
  static const std::vector<const Framework*> all = {
#ifdef HAVE_TORCH
      &torch_framework(),
#endif
#ifdef HAVE_TENSORFLOW
      &tensorflow_framework(),
#endif
#ifdef HAVE_KERAS
      &keras_framework(),
#endif
#ifdef HAVE_JAX
      &jax_framework(),
#endif
  };
  return all;
}

const Framework* find_framework(std::string_view name) {
  for (const Framework* framework : frameworks()) {
    if (framework->name == name) return framework;
  }
  return nullptr;
}

}  // namespace bakeoff::emit
