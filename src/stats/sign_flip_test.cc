#include "stats/sign_flip.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "stats/e_process.h"
#include "stats/pair_table.h"
#include "stats/ranking.h"
#include "stats/verdict.h"

namespace bakeoff::stats {
namespace {

constexpr double kAlpha = 0.01;
constexpr double kMargin = 0.02;

TEST(SignFlip, IsTheProductOfItsWagers) {
  SignFlip evidence;
  const std::vector<double> d = {0.02, -0.01, 0.03, 0};
  for (const double value : d) evidence.add(value);
  double above = 0;
  double below = 0;
  for (const Bet& bet : kBets) {
    const double scales[] = {0.02, 0.02, 0.015};  // mean of the magnitudes before
    double up = 1;
    double down = 1;
    for (size_t i = 0; i < 3; ++i) {
      up *= 1 + std::tanh(bet.scale * d[i] / scales[i]);
      down *= 1 - std::tanh(bet.scale * d[i] / scales[i]);
    }
    above += bet.weight * up;
    below += bet.weight * down;
  }
  EXPECT_NEAR(evidence.log_e_above(), std::log(above), 1e-12);
  EXPECT_NEAR(evidence.log_e_below(), std::log(below), 1e-9);
}

TEST(SignFlip, HasExpectationOneOverAllSigns) {
  const std::vector<double> magnitudes = {0.3, 0.001, 2, 0.02, 0.02, 1e-6, 5, 0.7, 0.01, 40};
  const int all = 1 << magnitudes.size();
  double sum = 0;
  for (int signs = 0; signs < all; ++signs) {
    SignFlip evidence(0.25);
    for (size_t i = 0; i < magnitudes.size(); ++i) {
      evidence.add(0.25 + (signs >> i & 1 ? magnitudes[i] : -magnitudes[i]));
    }
    sum += std::exp(evidence.log_e_above());
  }
  EXPECT_NEAR(sum / all, 1, 1e-9);
}

TEST(SignFlip, NinePairsAreTheFewest) {
  SignFlip evidence;
  int pairs = 0;
  while (evidence.log_e_above() < std::log(2 / kAlpha)) {
    evidence.add(0.5);
    ++pairs;
  }
  EXPECT_EQ(pairs, 9);
  EXPECT_LT(evidence.log_e_below(), -3);
}

// Whoever starts first gains 2%: d is one of two values.
struct Rates {
  int alone = 0;
  int both = 0;
};

template <typename Draw>
Rates false_verdicts(double truth, Draw draw) {
  Rates rates;
  for (uint64_t seed = 0; seed < 2000; ++seed) {
    std::mt19937_64 random(seed);
    EProcess evidence;
    SymmetricBackup backup(std::log1p(kMargin));
    bool alone = false;
    bool both = false;
    for (int n = 0; n < 40; ++n) {
      const double d = truth + draw(random, n);
      evidence.add(d);
      backup.add(d);
      const Interval t = evidence.interval(kAlpha);
      alone = alone || !t.contains(truth);
      both = both || !backup.widen(t, kAlpha).contains(truth);
    }
    rates.alone += alone;
    rates.both += both;
  }
  return rates;
}

TEST(SymmetricBackup, HoldsWhereTheTEProcessDoesNot) {
  const Rates order = false_verdicts(0, [](auto& random, int) { return random() % 2 ? 0.02 : -0.02; });
  EXPECT_GT(order.alone, 200);  // 1 in 8 by the first four pairs alone
  EXPECT_LE(order.both, 35);    // 1%, and what chance adds once in 1,000 times
  const Rates at_margin =
      false_verdicts(std::log1p(kMargin), [](auto& random, int) { return random() % 2 ? 0.015 : -0.015; });
  EXPECT_GT(at_margin.alone, 200);
  EXPECT_LE(at_margin.both, 35);
}

TEST(SymmetricBackup, HoldsForUnequalNoise) {
  const Rates growing = false_verdicts(0, [](auto& random, int n) {
    return std::normal_distribution<double>(0, 0.002 * std::pow(1.3, n))(random);
  });
  EXPECT_LE(growing.both, 35);
  const Rates heavy =
      false_verdicts(0, [](auto& random, int) { return std::cauchy_distribution<double>(0, 0.01)(random); });
  EXPECT_LE(heavy.both, 35);
}

TEST(SymmetricBackup, WidensToThePointInDoubtAndNoFarther) {
  const double epsilon = std::log1p(kMargin);
  SymmetricBackup none(epsilon);  // nothing seen: every claim is in doubt
  EXPECT_EQ(judge(none.widen({0.05, 0.06}, kAlpha), kMargin), Verdict::kUndecided);
  EXPECT_EQ(judge(none.widen({-0.06, -0.05}, kAlpha), kMargin), Verdict::kUndecided);
  EXPECT_EQ(judge(none.widen({-0.001, 0.001}, kAlpha), kMargin), Verdict::kUndecided);
  EXPECT_LT(none.widen({0.05, 0.06}, kAlpha).low, -epsilon);
  EXPECT_EQ(none.widen({0.05, 0.06}, kAlpha).high, 0.06);
  EXPECT_EQ(none.widen({}, kAlpha), Interval{});

  SymmetricBackup sure(epsilon);
  for (int i = 0; i < 30; ++i) sure.add(0.03 + 1e-3 * std::sin(i));
  EXPECT_EQ(sure.widen({0.029, 0.031}, kAlpha), (Interval{0.029, 0.031}));
  EXPECT_EQ(judge(sure.widen({0.029, 0.031}, kAlpha), kMargin), Verdict::kMateriallySlower);
  SymmetricBackup between(epsilon);  // surely above 0, about the margin
  for (int i = 0; i < 30; ++i) between.add(epsilon + 1e-3 * std::sin(3.0 * i));
  EXPECT_EQ(judge(between.widen({0.021, 0.022}, kAlpha), kMargin), Verdict::kSlower);
}

TEST(PairTable, AsksItsBackup) {
  PairTable plain(2);
  PairTable careful(2, std::log1p(kMargin));
  for (int i = 0; i < 6; ++i) {
    const double wobble = 1e-3 * std::sin(i);
    ASSERT_TRUE(plain.add({{0.1 + wobble, 0.0}}));
    ASSERT_TRUE(careful.add({{0.1 + wobble, 0.0}}));
  }
  EXPECT_EQ(race_state(plain, {}).winner, 1u);
  EXPECT_EQ(race_state(careful, {}).winner, std::nullopt);
  for (int i = 0; i < 6; ++i) ASSERT_TRUE(careful.add({{0.1 + 1e-3 * std::sin(i), 0.0}}));
  const Race race = race_state(careful, {});
  EXPECT_EQ(race.winner, 1u);
  EXPECT_EQ(race.standings[0].verdict, Verdict::kMateriallySlower);
}

}  // namespace
}  // namespace bakeoff::stats
