#include <algorithm>
#include <cmath>

#include "ir/bounds.h"
#include "zoo/op_cases.h"

namespace bakeoff::zoo {
namespace {

using tensor::Rng;

// What float32 makes of x.
double rounded(double x) { return static_cast<double>(static_cast<float>(x)); }

double draw(const ir::Parameter& p, Rng& rng) {
  switch (p.role) {
    case ir::Role::kWeight: {
      const auto fan_in = ir::product(p.shape, 1, p.shape.size());
      return rng.normal() / std::sqrt(static_cast<double>(fan_in));
    }
    case ir::Role::kTable:
      return rng.normal();
    case ir::Role::kScale:
      return rng.uniform(0.5, 1.5);
    case ir::Role::kRunningVar:
      return rng.uniform(0.5, 2);
    case ir::Role::kBias:
    case ir::Role::kShift:
    case ir::Role::kRunningMean:
    case ir::Role::kCache:
      break;
  }
  return rng.uniform(-0.5, 0.5);
}

}  // namespace

std::vector<tensor::AnyTensor> random_inputs(const ir::Workload& workload, int64_t batch, Rng& rng) {
  const auto bounds = ir::row_bounds(workload);
  std::vector<tensor::AnyTensor> inputs;
  for (size_t i = 0; i < workload.inputs.size(); ++i) {
    const ir::Type& type = workload.inputs[i].type;
    const ir::Shape shape = ir::with_batch(type.shape, batch);
    if (type.dtype == ir::DType::kI32) {
      tensor::IntTensor ids{shape, std::vector<int64_t>(static_cast<size_t>(ir::elements(shape)))};
      const auto frames = ir::ctc_frames(workload, static_cast<ir::ValueId>(i));
      for (size_t k = 0; k < ids.data.size(); ++k) {
        const ir::Bound bound = bounds[i][k % bounds[i].size()].value_or(INT32_MAX);
        if (frames) {
          ids.data[k] = rng.integer(bound.begin, bound.end - 1);
          continue;
        }
        const bool ignored = k > 0 && bound.ignored && rng.chance(0.3);
        ids.data[k] = ignored ? *bound.ignored : rng.integer(0, std::min<int64_t>(bound.end, INT32_MAX) - 1);
        if (k == 0 && ids.data[k] == bound.ignored)
          ids.data[k] = (ids.data[k] + 1) % bound.end;  // one counts
      }
      const size_t length = bounds[i].size();
      for (size_t k = 0; frames && k < ids.data.size(); k += length)
        ir::end_labels(std::span(ids.data).subspan(k, length), rng.integer(0, static_cast<int64_t>(length)),
                       *frames);
      inputs.emplace_back(std::move(ids));
      continue;
    }
    tensor::Tensor x = tensor::zeros(shape);
    const double scale = rng.uniform(0.5, 1.5);
    for (double& element : x.data) element = rounded(scale * rng.normal());
    inputs.emplace_back(std::move(x));
  }
  return inputs;
}

std::vector<tensor::Tensor> random_weights(const ir::Workload& workload, Rng& rng) {
  std::vector<tensor::Tensor> weights;
  for (const ir::Parameter& p : workload.parameters) {
    weights.push_back(tensor::zeros(p.shape));
    for (double& element : weights.back().data) element = rounded(draw(p, rng));
  }
  return weights;
}

}  // namespace bakeoff::zoo
