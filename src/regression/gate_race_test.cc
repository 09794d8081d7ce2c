#include "regression/gate_race.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <random>

#include "base/clock.h"
#include "regression/outputs.h"

namespace bakeoff::regression {
namespace {

// Contenders whose ratios and noise are known; a heat takes no time.
class Played : public Pairing {
 public:
  struct Contender {
    std::string name = {};
    double ratio = 1, sd = 0.005;
  };
  explicit Played(std::vector<Contender> contenders) : contenders_(std::move(contenders)) {}
  std::vector<Row> rows() const override {
    std::vector<Row> all;
    for (const Contender& c : contenders_) all.push_back({.contender = c.name, .name = c.name});
    return all;
  }
  Result<std::vector<PairHeats>> heat(const std::vector<size_t>& open, int64_t rounds, double) override {
    if (++heats == fails_at) return Error{"head: it ended with ValueError"};
    EXPECT_GT(rounds, 0);
    std::vector<PairHeats> all;
    for (const size_t i : open) {
      ++ran[i];
      const double d = std::log(contenders_[i].ratio) + contenders_[i].sd * normal_(random_);
      all.push_back({{{.log_ms = {std::log(100.0), std::log(100.0) + d}}},
                     {{.d = d, .within = 1e-6, .rounds = rounds}}});
    }
    return all;
  }
  std::string per() const override { return "step"; }
  double round_s(const std::vector<size_t>& open) const override {
    return 0.3 * static_cast<double>(open.size());
  }
  int heats = 0, fails_at = -1;
  std::map<size_t, int> ran = {};

 private:
  std::vector<Contender> contenders_;
  std::mt19937_64 random_{7};
  std::normal_distribution<double> normal_;
};

Outcome raced(Played& played, double margin = 0.02) {
  Outcome outcome{.settings = {.margin = margin}};
  EXPECT_TRUE(race(played, outcome, kSilent, TimeBudget(outcome.settings.budget_s)));
  return outcome;
}

TEST(GateRace, EqualVersionsAreGreen) {
  Played played({{"torch"}});
  const Outcome outcome = raced(played);
  EXPECT_EQ(verdict(outcome), Verdict::kNone);
  EXPECT_EQ(exit_code(outcome), 0);
  EXPECT_LT(played.heats, 20);
}

TEST(GateRace, ARegressionIsNamedWithItsInterval) {
  Played played({{"torch"}, {"jax", 1.1}});
  const Outcome outcome = raced(played);
  EXPECT_EQ(exit_code(outcome), 1);
  EXPECT_EQ(outcome.rows[0].change, stats::Change::kNone);
  EXPECT_EQ(outcome.rows[1].change, stats::Change::kRegression);
  EXPECT_GT(outcome.rows[1].ratio.low, 1.02);
  EXPECT_NEAR(outcome.rows[1].ratio.value, 1.1, 0.02);
  EXPECT_DOUBLE_EQ(outcome.rows[1].alpha, 0.005) << "alpha is shared";
}

// What raced is one over the rate: twice as long is half the rate.
TEST(GateRace, AMetricThatShouldBeHighIsToldAsPrinted) {
  Played played({{"bench.py", 2.0}});
  Outcome outcome{.metric = Metric{"tokens/s", true}};
  ASSERT_TRUE(race(played, outcome, kSilent, TimeBudget(outcome.settings.budget_s)));
  EXPECT_EQ(exit_code(outcome), 1);
  const Row& row = outcome.rows[0];
  EXPECT_NEAR(row.ratio.value, 0.5, 0.02);
  EXPECT_LT(row.ratio.low, row.ratio.high);
  EXPECT_NEAR(row.base_ms, 0.01, 1e-6);
  const std::string text = to_text(outcome, 200);
  EXPECT_NE(text.find("'tokens/s' is 0.50"), std::string::npos) << text;
  EXPECT_NE(text.find("more than 2% worse"), std::string::npos) << text;
  EXPECT_EQ(text.find(" ms"), std::string::npos) << text;
}

TEST(GateRace, FiguresWithoutAnyNoiseAreDecided) {
  Played played({{"same.py", 1.0, 0.0}, {"larger.py", 1.1, 0.0}});
  const Outcome outcome = raced(played);
  EXPECT_EQ(outcome.rows[0].change, stats::Change::kNone);
  EXPECT_EQ(outcome.rows[1].change, stats::Change::kRegression);
}

TEST(GateRace, ContendersThatAreDecidedRunNoMore) {
  Played played({{"near", 1.012, 0.01}, {"far", 3.0, 0.01}});
  raced(played);
  EXPECT_GT(played.ran[0], played.ran[1]);
}

TEST(GateRace, NoiseForbidsGreen) {
  Played played({{"torch", 1.0, 0.3}});
  Outcome outcome{.settings = {.budget_s = 0.0001}};
  ASSERT_TRUE(race(played, outcome, kSilent, TimeBudget(outcome.settings.budget_s)));
  EXPECT_EQ(exit_code(outcome), 3);
  EXPECT_FALSE(what_decides(outcome.rows[0], outcome).empty());
}

TEST(GateRace, AFailureOfOneVersionIsAnError) {
  Played played({{"torch", 1.0, 0.3}});
  played.fails_at = 2;
  Outcome outcome;
  const Status done = race(played, outcome, kSilent, TimeBudget(outcome.settings.budget_s));
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().message, "head: it ended with ValueError");
}

}  // namespace
}  // namespace bakeoff::regression
