#include "referee/gemm.h"

#include <gtest/gtest.h>

#include "referee/gemm_kernel.h"
#include "tensor/rng.h"

namespace bakeoff::referee {
namespace {

std::vector<double> noise(int64_t count, tensor::Rng& rng) {
  std::vector<double> x(static_cast<size_t>(count));
  for (double& v : x) v = rng.uniform(-1, 1);
  return x;
}

// Plain or transposed storage of an r x c matrix.
struct Layout {
  std::vector<int64_t> rows, columns;
  Layout(int64_t r, int64_t c, bool transposed)
      : rows(strided(r, transposed ? 1 : c)), columns(strided(c, transposed ? r : 1)) {}
  size_t at(int64_t i, int64_t j) const {
    return static_cast<size_t>(rows[static_cast<size_t>(i)] + columns[static_cast<size_t>(j)]);
  }
};

TEST(Gemm, EqualsTheThreeLoops) {
  tensor::Rng rng(1);
  const int64_t edges[] = {1, 2, 7, 8, 9, 23, 24, 25, 95, 96, 97, 241, 320, 321, 650};
  for (int trial = 0; trial < 60; ++trial) {
    const int64_t m = edges[rng.integer(0, 11)], n = edges[rng.integer(0, 11)], k = edges[rng.integer(0, 14)];
    const Layout la(m, k, rng.chance(0.5)), lb(k, n, rng.chance(0.5)), lc(m, n, rng.chance(0.5));
    SCOPED_TRACE(::testing::Message() << m << " x " << n << " x " << k);
    const auto a = noise(m * k, rng), b = noise(k * n, rng);
    auto c = noise(m * n, rng);
    const auto before = c;
    gemm(m, n, k, {a.data(), la.rows.data(), la.columns.data()},
         {b.data(), lb.rows.data(), lb.columns.data()}, {c.data(), lc.rows.data(), lc.columns.data()});
    for (int64_t i = 0; i < m; ++i) {
      for (int64_t j = 0; j < n; ++j) {
        double sum = before[lc.at(i, j)];
        for (int64_t p = 0; p < k; ++p) sum += a[la.at(i, p)] * b[lb.at(p, j)];
        ASSERT_NEAR(c[lc.at(i, j)], sum, 1e-12);
      }
    }
  }
}

TEST(Gemm, AddsUpWhereTargetsShareAPlace) {
  const double a[] = {2, 3}, b[] = {5, 7, 11};
  const std::vector<int64_t> one = {0}, rows = {0, 1}, columns = {0, 1, 2};
  std::vector<double> c(4, 1.0);  // c[i + j] += a[i] b[j]: a product of polynomials
  gemm(2, 3, 1, {a, rows.data(), one.data()}, {b, one.data(), columns.data()},
       {c.data(), rows.data(), columns.data()});
  EXPECT_EQ(c, (std::vector<double>{11, 1 + 14 + 15, 1 + 22 + 21, 34}));
}

TEST(Gemm, EveryKernelOfThisProcessorAgrees) {
  std::vector<const GemmKernel*> kernels = {&kGemmBaseline};
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) kernels.push_back(&kGemmAvx2);
  if (__builtin_cpu_supports("avx512f")) kernels.push_back(&kGemmAvx512);
#endif
  EXPECT_STREQ(gemm_kernel_name(), kernels.back()->name);
  tensor::Rng rng(2);
  constexpr int64_t kDepth = 37;
  for (const GemmKernel* kernel : kernels) {
    SCOPED_TRACE(kernel->name);
    const auto a = noise(kDepth * kernel->rows, rng), b = noise(kDepth * kernel->columns, rng);
    std::vector<double> tile(static_cast<size_t>(kernel->rows * kernel->columns), 99.0);
    kernel->run(kDepth, a.data(), b.data(), tile.data());
    for (int64_t i = 0; i < kernel->rows; ++i) {
      for (int64_t j = 0; j < kernel->columns; ++j) {
        double sum = 0;
        for (int64_t p = 0; p < kDepth; ++p) {
          sum +=
              a[static_cast<size_t>(p * kernel->rows + i)] * b[static_cast<size_t>(p * kernel->columns + j)];
        }
        ASSERT_NEAR(tile[static_cast<size_t>(i * kernel->columns + j)], sum, 1e-13);
      }
    }
  }
}

}  // namespace
}  // namespace bakeoff::referee
