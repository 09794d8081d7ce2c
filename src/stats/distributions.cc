#include "stats/distributions.h"

#include <boost/math/distributions/binomial.hpp>
#include <boost/math/distributions/chi_squared.hpp>
#include <boost/math/distributions/fisher_f.hpp>
#include <boost/math/distributions/normal.hpp>
#include <boost/math/distributions/students_t.hpp>
#include <boost/math/special_functions/binomial.hpp>

namespace bakeoff::stats {

double normal_quantile(double p) { return boost::math::quantile(boost::math::normal(), p); }

double student_quantile(double degrees, double p) {
  return boost::math::quantile(boost::math::students_t(degrees), p);
}

double chi_squared_quantile(double degrees, double p) {
  return boost::math::quantile(boost::math::chi_squared(degrees), p);
}

double fisher_quantile(double degrees_above, double degrees_below, double p) {
  return boost::math::quantile(boost::math::fisher_f(degrees_above, degrees_below), p);
}

double student_cdf(double degrees, double t) { return boost::math::cdf(boost::math::students_t(degrees), t); }

double binomial_cdf(int64_t successes, int64_t trials, double p) {
  return boost::math::cdf(boost::math::binomial_distribution<>(static_cast<double>(trials), p),
                          static_cast<double>(successes));
}

double binomial_coefficient(unsigned of, unsigned chosen) {
  return boost::math::binomial_coefficient<double>(of, chosen);
}

}  // namespace bakeoff::stats
