#include "referee/gemm_kernel.h"

// Compiled with -mavx2 -mfma: 12 sums, 3 numbers of B and 1 of A fill the 16 registers.

namespace bakeoff::referee {

const GemmKernel kGemmAvx2 = make_kernel<4, 3, 4>("avx2");

}  // namespace bakeoff::referee
