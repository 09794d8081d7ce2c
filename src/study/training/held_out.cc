#include "study/training/held_out.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "data/inputs.h"
#include "plan/rows.h"
#include "proc/interrupt.h"
#include "tensor/safetensors.h"

namespace bakeoff {
namespace {

constexpr int64_t kChunk = 250;  // rows that the referee predicts at once

// Predictions that are right, over the last axis; labels in the same order.
int64_t right_ones(const tensor::Tensor& prediction, const tensor::IntTensor& labels,
                   std::optional<int64_t> ignored) {
  const auto classes = static_cast<size_t>(prediction.shape.back());
  int64_t right = 0;
  for (size_t i = 0; i < labels.data.size(); ++i) {
    if (labels.data[i] == ignored) continue;
    const auto begin = prediction.data.begin() + static_cast<long>(i * classes);
    right += std::max_element(begin, begin + static_cast<long>(classes)) - begin == labels.data[i];
  }
  return right;
}

int64_t ignored_ones(const tensor::IntTensor& labels, std::optional<int64_t> ignored) {
  return ignored ? std::ranges::count(labels.data, *ignored) : 0;
}

// What a batch's loss counts for in the mean over batches: its rows, or the targets that are not ignored.
double counted(const ir::Node& loss, const referee::Inputs& batch, int64_t rows) {
  const auto ignored = ir::ignore_index(loss);
  const auto target = static_cast<size_t>(loss.inputs[1]);
  if (!ignored || target >= batch.size() || loss.word("reduction") != "mean")
    return static_cast<double>(rows);
  const auto& labels = std::get<tensor::IntTensor>(batch[target]);
  return static_cast<double>(static_cast<int64_t>(labels.data.size()) - ignored_ones(labels, ignored));
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
  const ir::Workload& workload = held_out.workload;
  const std::vector<ir::LossTerm> terms = ir::loss_terms(workload);
  std::vector<double> losses(terms.size(), 0.0), counts(terms.size(), 0.0);
  int64_t right = 0, labelled = 0;
  const ir::Node& first = workload.first_loss();
  const auto target = static_cast<size_t>(first.inputs[1]);
  for (const referee::Inputs& batch : held_out.batches) {
    if (proc::interrupted()) return Error{.message = "interrupted"};
    TRY(const auto found, referee::evaluate(workload, weights, batch,
                                            {.train = false, .gradients = false, .activations = true}));
    TRY(const int64_t count, referee::check_inputs(workload, batch));
    for (size_t i = 0; i < terms.size(); ++i) {
      const ir::Node& node = workload.nodes[static_cast<size_t>(terms[i].node)];
      const auto value =
          std::get<tensor::Tensor>(found.activations[static_cast<size_t>(workload.output_of(terms[i].node))]);
      const double weight = counted(node, batch, count);
      losses[i] += value.data[0] * weight;
      counts[i] += weight;
    }
    if (!held_out.has_classes) continue;
    const auto& labels = std::get<tensor::IntTensor>(batch[target]);
    right += right_ones(found.prediction, labels, ir::ignore_index(first));
    labelled += static_cast<int64_t>(labels.data.size()) - ignored_ones(labels, ir::ignore_index(first));
  }
  TargetLook look;
  for (size_t i = 0; i < terms.size(); ++i) {
    if (counts[i] > 0) look.loss += terms[i].weight * losses[i] / counts[i];
  }
  if (labelled > 0) look.accuracy = static_cast<double>(right) / static_cast<double>(labelled);
  return look;
}

Result<referee::Weights> read_state(const ir::Workload& workload, const std::filesystem::path& file,
                                    bool averages) {
  TRY(const auto stored, tensor::SafetensorsFile::open(file));
  referee::Weights weights;
  for (const ir::Parameter& p : workload.parameters) {
    TRY(tensor::Tensor one, stored.read(averages && ir::trainable(p) ? "ema/" + p.name : p.name));
    if (one.shape != p.shape)
      return Error{.message = fmt::format("the state of '{}' has another shape", p.name),
                   .where = file.string()};
    weights.push_back(std::move(one));
  }
  return weights;
}

}  // namespace bakeoff
