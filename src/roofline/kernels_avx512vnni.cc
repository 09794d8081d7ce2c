#include <immintrin.h>

#include "roofline/dot_loop.h"
#include "roofline/kernels.h"

// Compiled with -mavx512f -mavx512vnni.

namespace bakeoff::roofline {
namespace {

struct Int8 {
  using Sum = __m512i;
  static __m512i factor(char byte) { return _mm512_set1_epi8(byte); }
  static Sum step(Sum sum, __m512i a, __m512i b) { return _mm512_dpbusd_epi32(sum, a, b); }
};

constexpr FmaKernel kFma[] = {{"int8", 64, 24, dot_loop<Int8, 24>}, {nullptr, 0, 0, nullptr}};

}  // namespace

const KernelSet kAvx512Vnni = {"avx512-vnni", kFma, nullptr};

}  // namespace bakeoff::roofline
