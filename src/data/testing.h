#pragma once

// For tests: a small network, and data for it.

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/testing.h"
#include "ir/bounds.h"
#include "ir/builder.h"
#include "tensor/rng.h"
#include "tensor/safetensors.h"

namespace bakeoff::testing {

// A small network with every op whose conventions differ between frameworks, and what may be left out of it.
struct Network {
  bool conv2_bias = true;
  bool fc2_bias = true;
  bool relu2 = true;
  bool softmax = false;  // before the loss
  bool operator==(const Network&) const = default;
};
inline ir::Workload network(const Network& with = {}) {
  using ir::Op;
  using Ints = std::vector<int64_t>;
  ir::Builder b("network");
  const auto x = b.input("x", {ir::DType::kF32, {ir::kBatch, 2, 8, 8}});
  const auto y = b.input("y", {ir::DType::kI32, {ir::kBatch}});
  auto h = b.conv(x, "conv1", {.channels = 3, .stride = {2, 2}, .pad = {1, 1, 1, 1}});
  h = b.named(b.relu(b.batch_norm(h, "bn1")), "act1");
  h = b.conv(h, "conv2", {.channels = 4, .pad = {1, 1, 1, 1}, .bias = with.conv2_bias});
  if (with.relu2) h = b.named(b.relu(h), "act2");
  h = b.apply(Op::kAvgPool2d, {h},
              {{"kernel", Ints{3, 3}}, {"stride", Ints{2, 2}}, {"pad", Ints{1, 1, 1, 1}}});
  h = b.linear(b.apply(Op::kFlatten, {h}), "fc1", 6);
  h = b.layer_norm(b.apply(Op::kGelu, {h}), "ln");
  h = b.linear(h, "fc2", 3, with.fc2_bias);
  if (with.softmax) h = b.apply(Op::kSoftmax, {h});
  return b.finish(b.softmax_cross_entropy(h, y)).value();
}

// Uniform numbers in [-1, 1) and labels in [0, classes); for a ctc rows of labels in [1, classes], which its frames hold.
inline Status write_random_data(const ir::Workload& workload, int64_t rows, int64_t classes,
                                const fs::path& file) {
  tensor::Rng rng(5);
  tensor::NamedTensors named;
  for (size_t id = 0; id < workload.inputs.size(); ++id) {
    const ir::Input& input = workload.inputs[id];
    const auto frames = ir::ctc_frames(workload, static_cast<ir::ValueId>(id));
    const tensor::Shape shape = ir::with_batch(input.type.shape, rows);
    if (input.type.dtype == ir::DType::kI32) {
      tensor::IntTensor labels{shape, {}};
      for (int64_t i = 0; i < tensor::elements(shape); ++i)
        labels.data.push_back(rng.integer(0, classes - 1) + (frames ? 1 : 0));
      const auto length = static_cast<size_t>(shape.back());
      for (size_t i = 0; frames && i < labels.data.size(); i += length)
        ir::end_labels(std::span(labels.data).subspan(i, length), rng.integer(0, shape.back()), *frames);
      TRY(auto raw, tensor::encode(labels, tensor::DType::kI32));
      named.emplace_back(input.name, std::move(raw));
    } else {
      tensor::Tensor numbers = tensor::zeros(shape);
      for (double& number : numbers.data) number = rng.uniform(-1, 1);
      TRY(auto raw, tensor::encode(numbers, tensor::DType::kF32));
      named.emplace_back(input.name, std::move(raw));
    }
  }
  return tensor::write_safetensors(file, named);
}

}  // namespace bakeoff::testing
