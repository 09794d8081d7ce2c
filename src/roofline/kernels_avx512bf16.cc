#include <immintrin.h>

#include "roofline/dot_loop.h"
#include "roofline/kernels.h"

// Compiled with -mavx512f -mavx512bf16.

namespace bakeoff::roofline {
namespace {

struct Bf16 {
  using Sum = __m512;
  static __m512i factor(char byte) { return _mm512_set1_epi8(byte); }
  static Sum step(Sum sum, __m512i a, __m512i b) {
    return _mm512_dpbf16_ps(sum, reinterpret_cast<__m512bh>(a), reinterpret_cast<__m512bh>(b));
  }
};

constexpr FmaKernel kFma[] = {{"bf16", 32, 24, dot_loop<Bf16, 24>}, {nullptr, 0, 0, nullptr}};

}  // namespace

const KernelSet kAvx512Bf16 = {"avx512-bf16", kFma, nullptr};

}  // namespace bakeoff::roofline
