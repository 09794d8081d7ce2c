#include <immintrin.h>

#include "roofline/dot_loop.h"
#include "roofline/kernels.h"

// Compiled with -mavx2 -mavxvnni.

namespace bakeoff::roofline {
namespace {

struct Int8 {
  using Sum = __m256i;
  static __m256i factor(char byte) { return _mm256_set1_epi8(byte); }
  static Sum step(Sum sum, __m256i a, __m256i b) { return _mm256_dpbusd_avx_epi32(sum, a, b); }
};

constexpr FmaKernel kFma[] = {{"int8", 32, 12, dot_loop<Int8, 12>}, {nullptr, 0, 0, nullptr}};

}  // namespace

const KernelSet kAvxVnni = {"avx-vnni", kFma, nullptr};

}  // namespace bakeoff::roofline
