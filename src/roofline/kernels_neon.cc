#include "roofline/kernels.h"
#include "roofline/loops.h"

// Every 64-bit ARM processor has these instructions: 24 sums, factor and addend fit the 32 registers, and four units
// that take four cycles need 16 sums. kScalar's memory loops are as wide. A processor with SVE registers of more than
// 128 bits may be faster than what is measured here (docs/install.md).

namespace bakeoff::roofline {
namespace {

typedef double F64 __attribute__((vector_size(16)));
typedef float F32 __attribute__((vector_size(16)));

constexpr FmaKernel kFma[] = {{"f64", 2, 24, fma_loop<F64, double, 24>},
                              {"f32", 4, 24, fma_loop<F32, float, 24>},
                              {nullptr, 0, 0, nullptr}};

}  // namespace

const KernelSet kNeon = {"neon", kFma, nullptr};

}  // namespace bakeoff::roofline
