#pragma once

// Matrix product over operands that are addressed by offset tables, so that one product serves plain and
// transposed matrices, the windows of a convolution (never copied out) and the scatter of its input gradient.

#include <cstdint>
#include <vector>

namespace bakeoff::referee {

// Element (i, j) is data[rows[i] + columns[j]].
struct Operand {
  const double* data = nullptr;
  const int64_t* rows = nullptr;
  const int64_t* columns = nullptr;
};

// Element (i, j) is added to data[rows[i] + columns[j]]; several elements may share one place.
struct Target {
  double* data = nullptr;
  const int64_t* rows = nullptr;
  const int64_t* columns = nullptr;
};

// C += A B for A of m x k, B of k x n. On the calling thread. The order of the sums depends on the sizes
// alone.
void gemm(int64_t m, int64_t n, int64_t k, const Operand& a, const Operand& b, const Target& c);

// 0, stride, 2 stride, ...: the offsets of a plain matrix.
std::vector<int64_t> strided(int64_t count, int64_t stride);

// "avx512", "avx2" or "baseline": the kernel that this processor gets.
const char* gemm_kernel_name();

}  // namespace bakeoff::referee
