#pragma once

// Matrix products of any size. B is packed (pack.h), A copied in blocks that have one pitch, whatever the
// size: so a few tiles serve all products of a program, where tiles for each shape would take a second each
// to compile; and no rows fall into the same lines of the cache. Copying A takes about as long as multiplying
// it by two columns of B. The order of every sum depends on the inner size alone: blocks of kDepth steps, one
// after the other.

#include <algorithm>

#include "emit/native/kernels/pack.h"

namespace native {
inline namespace NATIVE_ISA {

inline constexpr int64_t kPage =
    4096;  // bytes: numbers this far apart fall into the same set of the first cache

// Steps at a time: 2 vectors of B for each are an eighth of a second cache of 1 MiB.
template <typename T>
inline constexpr int64_t kDepth = 4096 / sizeof(T);

// Of rows that are `pitch` numbers long: whether a tile of them falls into one or two sets of the first
// cache.
template <typename T>
constexpr bool collides(int64_t pitch) {
  return pitch * static_cast<int64_t>(sizeof(T)) % (kPage / 2) == 0;
}

// Numbers of A, and of B where it is not packed for ever, that are worked off at a time.
template <typename T>
struct Blocks {
  static constexpr int64_t kRows = 16 * most_rows(2), kColumns = 512;
  static constexpr int64_t kPitch = kDepth<T> + Lanes<T>::kLanes;
  static constexpr int64_t kCopy = kRows * kPitch;
  static constexpr int64_t kWork = kCopy + kDepth<T> * kColumns;
};

// y = finish(a b) for one copied block of A, which lies row by row or (kTurned) step by step; `pitch` from row
// to row of y; a block of B's columns that begins at column c lies at c * b_depth.
template <typename T, bool kTurned>
__attribute__((noinline)) void multiply_block(int64_t rows, int64_t depth, int64_t columns, const T* a,
                                              const T* b, int64_t b_depth, int64_t b_first, Beside<T> with,
                                              T* y, int64_t pitch, unsigned finish) {
  using P = Blocks<T>;
  constexpr int64_t kNext = kTurned ? 1 : P::kPitch;
  for_columns<T>(columns, [&](auto n, int64_t part, int64_t column) {
    for_rows<most_rows(n.value)>(rows, [&](auto tall, int64_t row) {
      constexpr TileShape kTile = {.wide = tall.value,
                                   .vectors = n.value,
                                   .a_wide = kNext,
                                   .a_step = kTurned ? P::kRows : 1,
                                   .b_step = n.value * Lanes<T>::kLanes,
                                   .b_part = Lanes<T>::kLanes,
                                   .finish = kAny};
      const int64_t at = row * pitch + column;
      tile<T, kTile>(a + row * kNext, b + column * b_depth + b_first * kTile.b_step, {.inner = depth},
                     with.moved(column, at), y + at, {.wide = pitch, .part = part, .finish = finish});
    });
  });
}

// The same from where A lies.
template <typename T>
void copy_and_multiply(int64_t rows, int64_t depth, int64_t columns, Matrix<T> a, const T* b, int64_t b_depth,
                       int64_t b_first, Beside<T> with, T* y, int64_t pitch, unsigned finish, T* work) {
  using P = Blocks<T>;
  if (a.row == 1 && a.column != 1) {
    for (int64_t k = 0; k < depth; ++k) std::copy_n(a.p + k * a.column, rows, work + k * P::kRows);
    return multiply_block<T, true>(rows, depth, columns, work, b, b_depth, b_first, with, y, pitch, finish);
  }
  for (int64_t row = 0; row < rows; ++row) {
    const T* const from = a.p + row * a.row;
    T* const to = work + row * P::kPitch;
    if (a.column == 1) {
      std::copy_n(from, depth, to);
    } else {
      for (int64_t k = 0; k < depth; ++k) to[k] = from[k * a.column];
    }
  }
  multiply_block<T, false>(rows, depth, columns, work, b, b_depth, b_first, with, y, pitch, finish);
}

// What is done to a sum after steps `k` to `k + depth` of `inner`.
constexpr unsigned finish_of(unsigned finish, int64_t k, int64_t depth, int64_t inner) {
  return k + depth == inner ? finish | (k > 0 ? kAdd : 0u) : k == 0 ? finish & kAdd : kAdd;
}

// y = finish(a b): a is rows x inner, b packed from inner x columns, y rows x columns. `work` has
// Blocks<T>::kWork numbers.
template <typename T>
void multiply_packed(int64_t rows, int64_t inner, int64_t columns, Matrix<T> a, const T* b, Beside<T> with,
                     T* y, int64_t pitch, unsigned finish, T* work) {
  for (int64_t first = 0; first < rows; first += Blocks<T>::kRows) {
    const int64_t count = std::min(Blocks<T>::kRows, rows - first);
    for (int64_t k = 0; k < inner; k += kDepth<T>) {
      const int64_t depth = std::min(kDepth<T>, inner - k);
      copy_and_multiply(count, depth, columns, a.at(first, k), b, inner, k, with.moved(0, first * pitch),
                        y + first * pitch, pitch, finish_of(finish, k, depth, inner), work);
    }
  }
}

// The same with a B that lies anywhere.
template <typename T>
void multiply(int64_t rows, int64_t inner, int64_t columns, Matrix<T> a, Matrix<T> b, Beside<T> with, T* y,
              int64_t pitch, unsigned finish, T* work) {
  using P = Blocks<T>;
  T* const packed = work + P::kCopy;
  for (int64_t column = 0; column < columns; column += P::kColumns) {
    const int64_t wide = std::min(P::kColumns, columns - column);
    for (int64_t k = 0; k < inner; k += kDepth<T>) {
      const int64_t depth = std::min(kDepth<T>, inner - k);
      pack<T>(depth, 0, depth, wide, b.at(k, column), packed);
      for (int64_t first = 0; first < rows; first += P::kRows) {
        const int64_t at = first * pitch + column;
        copy_and_multiply(std::min(P::kRows, rows - first), depth, wide, a.at(first, k), packed, depth,
                          int64_t{0}, with.moved(column, at), y + at, pitch,
                          finish_of(finish, k, depth, inner), work);
      }
    }
  }
}

}  // namespace NATIVE_ISA
}  // namespace native
