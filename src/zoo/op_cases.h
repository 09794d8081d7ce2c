#pragma once

// Small random workloads: one op at a time for the cross-framework test of the whole op table, and small
// networks that mix ops. Everything is a function of the generator's state.
//
//   tensor::Rng rng(seed);
//   ir::Workload w = random_case(ir::Op::kConv2d, rng);
//   auto weights = random_weights(w, rng);
//   auto inputs = random_inputs(w, 4, rng);
//
// Every workload is valid, tiny (axes of at most 9, except what flatten, pad and concat make of them), and
// has gradients that are not zero by mathematics: no bias just before batch_norm or softmax, no softmax or
// normalisation over so few elements that its output is constant. Float inputs of the op come out of a linear
// or a 1x1 convolution, so that parameter gradients test the op's input gradients too. Targets are always
// inputs.

#include <cstdint>
#include <vector>

#include "ir/builder.h"
#include "ir/elementwise.h"
#include "ir/workload.h"
#include "tensor/rng.h"
#include "tensor/tensor.h"

namespace bakeoff::zoo {

// A workload around one `op`, with shapes and attributes over their whole legal range.
ir::Workload random_case(ir::Op op, tensor::Rng& rng);
// False for an op without a generator (a test demands one for every op).
bool has_random_case(ir::Op op);

// A picture, sequence or vector network of a few blocks: residual sums, concatenated branches, gates, batch
// and layer normalisation, poolings, transposes, embeddings.
ir::Workload random_network(tensor::Rng& rng);

// A small network whose loss is a weighted sum of several, or a weighted one: two heads of classes, a picture that two
// losses compare, in any order; some labels ignored.
ir::Workload random_losses(tensor::Rng& rng);

// A decoder whose cell runs three to five times, unrolled: states are carried, places of a sequence read in turn, what
// each step gives is joined.
ir::Workload random_loop(tensor::Rng& rng);

// exp(tanh(x)): positive numbers away from 0.
ir::ValueId positive(ir::Builder& builder, ir::ValueId x);
// x y + x^2, which has a gradient where y is a step of x.
ir::ValueId after_step(ir::Builder& builder, ir::ValueId x, ir::ValueId y);
// Attributes of a row near their fallbacks, so that its formula keeps its sense.
std::vector<ir::Attribute> random_reals(const ir::Elementwise& row, tensor::Rng& rng);

// Numbers that float32 holds exactly, by input index. Floats are normal with a random scale in [0.5, 1.5),
// integers uniform within ir::row_bounds, three in ten labels ignored where a loss ignores some.
std::vector<tensor::AnyTensor> random_inputs(const ir::Workload& workload, int64_t batch, tensor::Rng& rng);
// By ParamId, exact in float32 too: weights of variance 1 / fan in, biases, shifts and means in [-0.5, 0.5),
// scales in [0.5, 1.5), tables of variance 1, running variances in [0.5, 2).
std::vector<tensor::Tensor> random_weights(const ir::Workload& workload, tensor::Rng& rng);

}  // namespace bakeoff::zoo
