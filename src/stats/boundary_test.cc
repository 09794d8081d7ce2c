#include "stats/boundary.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <boost/math/distributions/students_t.hpp>
#include <cmath>
#include <random>
#include <vector>

#include "stats/e_process.h"

namespace bakeoff::stats {
namespace {

TEST(Boundary, SpendsNothingBeforeThreeHeatsAndTheFirstShareThere) {
  for (const size_t n : {0u, 1u, 2u}) EXPECT_TRUE(std::isinf(boundary_ratio(n, 0.01)));
  // At the first heat with a critical value the error is that of one t test.
  for (const double alpha : {0.05, 0.01}) {
    const double t = std::sqrt(2 * boundary_ratio(3, alpha));
    const double error = 2 * boost::math::cdf(boost::math::complement(boost::math::students_t(2), t));
    EXPECT_NEAR(error / (0.02 * alpha), 1, 0.1) << alpha;
  }
}

TEST(Boundary, IsNarrowerThanTheEProcessWhereRacesEnd) {
  for (const double alpha : {0.05, 0.01, 0.001, 1e-5}) {
    for (size_t n = 5; n <= 13; ++n) EXPECT_LT(boundary_ratio(n, alpha), 0.85 * critical_ratio(n, alpha));
    for (size_t n = 14; n <= 60; ++n) EXPECT_LT(boundary_ratio(n, alpha), 1.2 * critical_ratio(n, alpha));
    EXPECT_LT(boundary_ratio(200, alpha), 2 * critical_ratio(200, alpha)) << "it never ends";
  }
  EXPECT_NEAR(boundary_half_width(5, 0.01), 3.83, 0.1);
  EXPECT_NEAR(boundary_half_width(8, 0.01), 1.76, 0.05);
  EXPECT_NEAR(boundary_half_width(12, 0.01), 1.13, 0.03);
}

TEST(Boundary, WidensAsAlphaShrinks) {
  for (size_t n = 3; n <= 70; ++n) {
    double ratio = 0;
    for (double alpha = 0.2; alpha > 1e-7; alpha *= 0.93) {
      const double next = boundary_ratio(n, alpha);
      EXPECT_GE(next, 0.98 * ratio) << n << " " << alpha;  // neighbouring paths are a little apart
      ratio = next;
    }
  }
}

// Under normal d: by direct simulation, not by the importance sampling that it comes from.
TEST(Boundary, IsCrossedAsOftenAsItSays) {
  for (const double alpha : {0.1, 0.03}) {
    std::mt19937_64 random(7);
    std::normal_distribution<double> normal;
    constexpr int kRaces = 20000;
    int early = 0, crossed = 0;
    for (int race = 0; race < kRaces; ++race) {
      EProcess d;
      for (size_t n = 1; n <= 60; ++n) {
        d.add(normal(random));
        if (d.interval_at(boundary_ratio(n, alpha)).contains(0)) continue;
        ++crossed;
        early += n <= 12;
        break;
      }
    }
    const auto share = [&](int hits) { return hits / (alpha * kRaces); };
    EXPECT_NEAR(share(early), 0.79, 5 * std::sqrt(0.79 / (alpha * kRaces)));
    EXPECT_NEAR(share(crossed), 0.93, 5 * std::sqrt(0.93 / (alpha * kRaces)));
  }
}

}  // namespace
}  // namespace bakeoff::stats
