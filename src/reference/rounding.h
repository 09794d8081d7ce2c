#pragma once

// How far rounding alone moves parameters. Optimizers that divide by a root of squares (RMSprop, Adam) turn
// the rounding error of a gradient near zero into a whole step, so no fixed number limits all of them.
// Instead the optimizer is run a second time on gradients with rounding errors, and its result sets the
// limit.

#include <cstdint>

#include "ir/training.h"
#include "referee/evaluate.h"
#include "referee/optimizer.h"

namespace bakeoff {

// The rounding error of a gradient's element g: a random sign times
// of_element |g| + of_tensor (root mean square of its tensor) + of_model (norm of the largest gradient / root
// of the tensor's elements). Of a tensor that is zero by mathematics (a bias before a batch norm), large terms cancel:
// of_zero in place of of_model.
struct GradientNoise {
  double of_element = 0, of_tensor = 0, of_model = 0, of_zero = 0;
};
inline constexpr double kZeroGradient = 1e-9;  // its norm at most, as a share of the largest gradient's

// What a float64 gradient's error is relative to; `largest`: the norm of the largest gradient. One that is zero by
// mathematics is the rounding of terms that cancel, which a batch norm of nearly equal values makes larger than any
// gradient.
double gradient_scale(const tensor::Tensor& exact, double largest);

inline constexpr GradientNoise kNoise64 = {1e-13, 4e-16, 4e-16, 4e-14};
inline constexpr GradientNoise kNoise32 = {3e-7, 1e-6, 3e-8, 3e-8};

// Repeats a training with gradients that carry this noise.
class NoisyTwin {
 public:
  // `single`: parameters are rounded to float32 after each update.
  NoisyTwin(const ir::Optimizer& optimizer, referee::Weights weights, const GradientNoise& noise, bool single)
      : optimizer_(optimizer),
        noise_(noise),
        single_(single),
        state_(referee::initial_state(weights)),
        weights_(std::move(weights)) {}

  void step(const referee::Weights& gradients);
  const referee::Weights& weights() const { return weights_; }

 private:
  const ir::Optimizer& optimizer_;
  GradientNoise noise_;
  bool single_;
  referee::OptimizerState state_;
  referee::Weights weights_;
  uint64_t steps_ = 0;
};

// Sum of the absolute differences of a and b; infinite if shapes differ or an element is not finite.
double sum_apart(const tensor::Tensor& a, const tensor::Tensor& b);

}  // namespace bakeoff
