#pragma once

// Which functions of frameworks read the places that the op resize reads. Those of mode nearest compute places in
// float32: where that rounds a place down to the one before it, a script has to name the places otherwise.

#include <string>
#include <vector>

#include "ir/workload.h"

namespace bakeoff::emit {

enum class NearestForm {
  kTorch,       // torch's "nearest"
  kTorchExact,  // torch's "nearest-exact"
  kJax,         // jax.image.resize
  kTensorFlow,  // tf.image.resize
  kOnnx,        // ONNX Runtime's Resize
};

// Whether mode nearest of the node reads the same places in this form. `from`: the shape of its input.
bool nearest_is(NearestForm form, const ir::Node& resize, const ir::Shape& from);
bool is_linear(const ir::Node& resize);
// Whether F.interpolate of torch does what the node does, and in which mode: "nearest", "nearest-exact", "bilinear"; else
// empty.
std::string interpolate_mode(const ir::Node& resize, const ir::Shape& from);
// How often each place stands in the result of mode nearest; empty where these are no whole numbers.
std::vector<int64_t> whole_factors(const ir::Node& resize, const ir::Shape& from);
// Linear, at the half-way coordinates that most frameworks have.
bool half_pixel_linear(const ir::Node& resize);
// "mode="linear"", "coordinates="asymmetric"": what the function resize of scripts takes.
std::vector<std::string> resize_options(const ir::Node& resize);

}  // namespace bakeoff::emit
