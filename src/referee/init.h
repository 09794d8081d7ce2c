#pragma once

// Initial weights, the same on every platform and for every framework of the equalised track.

#include <cstdint>

#include "ir/workload.h"
#include "referee/evaluate.h"
#include "tensor/safetensors.h"

namespace bakeoff::referee {

// weight         Glorot uniform (Glorot & Bengio 2010): +-sqrt(6 / (fan in + fan out)); linear O,I: fans I
// and O;
//                convolution O,I,kH,kW: I kH kW and O kH kW
// table          uniform in [-0.05, 0.05)
// bias, shift, running mean   0
// scale, running var          1
// init in the text: uniform in [-init, init), or zeros.
// Every parameter draws from a stream of its own (seed and name): adding a layer changes no other.
tensor::Tensor initial_value(const ir::Parameter& parameter, uint64_t seed);
// Of every parameter of a workload.
Weights initial_weights(const ir::Workload& workload, uint64_t seed);

// As which a file holds the parameter: float32, or float64 for a frozen table that float32 would round. A library's own
// code computes such a table in the precision that it is proven in.
tensor::DType held_as(const ir::Parameter& parameter, const tensor::Tensor& value);

// `weights` plus small noise on every parameter, for the proof run: a bias that is never added or a scale
// that is never applied shows. Additive uniform noise of a tenth of the tensor's root mean square for weights
// and tables, of 0.1 for those that are zero and trained, for biases, shifts, scales and running means; running variances are multiplied by a
// factor in [0.8, 1.25] and stay positive. Frozen parameters that integers follow from stay what they are, as do those
// whose values stand in the text: no race has others, and a library's own code has these.
Weights perturbed(const ir::Workload& workload, Weights weights, uint64_t seed);

}  // namespace bakeoff::referee
