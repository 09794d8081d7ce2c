#include "roofline/measure.h"

namespace bakeoff::roofline {

void plain_triad(double* __restrict a, const double* __restrict b, const double* __restrict c, int64_t n,
                 double scale) {
  for (int64_t i = 0; i < n; ++i) a[i] = b[i] + scale * c[i];
}

}  // namespace bakeoff::roofline
