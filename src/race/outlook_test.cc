#include "race/outlook.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace bakeoff {
namespace {

using ::testing::HasSubstr;

// Heats of contenders as a race records them: 16 bursts of 0.3 s each and a start of 4 s, two at a time.
class Recorded {
 public:
  explicit Recorded(std::vector<double> ms, double restart = 0.01, double burst = 0.06)
      : ms_(std::move(ms)), restart_(restart), burst_(burst) {
    for (size_t i = 0; i < ms_.size(); ++i) ids.push_back(std::string(1, static_cast<char>('a' + i)));
  }

  void heat(const std::vector<size_t>& members) {
    ++number_;
    for (const size_t i : members) {
      const double ms = ms_[i] * std::exp(restart_ * normal_(random_));
      Trial trial = {.contender = ids[i],
                     .heat = number_,
                     .started = fmt::format("2026-11-22T13:{:02}:{:02}Z", clock_s_ / 60, clock_s_ % 60),
                     .start_ns = 4'000'000'000};
      for (int round = 0; round < 16; ++round) {
        const auto ns = static_cast<int64_t>(3e6 * ms * std::exp(burst_ * normal_(random_)));
        trial.bursts.push_back({.ns = ns, .steps = 3, .woken_ns = round + 1, .awake_ns = ns * 4 / 3});
      }
      trials.push_back(std::move(trial));
    }
    clock_s_ += kWall * static_cast<int>(members.size());
  }

  std::optional<Outlook> look() const { return outlook(recipe, trials, ids, 0.01); }

  static constexpr int kWall = 13;  // seconds that a member adds to a heat; 8.4 of them are starts and bursts
  recipe::Recipe recipe = [] {
    recipe::Recipe all;
    all.margin = 0.03;
    all.alpha = 0.01;
    return all;
  }();
  std::vector<std::string> ids;
  std::vector<Trial> trials;

 private:
  std::vector<double> ms_;
  double restart_, burst_;
  int number_ = 0, clock_s_ = 0;
  std::mt19937_64 random_{3};
  std::normal_distribution<double> normal_;
};

TEST(Outlook, NamesWhoMayStillBeTheFastestInTheirOrder) {
  Recorded race({100, 104, 102, 300});
  for (int i = 0; i < 5; ++i) race.heat({0, 1, 2, 3});
  const Outlook seen = race.look().value();
  EXPECT_EQ(seen.leader, "a");
  ASSERT_EQ(seen.rivals.size(), 2u) << "d is surely slower";
  const Rival &c = seen.rivals[0], &b = seen.rivals[1];
  EXPECT_EQ(c.contender, "c");
  EXPECT_EQ(b.contender, "b");
  EXPECT_EQ(b.heats, 5u);
  EXPECT_NEAR(b.ratio.value, 1.04, 0.03);
  EXPECT_LT(b.ratio.low, b.ratio.value);
  EXPECT_GT(b.ratio.high, b.ratio.value);
  EXPECT_GT(b.slower.value(), 0.8);
  EXPECT_EQ(c.slower, c.slower_than_previous) << "the leader is before it";
  EXPECT_NE(b.slower, b.slower_than_previous);
  EXPECT_FALSE(b.as_same);
  EXPECT_NEAR(b.deciding, b.ratio.value - 1, 1e-12);
}

TEST(Outlook, WithinTheMarginSaysWhatSameNeeds) {
  Recorded race({100, 100.3});
  for (int i = 0; i < 3; ++i) race.heat({0, 1});
  const Outlook seen = race.look().value();
  ASSERT_TRUE(seen.rivals[0].as_same);
  EXPECT_NEAR(std::log1p(seen.rivals[0].deciding) + std::abs(std::log(seen.rivals[0].ratio.value)),
              std::log1p(0.03), 1e-9);
}

TEST(Outlook, IsNotKnownBeforeTwoHeats) {
  Recorded race({100, 104, 103});
  EXPECT_FALSE(race.look()) << "nobody has run";
  race.heat({0, 1});
  const Outlook first = race.look().value();
  EXPECT_FALSE(first.rivals[0].slower);
  EXPECT_FALSE(first.rest);
  EXPECT_THAT(rest_in_words(first), HasSubstr("How long it takes to decide is known after two heats."));
  race.heat({0, 1});
  EXPECT_TRUE(race.look()->rivals[0].slower);
  EXPECT_TRUE(race.look()->rest);
  EXPECT_EQ(race.look()->waiting, std::vector<std::string>{"c"});
  EXPECT_THAT(rest_in_words(*race.look()), HasSubstr(" decide it, once c has run."));
  race.heat({0, 1, 2});
  const Outlook all = race.look().value();
  EXPECT_TRUE(all.waiting.empty());
  EXPECT_TRUE(all.rest) << "one heat of c, with the noise that is usual";
  for (const Rival& rival : all.rivals) EXPECT_EQ(rival.slower.has_value(), rival.contender != "c");
}

TEST(Outlook, ThereIsNoneWhereAllIsDecidedOrNobodyIsLeft) {
  Recorded race({100, 150, 200});
  for (int i = 0; i < 8; ++i) race.heat({0, 1, 2});
  EXPECT_FALSE(race.look());
  Recorded failed({100, 101});
  for (int i = 0; i < 3; ++i) failed.heat({0, 1});
  failed.trials.back().failure = Failure{Stage::kRun, "killed", {}};
  EXPECT_FALSE(failed.look());
}

TEST(Outlook, CountsWhatHeatsTakeByTheClock) {
  Recorded race({100, 105});
  for (int i = 0; i < 4; ++i) race.heat({0, 1});
  const stats::Rest by_clock = race.look()->rest.value();
  const double heat_s = by_clock.seconds / by_clock.heats;
  EXPECT_GT(heat_s, 0.6 * 2 * Recorded::kWall) << "the number of rounds may be planned anew";
  EXPECT_LT(heat_s, 2 * 2 * Recorded::kWall);
  for (Trial& trial : race.trials) trial.started.clear();
  EXPECT_LT(race.look()->rest->seconds, 0.9 * by_clock.seconds) << "starts and bursts, and a little";
}

TEST(Outlook, ATooNarrowMarginIsAnsweredWithAWiderOne) {
  Recorded race({100, 100}, 0.04);
  race.recipe.margin = 0.001;
  for (int i = 0; i < 30; ++i) race.heat({0, 1});
  const Outlook seen = race.look().value();
  ASSERT_TRUE(seen.rest);
  EXPECT_GT(seen.rest->seconds, kLongRest);
  ASSERT_TRUE(seen.wider_margin);
  EXPECT_GT(*seen.wider_margin, 0.01);
  EXPECT_LT(seen.rest_of_wider.seconds, 1801);
  EXPECT_THAT(rest_in_words(seen), HasSubstr("would decide it: the gaps are too small for the noise"));
  EXPECT_THAT(rest_in_words(seen), HasSubstr("or state a larger margin: "));
}

TEST(InWords, RestsAndConfidences) {
  EXPECT_EQ(in_words({.heats = 1, .seconds = 23}), "about 30 more seconds (1 heat)");
  EXPECT_EQ(in_words({.heats = 5, .seconds = 371}), "about 6 more minutes (5 heats)");
  EXPECT_EQ(in_words({.heats = 900, .seconds = 5.2 * 3600}), "about 5 hours (900 heats)");
  EXPECT_EQ(in_words({.heats = 5000, .seconds = 9 * 3600, .more = true}), "more than 9 hours (5,000 heats)");
  EXPECT_EQ(rest_in_words({.rest = stats::Rest{.heats = 5, .seconds = 371}}),
            "About 6 more minutes (5 heats) decide it.");
  EXPECT_EQ(sure_in_words(std::nullopt), "not yet");
  EXPECT_EQ(sure_in_words(0.939), "93%");
  EXPECT_EQ(sure_in_words(0.061), "6%");
  EXPECT_EQ(sure_in_words(0.9959), "99.5%");
  EXPECT_EQ(sure_in_words(0.99999), ">99.9%");
  EXPECT_EQ(sure_in_words(0.00001), "<0.1%");
}

}  // namespace
}  // namespace bakeoff
