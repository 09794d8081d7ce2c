#include "tensor/tensor.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "base/texts.h"

namespace bakeoff::tensor {

int64_t elements(const Shape& shape) {
  int64_t count = 1;
  for (const int64_t size : shape) count *= size;
  return count;
}

std::string to_text(const Shape& shape) { return fmt::format("[{}]", join(shape, ",")); }

Tensor zeros(Shape shape) { return full(std::move(shape), 0.0); }

Tensor full(Shape shape, double value) {
  Tensor made{.shape = std::move(shape), .data = {}};
  made.data.assign(static_cast<size_t>(elements(made.shape)), value);
  return made;
}

const Shape& shape_of(const AnyTensor& any) {
  return std::visit([](const auto& held) -> const Shape& { return held.shape; }, any);
}

double norm(const Tensor& tensor) {
  double sum = 0;
  for (const double x : tensor.data) sum += x * x;
  return std::sqrt(sum);
}

double relative_distance(const Tensor& a, const Tensor& b) {
  if (a.shape != b.shape || a.data.size() != b.data.size()) return std::numeric_limits<double>::infinity();
  double sum = 0;
  for (size_t i = 0; i < a.data.size(); ++i) {
    const double d = a.data[i] - b.data[i];
    sum += d * d;
  }
  const double scale = norm(b);
  return scale == 0 ? std::sqrt(sum) : std::sqrt(sum) / scale;
}

}  // namespace bakeoff::tensor
