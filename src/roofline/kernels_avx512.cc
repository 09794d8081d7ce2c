#include <immintrin.h>

#include "roofline/kernels.h"
#include "roofline/loops.h"

// Compiled with -mavx512f: 24 sums, factor and addend fit the 32 registers.

namespace bakeoff::roofline {
namespace {

typedef double F64 __attribute__((vector_size(64)));
typedef float F32 __attribute__((vector_size(64)));

struct Avx512 {
  typedef double Vector __attribute__((vector_size(64), may_alias));
  typedef int64_t Bits __attribute__((vector_size(64), may_alias));
  static void stream(double* to, Vector value) { _mm512_stream_pd(to, value); }
};

constexpr FmaKernel kFma[] = {{"f64", 8, 24, fma_loop<F64, double, 24>},
                              {"f32", 16, 24, fma_loop<F32, float, 24>},
                              {nullptr, 0, 0, nullptr}};

}  // namespace

const KernelSet kAvx512 = {"avx512", kFma, &Streams<Avx512>::kKernels};

}  // namespace bakeoff::roofline
