#include "referee/gemm_kernel.h"

// Compiled with -mavx512f -mfma: 24 sums, 3 numbers of B and 1 of A in 32 registers.

namespace bakeoff::referee {

const GemmKernel kGemmAvx512 = make_kernel<8, 3, 8>("avx512");

}  // namespace bakeoff::referee
