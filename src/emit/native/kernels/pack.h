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

// Steps `first` and after of B (rows x kColumns at b, `pitch` from row to row) into a packed B of `depth`
// steps.
template <typename T, int64_t kColumns>
__attribute__((noinline)) void pack(int64_t depth, int64_t first, int64_t rows, const T* b, int64_t pitch,
                                    T* to) {
  using L = Lanes<T>;
  for_columns<T, kColumns>([&](auto n, auto part, int64_t column) {
    constexpr int64_t kVectors = n.value, kPart = part.value;
    T* out = to + column * depth + first * kVectors * L::kLanes;
    const T* from = b + column;
    for (int64_t row = 0; row < rows; ++row, from += pitch, out += kVectors * L::kLanes) {
      NATIVE_UNROLL
      for (int64_t v = 0; v < kVectors; ++v) {
        const T* const p = from + v * L::kLanes;
        L::store(out + v * L::kLanes,
                 v + 1 == kVectors && kPart < L::kLanes ? L::load(p, kPart) : L::load(p));
      }
    }
  });
}

// Four rows of four floats become four columns; any other block one number after the other.
inline void transpose(const float* from, int64_t pitch, float* to, int64_t to_pitch) {
  __m128 a = _mm_loadu_ps(from), b = _mm_loadu_ps(from + pitch);
  __m128 c = _mm_loadu_ps(from + 2 * pitch), d = _mm_loadu_ps(from + 3 * pitch);
  _MM_TRANSPOSE4_PS(a, b, c, d);
  _mm_storeu_ps(to, a), _mm_storeu_ps(to + to_pitch, b);
  _mm_storeu_ps(to + 2 * to_pitch, c), _mm_storeu_ps(to + 3 * to_pitch, d);
}
inline void transpose(const double* from, int64_t pitch, double* to, int64_t to_pitch) {
  for (int64_t i = 0; i < 4; ++i) {
    for (int64_t j = 0; j < 4; ++j) to[j * to_pitch + i] = from[i * pitch + j];
  }
}

// The same of a B that lies transposed: step r of column c is b[c * pitch + r].
template <typename T, int64_t kColumns>
__attribute__((noinline)) void pack_transposed(int64_t depth, int64_t first, int64_t rows, const T* b,
                                               int64_t pitch, T* to) {
  constexpr int64_t kLanes = Lanes<T>::kLanes;
  for_columns<T, kColumns>([&](auto n, auto part, int64_t column) {
    constexpr int64_t kWide = n.value * kLanes, kThere = kWide - kLanes + part.value;
    T* const out = to + column * depth + first * kWide;
    const T* const from = b + column * pitch;
    for (int64_t c = 0; c < kWide; c += 4) {
      const int64_t squares = c + 4 <= kThere ? rows / 4 * 4 : 0;
      for (int64_t r = 0; r < squares; r += 4)
        transpose(from + c * pitch + r, pitch, out + r * kWide + c, kWide);
      for (int64_t r = squares; r < rows; ++r) {
        for (int64_t i = c; i < std::min(c + 4, kWide); ++i)
          out[r * kWide + i] = i < kThere ? from[i * pitch + r] : T{0};
      }
    }
  });
}

}  // namespace NATIVE_ISA
}  // namespace native
