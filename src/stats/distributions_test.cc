#include "stats/distributions.h"

#include <gtest/gtest.h>

namespace bakeoff::stats {
namespace {

// Values of R's qnorm, qt, qchisq and pt.
TEST(Distributions, AreThoseOfTheTables) {
  EXPECT_NEAR(normal_quantile(0.975), 1.959963984540054, 1e-14);
  EXPECT_NEAR(normal_quantile(1e-9), -5.997807015007687, 1e-12);
  EXPECT_NEAR(student_quantile(4, 0.995), 4.60409487135, 1e-10);
  EXPECT_NEAR(student_cdf(2.5, student_quantile(2.5, 0.9)), 0.9, 1e-12);
  EXPECT_NEAR(student_quantile(9, 5e-10), -student_quantile(9, 1 - 5e-10), 1e-3) << "its tails are alike";
  EXPECT_NEAR(chi_squared_quantile(10, 0.05), 3.940299136119060, 1e-12);
  EXPECT_NEAR(student_cdf(4, 4.60409487135), 0.995, 1e-12);
}

}  // namespace
}  // namespace bakeoff::stats
