#include "stats/e_process.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <boost/math/distributions/non_central_t.hpp>
#include <boost/math/distributions/students_t.hpp>
#include <boost/math/quadrature/gauss_kronrod.hpp>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

namespace bakeoff::stats {
namespace {

EProcess evidence_of(const std::vector<double>& values) {
  EProcess evidence;
  for (const double d : values) evidence.add(d);
  return evidence;
}

std::vector<double> normal_values(size_t n, double mean, double sd, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<double> normal(mean, sd);
  std::vector<double> values(n);
  for (double& value : values) value = normal(random);
  return values;
}

// E from first principles: the density of t under delta ~ N(0, g), integrated over delta, over that under
// delta = 0. Shares no formula with the library's closed form.
double integrated_e(size_t n, double t) {
  const double nu = static_cast<double>(n) - 1;
  const double root_n = std::sqrt(static_cast<double>(n));
  double sum = 0;
  for (const auto& [g, weight] : kMixture) {
    const double sd = std::sqrt(g);
    const auto integrand = [&, g = g](double delta) {
      const double prior = std::exp(-delta * delta / (2 * g)) / (sd * std::sqrt(2 * M_PI));
      return prior * boost::math::pdf(boost::math::non_central_t(nu, root_n * delta), t);
    };
    double integral = 0;  // in pieces: the integrand is a narrow peak for large n
    for (double from = -6 * sd; from < 6 * sd - 1e-9; from += sd) {
      integral +=
          boost::math::quadrature::gauss_kronrod<double, 21>::integrate(integrand, from, from + sd, 4, 1e-7);
    }
    sum += weight * integral;
  }
  return sum / boost::math::pdf(boost::math::students_t(nu), t);
}

TEST(EProcess, EqualsTheIntegratedBayesFactor) {
  for (const size_t n : {2, 3, 5, 20}) {
    for (const double t : {0.0, -1.3, 2.5, 4.0}) {
      SCOPED_TRACE(::testing::Message() << "n " << n << ", t " << t);
      const double e = std::exp(log_mixture(n, t * t / (static_cast<double>(n) - 1)));
      EXPECT_NEAR(e / integrated_e(n, t), 1, 1e-5);
    }
  }
}

TEST(EProcess, IsTheFormulaOfTheTStatistic) {
  const std::vector<double> values = {0.011, 0.024, -0.003, 0.017, 0.009};
  const double n = 5;
  const double mean = 0.0116;
  double squares = 0;
  for (const double d : values) squares += (d - mean) * (d - mean);
  const double t = mean / std::sqrt(squares / 4 / 5);
  double e = 0;
  for (const auto& [g, weight] : kMixture) {
    e += weight / std::sqrt(1 + n * g) * std::pow((1 + t * t / 4) / (1 + t * t / ((1 + n * g) * 4)), n / 2);
  }
  const EProcess evidence = evidence_of(values);
  EXPECT_NEAR(evidence.log_e(0), std::log(e), 1e-12);
  EXPECT_NEAR(evidence.mean(), mean, 1e-15);
  EXPECT_NEAR(evidence.sd(), std::sqrt(squares / 4), 1e-15);
}

TEST(EProcess, IsBoundedAsTheHeaderSays) {
  const struct {
    size_t n;
    double narrow, mixture;
  } kTable[] = {{2, 2.0, 3.6}, {3, 6.3, 35}, {4, 28, 602}, {5, 161, 13800}, {6, 1090, 376000}};
  for (const auto& row : kTable) {
    SCOPED_TRACE(row.n);
    const double count = static_cast<double>(row.n);
    double bound = 0;
    double narrow = 0;
    double weight_sum = 0;
    for (const auto& [g, weight] : kMixture) {
      const double supremum = std::pow(1 + count * g, (count - 1) / 2);
      bound += weight * supremum;
      if (g <= 4) narrow += supremum / 3;
      weight_sum += weight;
    }
    EXPECT_DOUBLE_EQ(weight_sum, 1);
    EXPECT_NEAR(log_mixture(row.n, kInfinity), std::log(bound), 1e-12);
    EXPECT_LT(log_mixture(row.n, 1e6), std::log(bound));
    EXPECT_NEAR(narrow / row.narrow, 1, 0.02);
    EXPECT_NEAR(bound / row.mixture, 1, 0.02);
  }
}

TEST(EProcess, AnObviousGapEndsAfterFourPairs) {
  EProcess evidence;
  int pairs = 0;
  for (const double d : {0.300, 0.310, 0.305, 0.295, 0.300}) {
    evidence.add(d);
    ++pairs;
    if (evidence.log_e(0) >= std::log(1 / 0.01)) break;
  }
  EXPECT_EQ(pairs, 4);
  EXPECT_TRUE(std::isinf(critical_ratio(3, 0.01)));
  EXPECT_FALSE(std::isinf(critical_ratio(3, 0.05)));
}

TEST(EProcess, OnePairIsNoEvidence) {
  EProcess evidence;
  EXPECT_EQ(evidence.log_e(0), 0);
  EXPECT_EQ(evidence.interval(0.01), Interval());
  evidence.add(3.5);
  EXPECT_EQ(evidence.log_e(0), 0);
  EXPECT_EQ(evidence.log_e(3.5), 0);
  EXPECT_EQ(evidence.interval(0.01), Interval());
  EXPECT_TRUE(std::isnan(evidence.sd()));
}

TEST(EProcess, IntervalEndsWhereTheEvidenceReachesOneOverAlpha) {
  for (const size_t n : {4, 5, 9, 40, 1000}) {
    for (const double alpha : {0.05, 0.01, 0.001}) {
      const EProcess evidence = evidence_of(normal_values(n, 0.02, 0.014, n));
      const Interval interval = evidence.interval(alpha);
      if (!interval.bounded()) {
        EXPECT_LE(log_mixture(n, kInfinity), -std::log(alpha));
        continue;
      }
      SCOPED_TRACE(::testing::Message() << "n " << n << ", alpha " << alpha);
      EXPECT_NEAR(evidence.log_e(interval.low), -std::log(alpha), 1e-8);
      EXPECT_NEAR(evidence.log_e(interval.high), -std::log(alpha), 1e-8);
      EXPECT_LT(evidence.log_e(interval.low + interval.width() * 1e-4), -std::log(alpha));
      EXPECT_GT(evidence.log_e(interval.low - interval.width() * 1e-4), -std::log(alpha));
    }
  }
}

TEST(EProcess, IntervalsOfSmallerAlphaAreWider) {
  const EProcess evidence = evidence_of(normal_values(12, 0, 1, 1));
  double width = 0;
  for (const double alpha : {0.5, 0.1, 0.01, 0.001, 1e-6}) {
    EXPECT_GT(evidence.interval(alpha).width(), width);
    width = evidence.interval(alpha).width();
  }
}

TEST(EProcess, KnowsNoScaleNoSignNoOrigin) {
  EXPECT_TRUE(rc::check([](uint64_t seed) {
    const size_t n = *rc::gen::inRange<size_t>(2, 30);
    const double factor = std::exp(*rc::gen::inRange(-100, 100) / 10.0);
    const double shift = *rc::gen::inRange(-1000, 1000) / 100.0;
    const std::vector<double> values = normal_values(n, 0.3, 1, seed);
    EProcess changed;
    for (const double d : values) changed.add(-factor * (d + shift));
    const EProcess plain = evidence_of(values);
    RC_ASSERT(std::abs(changed.log_e(-factor * shift) - plain.log_e(0)) < 1e-6);
    const Interval a = plain.interval(0.05);
    const Interval b = changed.interval(0.05);
    RC_ASSERT(a.bounded() == b.bounded());
    if (!a.bounded()) return;
    RC_ASSERT(std::abs(-b.high / factor - shift - a.low) < 1e-6 * (1 + a.width()));
    RC_ASSERT(std::abs(-b.low / factor - shift - a.high) < 1e-6 * (1 + a.width()));
  }));
}

TEST(EProcess, EqualValuesAreDecidedUnlessTheClockIsCoarse) {
  EProcess evidence;
  for (int i = 0; i < 4; ++i) evidence.add(0.01);
  EXPECT_NEAR(evidence.log_e(0), log_mixture(4, kInfinity), 1e-9);
  EXPECT_EQ(evidence.interval(0.01), (Interval{0.01, 0.01}));
  EXPECT_LT(evidence.log_e(0, 0.01), std::log(4));
  EXPECT_TRUE(evidence.interval(0.01, 0.01).contains(0));
  const EProcess zeros = evidence_of({0, 0, 0, 0});
  EXPECT_LT(zeros.log_e(0), 0);
  EXPECT_EQ(zeros.interval(0.01), (Interval{0, 0}));
}

TEST(EProcess, ResolutionOnlyEverWeakens) {
  const EProcess evidence = evidence_of(normal_values(8, 0.02, 0.01, 3));
  EXPECT_EQ(evidence.log_e(0, 0.001), evidence.log_e(0));
  EXPECT_LT(evidence.log_e(0, 0.05), evidence.log_e(0));
  EXPECT_GT(evidence.interval(0.01, 0.05).width(), evidence.interval(0.01).width());
}

TEST(EProcess, StreamsAsPreciselyAsTwoPasses) {
  EProcess evidence;
  for (int i = 0; i < 1000; ++i) evidence.add(1e6 + (i % 2 == 0 ? 1e-3 : -1e-3));
  EXPECT_NEAR(evidence.sd(), 1e-3 * std::sqrt(1000.0 / 999), 1e-8);
}

TEST(CriticalRatio, HoldsFromTwoPairsToMillions) {
  for (const size_t n : {2, 3, 7, 100, 10000, 3000000}) {
    for (const double alpha : {0.9, 0.5, 0.01, 1e-9, 1e-200}) {
      const double ratio = critical_ratio(n, alpha);
      SCOPED_TRACE(::testing::Message() << "n " << n << ", alpha " << alpha << ", ratio " << ratio);
      if (std::isinf(ratio)) {
        EXPECT_LE(log_mixture(n, 1e200), -std::log(alpha) * (1 + 1e-9));
      } else {
        EXPECT_NEAR(log_mixture(n, ratio) / -std::log(alpha), 1, 1e-7);
      }
    }
  }
}

}  // namespace
}  // namespace bakeoff::stats
