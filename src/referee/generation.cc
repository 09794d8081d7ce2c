#include "referee/generation.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace bakeoff::referee {
namespace {

// The input that the model reads.
size_t words_input(const ir::Workload& workload) {
  for (int n = 0; n < workload.model_end(); ++n) {
    for (const ir::ValueId id : workload.nodes[static_cast<size_t>(n)].inputs)
      if (workload.is_input(id)) return static_cast<size_t>(id);
  }
  return 0;
}

}  // namespace

tensor::Tensor chosen_from(const tensor::Tensor& prediction, const ir::Generation& generation) {
  const int64_t rows = prediction.shape[0], places = prediction.shape[1], width = prediction.shape[2];
  tensor::Tensor chosen{.shape = {rows, generation.words, width}, .data = {}};
  for (int64_t row = 0; row < rows; ++row) {
    const auto begin = prediction.data.begin() + (row * places + generation.prompt - 1) * width;
    chosen.data.insert(chosen.data.end(), begin, begin + generation.words * width);
  }
  return chosen;
}

Result<double> greedy_gap(const ir::Workload& workload, const Weights& weights, Inputs batch,
                          const std::vector<int64_t>& words, const ir::Generation& generation) {
  constexpr double kNone = std::numeric_limits<double>::infinity();
  auto& read = std::get<tensor::IntTensor>(batch[words_input(workload)]);
  const int64_t rows = read.shape[0], places = read.shape[1];
  if (static_cast<int64_t>(words.size()) != rows * generation.words) return kNone;
  const auto bound = [&](int64_t word) { return word < 0 || word > std::numeric_limits<int32_t>::max(); };
  if (std::any_of(words.begin(), words.end(), bound)) return kNone;
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t i = 0; i < generation.words; ++i) {
      const int64_t place = generation.prompt + i;
      if (place < places)
        read.data[static_cast<size_t>(row * places + place)] =
            words[static_cast<size_t>(row * generation.words + i)];
    }
  }
  // A number beyond the vocabulary is no word.
  if (!check_inputs(workload, batch)) return kNone;
  TRY(const Evaluation e, evaluate(workload, weights, batch, {.train = false, .gradients = false}));
  const tensor::Tensor logits = chosen_from(e.prediction, generation);
  const auto width = logits.shape[2];
  double worst = 0;
  for (size_t n = 0; n < words.size(); ++n) {
    const auto begin = logits.data.begin() + static_cast<int64_t>(n) * width;
    if (words[n] >= width) return kNone;
    double squares = 0, most = -kNone;
    for (auto x = begin; x != begin + width; ++x) squares += *x * *x, most = std::max(most, *x);
    const double size = std::max(std::sqrt(squares / static_cast<double>(width)), 1e-300);
    worst = std::max(worst, (most - *(begin + words[n])) / size);
  }
  return worst;
}

}  // namespace bakeoff::referee
