#include "stats/bisection.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace bakeoff::stats {
namespace {

const double kShift = std::log1p(0.05);

TEST(Bisection, OneVersionIsFoundWithoutAProbe) {
  Bisection search(1, kShift);
  EXPECT_EQ(search.next(), std::nullopt);
  EXPECT_EQ(search.found(), (Bisection::Range{1, 1, 1}));
}

TEST(Bisection, BeginsInTheMiddle) { EXPECT_EQ(Bisection(64, kShift).next(), 32U); }

TEST(Bisection, ExactProbesHalve) {
  for (size_t culprit = 1; culprit <= 64; ++culprit) {
    Bisection bisection(64, kShift);
    int probes = 0;
    while (const auto at = bisection.next()) {
      bisection.observe(*at, {.mean = *at >= culprit ? kShift : 0, .variance = 1e-6});
      ASSERT_LT(++probes, 16);
    }
    EXPECT_EQ(bisection.found().first, culprit);
    EXPECT_EQ(bisection.found().last, culprit);
  }
}

TEST(Bisection, OneWildProbeIsOvercome) {
  Bisection bisection(64, kShift);
  int probes = 0;
  while (const auto at = bisection.next()) {
    const bool wrong = ++probes == 1;
    bisection.observe(*at, {.mean = (*at >= 40) != wrong ? kShift : 0, .variance = 1e-6});
    ASSERT_LT(probes, 40);
  }
  EXPECT_EQ(bisection.found().first, 40U);
}

TEST(Bisection, VersionsThatDoNotBuildLeaveARange) {
  Bisection bisection(10, kShift);
  for (const size_t broken : {4, 5, 6}) bisection.skip(broken);
  while (const auto at = bisection.next()) {
    EXPECT_FALSE(bisection.skipped(*at));
    bisection.observe(*at, {.mean = *at >= 5 ? kShift : 0, .variance = 1e-6});
  }
  EXPECT_EQ(bisection.found().first, 4U);
  EXPECT_EQ(bisection.found().last, 7U);
}

TEST(Bisection, NothingIsLeftWhereAllIsBroken) {
  Bisection bisection(3, kShift);
  bisection.skip(1);
  bisection.skip(2);
  EXPECT_EQ(bisection.next(), std::nullopt);
  EXPECT_EQ(bisection.found(), (Bisection::Range{1, 3, 1}));
}

TEST(Bisection, AMeanBetweenTheTwoSaysLittle) {
  EXPECT_FALSE(says_enough({.mean = kShift / 2, .variance = 1e-8}, kShift));
  EXPECT_FALSE(says_enough({.mean = 0, .variance = 1e-2}, kShift));
  EXPECT_TRUE(says_enough({.mean = 0, .variance = 1e-5}, kShift));
}

TEST(SeenIn, VarianceFallsWithHeats) {
  const std::vector<PastHeat> few = {{0.05, 1e-5, 8}, {0.04, 1e-5, 8}};
  std::vector<PastHeat> many = few;
  for (int i = 0; i < 6; ++i) many.push_back({0.045, 1e-5, 8});
  EXPECT_NEAR(seen_in(few).mean, 0.045, 1e-12);
  EXPECT_LT(seen_in(many).variance, seen_in(few).variance / 2);
  EXPECT_GT(seen_in(std::vector<PastHeat>{{0.05, 1e-5, 8}}).variance, 0);
}

TEST(Search, AnErrorEndsItAndTheCountBoundsIt) {
  Bisection bisection(64, kShift);
  EXPECT_FALSE(search(
      bisection, [](size_t) { return Result<Probe>(Error{"no time"}); }, 9));
  int probes = 0;
  const auto nothing = [&](size_t) {
    ++probes;
    return Result<Probe>(Probe{ProbeSeen{kShift / 2, 1e-3}});
  };
  EXPECT_TRUE(search(bisection, nothing, 9));
  EXPECT_EQ(probes, 9);
  EXPECT_LT(bisection.found().probability, 0.5);
}

}  // namespace
}  // namespace bakeoff::stats
