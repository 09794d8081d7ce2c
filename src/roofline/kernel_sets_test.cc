#include "roofline/kernel_sets.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <vector>

namespace bakeoff::roofline {
namespace {

TEST(KernelSets, TheScalarOneIsAlwaysThere) {
  ASSERT_FALSE(supported_kernels().empty());
  EXPECT_EQ(supported_kernels().front(), &kScalar);
}

TEST(KernelSets, EveryKernelRuns) {
  for (const KernelSet* set : supported_kernels()) {
    SCOPED_TRACE(set->isa);
    ASSERT_NE(set->fma[0].dtype, nullptr);
    for (const FmaKernel* k = set->fma; k->dtype != nullptr; ++k) {
      EXPECT_GT(k->operations(), 0);
      k->run(100);
    }
  }
}

struct Arrays {
  explicit Arrays(int64_t n) : size(n) {
    for (double*& p : at)
      p = static_cast<double*>(std::aligned_alloc(64, static_cast<size_t>(n) * sizeof(double)));
    for (int64_t i = 0; i < n; ++i) {
      at[0][i] = -1;
      at[1][i] = static_cast<double>(i);
      at[2][i] = static_cast<double>(3 * i + 2);
    }
  }
  ~Arrays() {
    for (double* p : at) std::free(p);
  }
  Arrays(const Arrays&) = delete;
  Arrays& operator=(const Arrays&) = delete;
  int64_t size;
  double* at[3];
};

TEST(KernelSets, StreamsTouchEveryNumber) {
  for (const KernelSet* set : supported_kernels()) {
    if (set->streams == nullptr) continue;
    SCOPED_TRACE(set->isa);
    Arrays x(1536);
    const auto [a, b, c] = x.at;
    set->streams->read(b, x.size, 2);
    set->streams->copy(a, b, x.size, 1);
    for (int64_t i = 0; i < x.size; ++i) ASSERT_EQ(a[i], static_cast<double>(i));
    set->streams->triad(a, b, c, x.size, 2);
    for (int64_t i = 0; i < x.size; ++i) ASSERT_EQ(a[i], static_cast<double>(i) + 0.5 * c[i]);
    set->streams->write(a, x.size, 1);
    for (int64_t i = 0; i < x.size; ++i) ASSERT_EQ(a[i], 1.5);
    set->streams->triad_nt(a, b, c, x.size, 1);
    for (int64_t i = 0; i < x.size; ++i) ASSERT_EQ(a[i], static_cast<double>(i) + 0.5 * c[i]);
  }
}

TEST(FmaUnits, KnownProcessors) {
  EXPECT_EQ(fma_units({"AuthenticAMD", 0x17, 0x01}, 256), 1) << "Zen 1 halves them";
  EXPECT_EQ(fma_units({"AuthenticAMD", 0x19, 0x01}, 256), 2);
  EXPECT_EQ(fma_units({"AuthenticAMD", 0x19, 0x11}, 512), 1) << "Zen 4 halves them";
  EXPECT_EQ(fma_units({"AuthenticAMD", 0x1a, 0x02}, 512), 2);
  EXPECT_EQ(fma_units({"GenuineIntel", 6, 0x6a}, 512), 2);
  EXPECT_EQ(fma_units({"GenuineIntel", 6, 0x8c}, 512), 1);
  EXPECT_EQ(fma_units({"GenuineIntel", 6, 0x55}, 512), 0) << "one or two: not to be told from the model";
  EXPECT_EQ(fma_units({"GenuineIntel", 6, 0x55}, 256), 2);
  EXPECT_EQ(fma_units({"SomebodyElse", 6, 0x55}, 256), 0);
}

}  // namespace
}  // namespace bakeoff::roofline
