#include "referee/gemm_kernel.h"

namespace bakeoff::referee {

const GemmKernel kGemmBaseline = make_kernel<4, 2, 2>("baseline");

}  // namespace bakeoff::referee
