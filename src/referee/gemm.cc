#include "referee/gemm.h"

#include <algorithm>
#include <cstring>

#include "referee/gemm_kernel.h"

namespace bakeoff::referee {
namespace {

constexpr int64_t kDepthBlock = 320;  // a panel of B in the first-level cache, a block in the second
constexpr int64_t kRowBlock = 96;     // multiples of every kernel's tile
constexpr int64_t kColumnBlock = 240;

const GemmKernel& kernel() {
#if defined(__x86_64__)
  static const GemmKernel& best = __builtin_cpu_supports("avx512f") ? kGemmAvx512
                                  : __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")
                                      ? kGemmAvx2
                                      : kGemmBaseline;
  return best;
#else
  return kGemmBaseline;
#endif
}

bool contiguous(const int64_t* offsets, int64_t count) {
  for (int64_t i = 1; i < count; ++i) {
    if (offsets[i] != offsets[i - 1] + 1) return false;
  }
  return true;
}

// Panels of `width` of the axis given by `across`, each holding `depth` steps of the other; zeros fill the
// last.
void pack(const double* data, const int64_t* across, int64_t count, const int64_t* along, int64_t depth,
          int64_t width, double* to) {
  for (int64_t first = 0; first < count; first += width) {
    const int64_t have = std::min(width, count - first);
    const int64_t* const at = across + first;
    if (have == width && contiguous(at, width)) {
      for (int64_t p = 0; p < depth; ++p, to += width) {
        std::memcpy(to, data + along[p] + at[0], static_cast<size_t>(width) * sizeof(double));
      }
      continue;
    }
    for (int64_t p = 0; p < depth; ++p, to += width) {
      const double* const from = data + along[p];
      for (int64_t i = 0; i < have; ++i) to[i] = from[at[i]];
      for (int64_t i = have; i < width; ++i) to[i] = 0;
    }
  }
}

void add_tile(const double* tile, int64_t width, const Target& c, const int64_t* rows, int64_t row_count,
              const int64_t* columns, int64_t column_count) {
  const bool plain = contiguous(columns, column_count);
  for (int64_t i = 0; i < row_count; ++i, tile += width) {
    double* const to = c.data + rows[i];
    if (plain) {
      for (int64_t j = 0; j < column_count; ++j) to[columns[0] + j] += tile[j];
    } else {
      for (int64_t j = 0; j < column_count; ++j) to[columns[j]] += tile[j];
    }
  }
}

struct Block {
  int64_t row, rows, column, columns, depth;
};

// C += (packed block of A) (packed block of B).
void multiply(const Block& at, const double* a, const double* b, const Target& c) {
  const GemmKernel& k = kernel();
  alignas(64) double tile[8 * 24];
  for (int64_t j = 0; j < at.columns; j += k.columns) {
    for (int64_t i = 0; i < at.rows; i += k.rows) {
      k.run(at.depth, a + i * at.depth, b + j * at.depth, tile);
      add_tile(tile, k.columns, c, c.rows + at.row + i, std::min(k.rows, at.rows - i),
               c.columns + at.column + j, std::min(k.columns, at.columns - j));
    }
  }
}

}  // namespace

void gemm(int64_t m, int64_t n, int64_t k, const Operand& a, const Operand& b, const Target& c) {
  if (m <= 0 || n <= 0 || k <= 0) return;
  const GemmKernel& best = kernel();
  const int64_t parts = (k + kDepthBlock - 1) / kDepthBlock;
  const int64_t depth_block = (k + parts - 1) / parts;
  thread_local std::vector<double> packed_a, packed_b;
  packed_a.resize(static_cast<size_t>(kRowBlock * kDepthBlock));
  packed_b.resize(static_cast<size_t>(kColumnBlock * kDepthBlock));
  static_assert(kRowBlock % 8 == 0 && kRowBlock % 4 == 0 && kColumnBlock % 24 == 0 && kColumnBlock % 12 == 0);
  for (int64_t column = 0; column < n; column += kColumnBlock) {
    const int64_t columns = std::min(kColumnBlock, n - column);
    for (int64_t p = 0; p < k; p += depth_block) {
      const int64_t depth = std::min(depth_block, k - p);
      pack(b.data, b.columns + column, columns, b.rows + p, depth, best.columns, packed_b.data());
      for (int64_t row = 0; row < m; row += kRowBlock) {
        const int64_t rows = std::min(kRowBlock, m - row);
        pack(a.data, a.rows + row, rows, a.columns + p, depth, best.rows, packed_a.data());
        multiply({row, rows, column, columns, depth}, packed_a.data(), packed_b.data(), c);
      }
    }
  }
}

std::vector<int64_t> strided(int64_t count, int64_t stride) {
  std::vector<int64_t> offsets(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) offsets[static_cast<size_t>(i)] = i * stride;
  return offsets;
}

const char* gemm_kernel_name() { return kernel().name; }

}  // namespace bakeoff::referee
