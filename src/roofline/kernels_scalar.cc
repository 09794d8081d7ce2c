// Compiled for any processor, without vectorisation: one number an instruction, multiplication and addition
// apart where the instruction set has no fused one.

#include "roofline/kernels.h"
#include "roofline/loops.h"
#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace bakeoff::roofline {
namespace {

struct Scalar {
  typedef double Vector __attribute__((vector_size(16), may_alias));
  typedef int64_t Bits __attribute__((vector_size(16), may_alias));
  static void stream(double* to, Vector value) {
#if defined(__SSE2__)
    _mm_stream_pd(to, value);
#else
    *reinterpret_cast<Vector*>(to) = value;
#endif
  }
};

constexpr FmaKernel kFma[] = {{"f64", 1, 10, fma_loop<double, double, 10>},
                              {"f32", 1, 10, fma_loop<float, float, 10>},
                              {nullptr, 0, 0, nullptr}};

}  // namespace

const KernelSet kScalar = {"scalar", kFma, &Streams<Scalar>::kKernels};

void dependent_additions(int64_t times) {
  uint64_t sum = 1, step = 3;
  for (int64_t i = 0; i < times; ++i) {
#if defined(__x86_64__)
    asm volatile(".rept 64\n add %1, %0\n .endr" : "+r"(sum) : "r"(step) : "cc");
#else
#pragma GCC unroll 64
    for (int k = 0; k < 64; ++k) {
      sum += step;
      asm volatile("" : "+r"(sum));
    }
#endif
  }
}

}  // namespace bakeoff::roofline
