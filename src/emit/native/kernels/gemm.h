#pragma once

// Matrix products. B is packed (pack.h); A is read where it lies, or from a copy where its rows would fall
// into the same lines of the cache. The order of every sum depends on the inner size alone: blocks of kDepth
// steps, one after the other.

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

template <typename T, int64_t kInner>
struct RowProduct {
  static constexpr bool kCopies = collides<T>(kInner);
  static constexpr int64_t kRows = 16 * most_rows(2);  // of A at a time
  static constexpr int64_t kPitch = kCopies ? kDepth<T> + Lanes<T>::kLanes : kInner;
  static constexpr int64_t kWork = kCopies ? kRows * kPitch : 0;
};

// y = finish(a b): a is rows x kInner, b packed from kInner x kColumns, y rows x kColumns. `work` has kWork
// numbers.
template <typename T, int64_t kInner, int64_t kColumns, unsigned kFinish>
void multiply_rows(int64_t rows, const T* a, const T* b, Beside<T> with, T* y, T* work) {
  using P = RowProduct<T, kInner>;
  const auto block = [&](auto depth, auto finish, int64_t first, int64_t k, int64_t count) {
    const T* from = a + first * kInner + k;
    if constexpr (P::kCopies) {
      for (int64_t row = 0; row < count; ++row)
        std::copy_n(from + row * kInner, depth.value, work + row * P::kPitch);
      from = work;
    }
    for_columns<T, kColumns>([&](auto n, auto part, int64_t column) {
      constexpr int64_t kWide = n.value * Lanes<T>::kLanes;
      for_rows<most_rows(n.value)>(count, [&](auto tall, int64_t row) {
        constexpr TileShape kTile = {.tall = 1,
                                     .wide = tall.value,
                                     .vectors = n.value,
                                     .a_wide = P::kPitch,
                                     .a_step = 1,
                                     .b_step = kWide,
                                     .y_wide = kColumns,
                                     .part = part.value,
                                     .b_part = Lanes<T>::kLanes,
                                     .finish = static_cast<unsigned>(finish.value)};
        const int64_t at = (first + row) * kColumns + column;
        tile<T, kTile>(from + row * P::kPitch, b + column * kInner + k * kWide, {.inner = depth.value},
                       with.moved(column, at), y + at);
      });
    });
  };
  constexpr int64_t kLast = (kInner - 1) / kDepth<T> * kDepth<T>;
  for (int64_t first = 0; first < rows; first += P::kRows) {
    const int64_t count = std::min(P::kRows, rows - first);
    if constexpr (kLast > 0) block(Number<kDepth<T>>{}, Number<kFinish & kAdd>{}, first, 0, count);
    if constexpr (kLast > kDepth<T>) {
      for (int64_t k = kDepth<T>; k < kLast; k += kDepth<T>)
        block(Number<kDepth<T>>{}, Number<kAdd>{}, first, k, count);
    }
    block(Number<kInner - kLast>{}, Number < (kLast > 0) ? kFinish | kAdd : kFinish > {}, first, kLast,
          count);
  }
}

template <typename T, int64_t kColumns>
struct ColumnProduct {
  static constexpr bool kCopies = kColumns > 2 * Lanes<T>::kLanes;  // where A would be read several times
  static constexpr int64_t kRows = 16 * most_rows(2);
  static constexpr int64_t kPitch = up(kRows, Lanes<T>::kLanes);
  static constexpr int64_t kWork = packed_size<T>(kDepth<T>, kColumns) + (kCopies ? kDepth<T> * kPitch : 0);
};

// y = a^T b (kFinish: or y += a^T b) for rows `first` to `last` of y: a is inner x kRows, b inner x kColumns,
// y kRows x kColumns.
template <typename T, int64_t kRows, int64_t kColumns, unsigned kFinish>
void multiply_transposed(int64_t inner, const T* a, const T* b, T* y, int64_t first, int64_t last, T* work) {
  using P = ColumnProduct<T, kColumns>;
  constexpr int64_t kPitch = P::kCopies ? P::kPitch : kRows;
  T* const copy = work + packed_size<T>(kDepth<T>, kColumns);
  const auto block = [&](auto finish, int64_t k, int64_t depth) {
    pack<T, kColumns>(depth, 0, depth, b + k * kColumns, kColumns, work);
    for (int64_t begin = first; begin < last; begin += P::kRows) {
      const int64_t count = std::min(P::kRows, last - begin);
      const T* from = a + k * kRows + begin;
      if constexpr (P::kCopies) {
        for (int64_t i = 0; i < depth; ++i) std::copy_n(from + i * kRows, count, copy + i * kPitch);
        from = copy;
      }
      for_columns<T, kColumns>([&](auto n, auto part, int64_t column) {
        constexpr int64_t kWide = n.value * Lanes<T>::kLanes;
        for_rows<most_rows(n.value)>(count, [&](auto tall, int64_t row) {
          constexpr TileShape kTile = {.wide = tall.value,
                                       .vectors = n.value,
                                       .a_wide = 1,
                                       .a_step = kPitch,
                                       .b_step = kWide,
                                       .y_wide = kColumns,
                                       .part = part.value,
                                       .b_part = Lanes<T>::kLanes,
                                       .finish = static_cast<unsigned>(finish.value)};
          tile<T, kTile>(from + row, work + column * depth, {.inner = depth}, {},
                         y + (begin + row) * kColumns + column);
        });
      });
    }
  };
  block(Number<kFinish>{}, 0, std::min(kDepth<T>, inner));
  for (int64_t k = kDepth<T>; k < inner; k += kDepth<T>)
    block(Number<kAdd>{}, k, std::min(kDepth<T>, inner - k));
}

}  // namespace NATIVE_ISA
}  // namespace native
