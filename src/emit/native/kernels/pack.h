#pragma once

// B as tiles read it: blocks of columns, and in each block one step after the other, filled up with zeros to
// whole vectors. A block of n vectors that begins at column c lies at c * depth; what is `depth` steps deep
// and `columns` wide takes depth * up(columns, lanes) numbers.

#include "emit/native/kernels/tile.h"

namespace native {
inline namespace NATIVE_ISA {

template <typename T>
constexpr int64_t packed_size(int64_t depth, int64_t columns) {
  return depth * up(columns, Lanes<T>::kLanes);
}

// A matrix: row i, column j lies at p[i * row + j * column].
template <typename T>
struct Matrix {
  const T* p;
  int64_t row, column;
  Matrix at(int64_t i, int64_t j) const { return {p + i * row + j * column, row, column}; }
};

// Four rows of four floats become four columns; any other block one number after the other.
template <typename T>
void transpose(const T* from, int64_t pitch, T* to, int64_t to_pitch) {
  for (int64_t i = 0; i < 4; ++i) {
    for (int64_t j = 0; j < 4; ++j) to[j * to_pitch + i] = from[i * pitch + j];
  }
}
#if defined(__SSE2__)
inline void transpose(const float* from, int64_t pitch, float* to, int64_t to_pitch) {
  __m128 a = _mm_loadu_ps(from), b = _mm_loadu_ps(from + pitch);
  __m128 c = _mm_loadu_ps(from + 2 * pitch), d = _mm_loadu_ps(from + 3 * pitch);
  _MM_TRANSPOSE4_PS(a, b, c, d);
  _mm_storeu_ps(to, a), _mm_storeu_ps(to + to_pitch, b);
  _mm_storeu_ps(to + 2 * to_pitch, c), _mm_storeu_ps(to + 3 * to_pitch, d);
}
#endif

// Steps `first` and after of B (rows x columns) into a packed B of `depth` steps.
template <typename T>
__attribute__((noinline)) void pack(int64_t depth, int64_t first, int64_t rows, int64_t columns, Matrix<T> b,
                                    T* to) {
  using L = Lanes<T>;
  for_columns<T>(columns, [&](auto n, int64_t part, int64_t column) {
    constexpr int64_t kVectors = n.value, kWide = kVectors * L::kLanes;
    T* const out = to + column * depth + first * kWide;
    const Matrix<T> from = b.at(0, column);
    const int64_t there = kWide - L::kLanes + part;
    if (b.column == 1) {
      for (int64_t row = 0; row < rows; ++row) {
        NATIVE_UNROLL
        for (int64_t v = 0; v < kVectors; ++v) {
          const T* const p = from.p + row * b.row + v * L::kLanes;
          L::store(out + row * kWide + v * L::kLanes,
                   v + 1 == kVectors && part < L::kLanes ? L::load(p, part) : L::load(p));
        }
      }
      return;
    }
    for (int64_t c = 0; c < kWide; c += 4) {
      const int64_t squares = c + 4 <= there && b.row == 1 ? rows / 4 * 4 : 0;
      for (int64_t r = 0; r < squares; r += 4)
        transpose(from.p + c * b.column + r, b.column, out + r * kWide + c, kWide);
      for (int64_t r = squares; r < rows; ++r) {
        for (int64_t i = c; i < std::min(c + 4, kWide); ++i)
          out[r * kWide + i] = i < there ? from.p[i * b.column + r * b.row] : T{0};
      }
    }
  });
}

}  // namespace NATIVE_ISA
}  // namespace native
