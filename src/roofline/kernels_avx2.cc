#include <immintrin.h>

#include "roofline/kernels.h"
#include "roofline/loops.h"

// Compiled with -mavx2 -mfma: 12 sums, factor and addend fit the 16 registers.

namespace bakeoff::roofline {
namespace {

typedef double F64 __attribute__((vector_size(32)));
typedef float F32 __attribute__((vector_size(32)));

struct Avx2 {
  typedef double Vector __attribute__((vector_size(32), may_alias));
  typedef int64_t Bits __attribute__((vector_size(32), may_alias));
  static void stream(double* to, Vector value) { _mm256_stream_pd(to, value); }
};

constexpr FmaKernel kFma[] = {{"f64", 4, 12, fma_loop<F64, double, 12>},
                              {"f32", 8, 12, fma_loop<F32, float, 12>},
                              {nullptr, 0, 0, nullptr}};

}  // namespace

const KernelSet kAvx2 = {"avx2", kFma, &Streams<Avx2>::kKernels};

}  // namespace bakeoff::roofline
