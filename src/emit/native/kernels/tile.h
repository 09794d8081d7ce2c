#pragma once

// The one micro-kernel: a tile of sums in registers, R rows by n vectors, which a long loop adds products to.
// Every kernel of this folder is this loop over other addresses: of a matrix product a row is a row of A; of
// a convolution a row is a pixel of the result and the loop runs over taps and channels; of a gradient of
// weights a row is a channel of a tap and the loop runs over the pixels of pictures.
//
// Why R x n: each step of the loop loads n vectors of B and R numbers of A, copied into all lanes, for R n
// multiply-adds. Two units that take 4 cycles each need 8 sums at least; with two loads a cycle R + n must be
// well below R n; and R n + n + 1 registers must exist, or the compiler spills sums to the stack, which costs
// a factor of 9. Offsets from row to row are constants of the type, so that one register addresses all rows.

#include <algorithm>

#include "emit/native/kernels/vector.h"

namespace native {
inline namespace NATIVE_ISA {

// What is done to a sum before it is stored, in this order.
enum Finish : unsigned {
  kPlain = 0,
  kBias = 1,  // + bias[column]
  kAdd = 2,   // + what is there
  kRelu = 4,  // max(0, .)
  kMask =
      8,  // 0 where mask <= 0: the gradient before a ReLU, `mask` is what it gave (or took), laid out as y
  kAny = 16,  // what the call says: one tile for all finishes, where the loop is long enough
};

// Distances count numbers. Row i of the tile is row i / wide, column i % wide of a grid.
struct TileShape {
  int64_t tall = 1, wide = 1, vectors = 1;
  int64_t a_tall = 0, a_wide = 0;  // from row to row of A
  int64_t a_step = 1, b_step = 1;  // of the inner loop; 0: as Turns says
  int64_t b_part = 1;              // lanes of the last vector that exist in B; all where it is packed
  unsigned finish = kPlain;
};

// Where a tile's sums go.
struct Out {
  int64_t tall = 0, wide = 0;  // from row to row of y
  int64_t part = 1;            // lanes of the last vector that exist in y, bias and mask
  unsigned finish = kPlain;    // of a tile that is made for kAny
};

// How often the three loops of a tile run, and how far they go in A and B. These are no constants of the
// type, nor are finishes of long sums: layers of other sizes share a tile, and one takes 0.1 s to compile.
struct Turns {
  int64_t outer = 1, middle = 1, inner = 1;
  int64_t a_leap = 0, b_leap = 0;  // of the outer loop
  int64_t a_jump = 0, b_jump = 0;  // of the middle one
  int64_t a_step = 0, b_step = 0;  // of the inner one, where the type does not say
};

// What a finish reads; a null pointer where it does not.
template <typename T>
struct Beside {
  const T* bias = nullptr;
  const T* mask = nullptr;
  Beside moved(int64_t column, int64_t at) const {
    return {bias == nullptr ? bias : bias + column, mask == nullptr ? mask : mask + at};
  }
};

// Steps that B is fetched ahead, and A where each step is a line of its own. Measured on an Intel server with
// 2 units: B in the second cache 98% of the peak, without it 73%; B in the first 98% either way.
inline constexpr int64_t kAhead = 32;
NATIVE_INLINE void ahead(const void* p) { __builtin_prefetch(p); }

#define NATIVE_UNROLL _Pragma("GCC unroll 32")

template <typename T>
NATIVE_INLINE void finish_vector(unsigned finish, int64_t part, typename Lanes<T>::V sum, Beside<T> with,
                                 T* y) {
  using L = Lanes<T>;
  const bool whole = part == L::kLanes;
  const auto load = [&](const T* from) { return whole ? L::load(from) : L::load(from, part); };
  if (finish & kBias) sum = L::add(sum, load(with.bias));
  if (finish & kAdd) sum = L::add(sum, load(y));
  if (finish & kRelu) sum = L::max(sum, L::zero());
  if (finish & kMask) sum = L::where_positive(load(with.mask), sum);
  if (whole)
    L::store(y, sum);
  else
    L::store(y, sum, part);
}

// Rows of `vectors` vectors each, finished by kFinish or one of those after it.
template <typename T, unsigned kFinish = kPlain>
NATIVE_INLINE void finish_rows_by(int64_t tall, int64_t wide, int64_t vectors,
                                  const typename Lanes<T>::V* sums, Beside<T> with, T* y, Out out) {
  constexpr int64_t kLanes = Lanes<T>::kLanes;
  if constexpr (kFinish + 1 < kAny) {
    if (out.finish != kFinish) return finish_rows_by<T, kFinish + 1>(tall, wide, vectors, sums, with, y, out);
  }
  for (int64_t i = 0; i < tall; ++i) {
    for (int64_t j = 0; j < wide; ++j) {
      int64_t at = i * out.tall + j * out.wide;
      for (int64_t v = 0; v + 1 < vectors; ++v, ++sums, at += kLanes)
        finish_vector<T>(kFinish, kLanes, *sums, with.moved(v * kLanes, at), y + at);
      finish_vector<T>(kFinish, out.part, *sums++, with.moved((vectors - 1) * kLanes, at), y + at);
    }
  }
}

// A tile made for kAny stores its sums and calls this: all finishes of all its rows would be most of its code.
template <typename T>
__attribute__((noinline)) void finish_rows(int64_t tall, int64_t wide, int64_t vectors,
                                           const typename Lanes<T>::V* sums, Beside<T> with, T* y, Out out) {
  finish_rows_by<T>(tall, wide, vectors, sums, with, y, out);
}

// y = finish(sum over outer, middle, inner of A[row] * B). `with.mask` moves as y does.
template <typename T, TileShape S>
__attribute__((noinline)) void tile(const T* a, const T* b, Turns turns, Beside<T> with, T* y, Out out) {
  using L = Lanes<T>;
  using V = typename L::V;
  constexpr int64_t kRows = S.tall * S.wide, kVectors = S.vectors;
  V sums[kRows][kVectors];
  NATIVE_UNROLL
  for (int64_t r = 0; r < kRows; ++r) {
    NATIVE_UNROLL
    for (int64_t v = 0; v < kVectors; ++v) sums[r][v] = L::zero();
  }
  const int64_t a_step = S.a_step == 0 ? turns.a_step : S.a_step;
  const int64_t b_step = S.b_step == 0 ? turns.b_step : S.b_step;
  for (int64_t o = 0; o < turns.outer; ++o, a += turns.a_leap, b += turns.b_leap) {
    const T* a_outer = a;
    const T* b_outer = b;
    for (int64_t m = 0; m < turns.middle; ++m, a_outer += turns.a_jump, b_outer += turns.b_jump) {
      const T* from = a_outer;
      const T* with_b = b_outer;
      for (int64_t i = turns.inner; i > 0; --i, from += a_step, with_b += b_step) {
        V right[kVectors];
        if constexpr (S.a_step != 1) ahead(from + kAhead * a_step);
        NATIVE_UNROLL
        for (int64_t v = 0; v < kVectors; ++v) {
          const T* const p = with_b + v * L::kLanes;
          ahead(p + kAhead * b_step);
          right[v] = v + 1 < kVectors || S.b_part == L::kLanes ? L::load(p) : L::load(p, S.b_part);
        }
        NATIVE_UNROLL
        for (int64_t r = 0; r < kRows; ++r) {
          const V left = L::all(from[r / S.wide * S.a_tall + r % S.wide * S.a_wide]);
          NATIVE_UNROLL
          for (int64_t v = 0; v < kVectors; ++v) sums[r][v] = L::fma(left, right[v], sums[r][v]);
        }
      }
    }
  }
  if constexpr (S.finish == kAny) {
    V stored[kRows][kVectors];
    NATIVE_UNROLL
    for (int64_t r = 0; r < kRows; ++r) {
      NATIVE_UNROLL
      for (int64_t v = 0; v < kVectors; ++v) stored[r][v] = sums[r][v];
    }
    return finish_rows<T>(S.tall, S.wide, kVectors, &stored[0][0], with, y, out);
  }
  NATIVE_UNROLL
  for (int64_t r = 0; r < kRows; ++r) {
    const int64_t row = r / S.wide * out.tall + r % S.wide * out.wide;
    NATIVE_UNROLL
    for (int64_t v = 0; v < kVectors; ++v) {
      const int64_t part = v + 1 < kVectors ? L::kLanes : out.part, at = row + v * L::kLanes;
      finish_vector<T>(S.finish, part, sums[r][v], with.moved(v * L::kLanes, at), y + at);
    }
  }
}

// The most rows of a tile of n vectors whose sums, n vectors of B and one number of A fit the registers.
constexpr int64_t most_rows(int64_t vectors) { return (kRegisters - 1 - vectors) / vectors; }

// How many rows of a tile cover `count` rows in the least time: 2 multiply-adds and 2 loads a cycle, no step
// under 4 cycles. Each row is `unit` rows of the tile side by side.
constexpr int64_t best_rows(int64_t count, int64_t vectors, int64_t unit = 1) {
  const auto cost = [&](int64_t rows) {
    const int64_t sums = rows * unit * vectors, loads = rows * unit + 2 * vectors;
    return rows == 0 ? 0 : std::max({sums, loads, int64_t{8}}) + 1;
  };
  const auto total = [&](int64_t rows) { return count / rows * cost(rows) + cost(count % rows); };
  const int64_t most = std::max<int64_t>(1, std::min(most_rows(vectors) / unit, count));
  int64_t best = most;
  for (int64_t rows = most; rows > 0; --rows) {
    if (total(rows) < total(best)) best = rows;
  }
  return best;
}

template <int64_t kValue>
struct Number {
  static constexpr int64_t value = kValue;
};

constexpr int64_t up(int64_t count, int64_t multiple) { return (count + multiple - 1) / multiple * multiple; }

// Calls visit(Number<vectors>, lanes of the last vector, first column) for each block of columns: pairs of
// vectors, and at the end one, two or three.
template <typename T, typename Visit>
NATIVE_INLINE void for_columns(int64_t columns, const Visit& visit) {
  constexpr int64_t kLanes = Lanes<T>::kLanes;
  const int64_t vectors = up(columns, kLanes) / kLanes, part = columns - (vectors - 1) * kLanes;
  const int64_t last = vectors == 1 ? 1 : 2 + vectors % 2, whole = (vectors - last) * kLanes;
  for (int64_t column = 0; column < whole; column += 2 * kLanes) visit(Number<2>{}, kLanes, column);
  if (last == 1) visit(Number<1>{}, part, whole);
  if (last == 2) visit(Number<2>{}, part, whole);
  if (last == 3) visit(Number<3>{}, part, whole);
}

// The same of a constant number of columns, with Number<lanes of the last vector>.
template <typename T, int64_t kColumns, typename Visit>
NATIVE_INLINE void for_all_columns(const Visit& visit) {
  constexpr int64_t kLanes = Lanes<T>::kLanes, kVectors = up(kColumns, kLanes) / kLanes;
  constexpr int64_t kPart = kColumns - (kVectors - 1) * kLanes;
  constexpr int64_t kLast = kVectors == 1 ? 1 : kVectors % 2 == 1 ? 3 : kPart < kLanes ? 2 : 0;
  constexpr int64_t kWhole = (kVectors - kLast) * kLanes;
  for (int64_t column = 0; column < kWhole; column += 2 * kLanes)
    visit(Number<2>{}, Number<kLanes>{}, column);
  if constexpr (kLast > 0) visit(Number<kLast>{}, Number<kPart>{}, kWhole);
}

// Calls visit(Number<rows>, first row) for tiles of kTile rows, and of 8, 2 and 1 for the rest.
template <int64_t kTile, typename Visit>
NATIVE_INLINE void for_rows(int64_t count, const Visit& visit) {
  int64_t row = 0;
  const auto rest = [&](auto rows) {
    for (; row + rows.value <= count; row += rows.value) visit(rows, row);
  };
  rest(Number<kTile>{});
  if constexpr (kTile > 8) rest(Number<8>{});
  rest(Number<2>{}), rest(Number<1>{});
}

// The same for a constant number of rows: one tile of all that is left.
template <int64_t kCount, int64_t kTile, typename Visit>
NATIVE_INLINE void for_all_rows(const Visit& visit) {
  for (int64_t row = 0; row + kTile <= kCount; row += kTile) visit(Number<kTile>{}, row);
  if constexpr (kCount % kTile > 0) visit(Number<kCount % kTile>{}, kCount - kCount % kTile);
}

}  // namespace NATIVE_ISA
}  // namespace native
