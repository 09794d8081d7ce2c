#pragma once

// The innermost product, compiled once for each instruction set (gemm_avx512.cc, gemm_avx2.cc,
// gemm_baseline.cc). Those files include nothing else, and all code here has internal linkage: no function
// compiled for a newer processor can be picked by the linker for an older one.

#include <cstdint>

namespace bakeoff::referee {

struct GemmKernel {
  const char* name;
  int64_t rows;  // of the tile
  int64_t columns;
  // tile (rows x columns, row-major) = A B over `depth`, for packed panels: a holds `rows` numbers for each
  // step of the depth, b `columns`.
  void (*run)(int64_t depth, const double* a, const double* b, double* tile);
};

extern const GemmKernel kGemmBaseline;
extern const GemmKernel kGemmAvx2;
extern const GemmKernel kGemmAvx512;

namespace {

template <int64_t kRows, int64_t kVectors, int64_t kLanes>
void gemm_tile(int64_t depth, const double* a, const double* b, double* tile) {
  typedef double Vector __attribute__((vector_size(kLanes * sizeof(double))));
  Vector sums[kRows][kVectors] = {};
  for (int64_t p = 0; p < depth; ++p) {
    Vector right[kVectors];
#pragma GCC unroll 8
    for (int64_t v = 0; v < kVectors; ++v) __builtin_memcpy(&right[v], b + v * kLanes, sizeof(Vector));
#pragma GCC unroll 16
    for (int64_t r = 0; r < kRows; ++r) {
#pragma GCC unroll 8
      for (int64_t v = 0; v < kVectors; ++v) sums[r][v] += a[r] * right[v];
    }
    a += kRows;
    b += kVectors * kLanes;
  }
  __builtin_memcpy(tile, sums, sizeof sums);
}

template <int64_t kRows, int64_t kVectors, int64_t kLanes>
constexpr GemmKernel make_kernel(const char* name) {
  return {name, kRows, kVectors * kLanes, gemm_tile<kRows, kVectors, kLanes>};
}

}  // namespace
}  // namespace bakeoff::referee
