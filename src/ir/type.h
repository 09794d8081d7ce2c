#pragma once

// Shapes and element types of values in a workload.

#include <cstdint>
#include <string>
#include <vector>

namespace bakeoff::ir {

// Inputs are f32 or i32; comparisons give bool.
enum class DType { kF32, kI32, kBool };

// Sizes of a value's axes; none for a scalar. kBatch stands for the batch size N, which is not known to the
// graph; it is always axis 0 and appears once at most. Values that depend on no input lack it.
using Shape = std::vector<int64_t>;
inline constexpr int64_t kBatch = -1;
// The number of words in a step of decoding (passes/decode.h), in texts L: all of the prompt, then one at a time. It is a
// size like any other to shape inference, so large a prime that no network has it or a multiple of it.
inline constexpr int64_t kSteps = 1'000'000'007;

struct Type {
  DType dtype = DType::kF32;
  Shape shape;
  bool operator==(const Type&) const = default;
};

std::string name(DType dtype);        // "f32", "i32", "bool"
std::string size_text(int64_t size);  // "N", "L", "L-1", "28"
std::string to_text(const Shape&);    // "[N,1,28,28]"; "[]" for a scalar
std::string to_text(const Type&);     // "f32[N,1,28,28]"

// Number of elements with N = batch.
int64_t elements(const Shape& shape, int64_t batch = 1);
// The shape with N replaced by `batch`.
Shape with_batch(Shape shape, int64_t batch);
// Product of the sizes of axes [first, last).
int64_t product(const Shape& shape, size_t first, size_t last);

}  // namespace bakeoff::ir
