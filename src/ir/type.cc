#include "ir/type.h"

namespace bakeoff::ir {

std::string name(DType dtype) { return dtype == DType::kF32 ? "f32" : dtype == DType::kI32 ? "i32" : "bool"; }

std::string size_text(int64_t size) {
  if (size == kBatch) return "N";
  if (size == kSteps || size == kSteps - 1) return size == kSteps ? "L" : "L-1";
  return std::to_string(size);
}

std::string to_text(const Shape& shape) {
  std::string text = "[";
  for (const int64_t size : shape) {
    if (text.size() > 1) text += ',';
    text += size_text(size);
  }
  return text + "]";
}

std::string to_text(const Type& type) { return name(type.dtype) + to_text(type.shape); }

int64_t elements(const Shape& shape, int64_t batch) {
  int64_t count = 1;
  for (const int64_t size : shape) count *= size == kBatch ? batch : size;
  return count;
}

Shape with_batch(Shape shape, int64_t batch) {
  for (int64_t& size : shape) {
    if (size == kBatch) size = batch;
  }
  return shape;
}

int64_t product(const Shape& shape, size_t first, size_t last) {
  return elements(Shape(shape.begin() + static_cast<long>(first), shape.begin() + static_cast<long>(last)));
}

}  // namespace bakeoff::ir
