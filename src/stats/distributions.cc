#include "stats/distributions.h"

#include <boost/math/distributions/chi_squared.hpp>
#include <boost/math/distributions/normal.hpp>
#include <boost/math/distributions/students_t.hpp>

namespace bakeoff::stats {

double normal_quantile(double p) { return boost::math::quantile(boost::math::normal(), p); }

double student_quantile(double degrees, double p) {
  return boost::math::quantile(boost::math::students_t(degrees), p);
}

double chi_squared_quantile(double degrees, double p) {
  return boost::math::quantile(boost::math::chi_squared(degrees), p);
}

double student_cdf(double degrees, double t) { return boost::math::cdf(boost::math::students_t(degrees), t); }

}  // namespace bakeoff::stats
