#include "reference/rounding.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "tensor/rng.h"

namespace bakeoff {

double gradient_scale(const tensor::Tensor& exact, double largest) {
  const double norm = tensor::norm(exact);
  return std::max(norm <= kZeroGradient * largest ? 1e-4 * largest : std::max(norm, 1e-6 * largest), 1e-300);
}

void NoisyTwin::step(const referee::Weights& gradients) {
  double largest = 0;
  for (const tensor::Tensor& g : gradients) largest = std::max(largest, tensor::norm(g));
  referee::Weights noisy = gradients;
  for (size_t p = 0; p < noisy.size(); ++p) {
    auto& data = noisy[p].data;
    if (data.empty()) continue;
    const double root = std::sqrt(static_cast<double>(data.size()));
    const double norm = tensor::norm(noisy[p]);
    const double of_largest = norm <= kZeroGradient * largest ? noise_.of_zero : noise_.of_model;
    const double floor = (noise_.of_tensor * norm + of_largest * largest) / root;
    uint64_t bits = tensor::mix(steps_ * 0x9E3779B97F4A7C15ULL + p + 1);
    for (double& g : data) {
      bits = bits * 6364136223846793005ULL + 1442695040888963407ULL;
      const double size = noise_.of_element * std::abs(g) + floor;
      g += (bits >> 63) != 0 ? size : -size;
    }
  }
  referee::step(optimizer_, noisy, state_, weights_);
  ++steps_;
  if (!single_) return;
  for (tensor::Tensor& w : weights_) {
    for (double& x : w.data) x = static_cast<double>(static_cast<float>(x));
  }
}

double sum_apart(const tensor::Tensor& a, const tensor::Tensor& b) {
  if (a.shape != b.shape) return std::numeric_limits<double>::infinity();
  double sum = 0;
  for (size_t i = 0; i < a.data.size(); ++i) sum += std::abs(a.data[i] - b.data[i]);
  return std::isfinite(sum) ? sum : std::numeric_limits<double>::infinity();
}

}  // namespace bakeoff
