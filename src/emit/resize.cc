#include "emit/resize.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "ir/resize.h"

namespace bakeoff::emit {
namespace {

// The place that the form reads for output place i of `to`.
double place(NearestForm form, bool half_pixel, int64_t i, int64_t from, int64_t to) {
  const auto at = static_cast<float>(i), size = static_cast<float>(from), count = static_cast<float>(to);
  switch (form) {
    case NearestForm::kTorch:
      return std::floor(at * (size / count));
    case NearestForm::kTorchExact:
      return std::floor((at + 0.5F) * (size / count));
    case NearestForm::kJax:
      return std::floor((at + 0.5F) * size / count);
    case NearestForm::kTensorFlow:
      return std::floor((at + 0.5F) * (size / count));
    case NearestForm::kOnnx:
      break;
  }
  const float scale = count / size;
  return half_pixel ? std::floor((at + 0.5F) / scale - 0.5F + 0.5F) : std::floor(at / scale);
}

}  // namespace

bool is_linear(const ir::Node& resize) { return resize.word("mode") == "linear"; }

bool half_pixel_linear(const ir::Node& resize) {
  return is_linear(resize) && resize.word("coordinates") == "half_pixel";
}

bool nearest_is(NearestForm form, const ir::Node& resize, const ir::Shape& from) {
  if (is_linear(resize)) return false;
  const bool half_pixel = resize.word("coordinates") == "half_pixel";
  const auto& size = resize.integers("size");
  for (size_t axis = 0; axis < size.size(); ++axis) {
    const auto taps = ir::resize_taps(resize, from[axis + 2], size[axis]);
    for (size_t i = 0; i < taps.size(); ++i) {
      if (static_cast<double>(taps[i].low) !=
          place(form, half_pixel, static_cast<int64_t>(i), from[axis + 2], size[axis]))
        return false;
    }
  }
  return true;
}

std::string interpolate_mode(const ir::Node& resize, const ir::Shape& from) {
  constexpr const char* kLinear[] = {"linear", "bilinear", "trilinear"};
  if (is_linear(resize))
    return resize.word("coordinates") == "asymmetric" ? "" : kLinear[resize.integers("size").size() - 1];
  if (nearest_is(NearestForm::kTorch, resize, from)) return "nearest";
  return nearest_is(NearestForm::kTorchExact, resize, from) ? "nearest-exact" : "";
}

std::vector<int64_t> whole_factors(const ir::Node& resize, const ir::Shape& from) {
  std::vector<int64_t> factors;
  const auto& size = resize.integers("size");
  for (size_t axis = 0; axis < size.size() && !is_linear(resize); ++axis) {
    if (size[axis] % from[axis + 2] != 0) return {};
    factors.push_back(size[axis] / from[axis + 2]);
  }
  return factors;
}

std::vector<std::string> resize_options(const ir::Node& resize) {
  return {fmt::format("mode=\"{}\"", resize.word("mode")),
          fmt::format("coordinates=\"{}\"", resize.word("coordinates"))};
}

}  // namespace bakeoff::emit
