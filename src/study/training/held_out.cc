#include "study/training/held_out.h"

#include <fmt/format.h>

#include <algorithm>

#include "data/inputs.h"
#include "plan/rows.h"
#include "proc/interrupt.h"
#include "tensor/safetensors.h"

namespace bakeoff {
namespace {

constexpr int64_t kChunk = 250;  // rows that the referee predicts at once

// Predictions that are right, over the last axis; labels in the same order.
int64_t right_ones(const tensor::Tensor& prediction, const tensor::IntTensor& labels) {
  const auto classes = static_cast<size_t>(prediction.shape.back());
  int64_t right = 0;
  for (size_t i = 0; i < labels.data.size(); ++i) {
    const auto begin = prediction.data.begin() + static_cast<long>(i * classes);
    right += std::max_element(begin, begin + static_cast<long>(classes)) - begin == labels.data[i];
  }
  return right;
}

}  // namespace

Result<HeldOut> hold_out(const ir::Workload& workload, const std::filesystem::path& data, double divisor,
                         int64_t first, int64_t rows) {
  HeldOut held{.workload = workload, .has_classes = has_classes(workload)};
  for (int64_t at = 0; at < rows; at += kChunk) {
    TRY(auto chunk, read_inputs(workload, data, divisor, first + at, std::min(kChunk, rows - at)));
    held.batches.push_back(std::move(chunk));
  }
  return held;
}

Result<TargetLook> look_at(const HeldOut& held_out, const referee::Weights& weights) {
  double loss = 0, rows = 0;
  int64_t right = 0, labelled = 0;
  const auto target = static_cast<size_t>(held_out.workload.nodes.back().inputs.back());
  for (const referee::Inputs& batch : held_out.batches) {
    if (proc::interrupted()) return Error{.message = "interrupted"};
    TRY(const auto found,
        referee::evaluate(held_out.workload, weights, batch, {.train = false, .gradients = false}));
    TRY(const int64_t count, referee::check_inputs(held_out.workload, batch));
    loss += found.loss * static_cast<double>(count);
    rows += static_cast<double>(count);
    if (!held_out.has_classes) continue;
    const auto& labels = std::get<tensor::IntTensor>(batch[target]);
    right += right_ones(found.prediction, labels);
    labelled += static_cast<int64_t>(labels.data.size());
  }
  TargetLook look{.loss = loss / rows};
  if (labelled > 0) look.accuracy = static_cast<double>(right) / static_cast<double>(labelled);
  return look;
}

Result<referee::Weights> read_state(const ir::Workload& workload, const std::filesystem::path& file) {
  TRY(const auto stored, tensor::SafetensorsFile::open(file));
  referee::Weights weights;
  for (const ir::Parameter& p : workload.parameters) {
    TRY(tensor::Tensor one, stored.read(p.name));
    if (one.shape != p.shape)
      return Error{.message = fmt::format("the state of '{}' has another shape", p.name),
                   .where = file.string()};
    weights.push_back(std::move(one));
  }
  return weights;
}

}  // namespace bakeoff
