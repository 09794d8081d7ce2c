#include "evidence/promise.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "evidence/evidence.h"

namespace bakeoff {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const HostRound kQuiet{.wall_ns = 1, .seen = {{"others", 0.01}}};
const HostRound kBusy{.wall_ns = 1, .seen = {{"others", 0.4}}, .busy = "other processes used 40%"};
const HostRound kUnjudged{.wall_ns = 1, .absent = {{"others", "no such file"}}};

recipe::Recipe promising(double ceiling, bool stated = true) {
  recipe::Recipe recipe;
  recipe.race.noise_ceiling = ceiling;
  if (stated) recipe.race.stated.insert("noise_ceiling");
  return recipe;
}

// Four bursts of ten steps; `factors`: of each burst.
Trial trial(const std::string& id, int heat, double ms, const std::vector<double>& factors = {1, 1, 1, 1},
            const HostRound& round = kQuiet) {
  Trial t{.contender = id, .heat = heat};
  for (const double factor : factors) {
    t.bursts.push_back({static_cast<int64_t>(std::llround(ms * factor * 1e7)), 10});
    t.rounds.push_back(round);
  }
  return t;
}

TEST(QuietHeats, AreThoseOfWhichEveryRoundThatCountsWasJudgedAndUndisturbed) {
  std::vector<Trial> trials = {trial("a", 1, 4),
                               trial("a", 2, 4, {1, 1}, kBusy),
                               trial("a", 3, 4, {1, 1}, kUnjudged),
                               trial("a", 4, 4),
                               trial("a", 5, 4),
                               {.contender = "a", .heat = 6}};
  trials[3].rounds[1] = kBusy;
  trials[4].rounds[1] = kBusy;
  trials[4].rounds[1].rerun = true;
  EXPECT_THAT(quiet_heats(trials), ElementsAre(1, 5)) << "a disturbed round that was run again is none";
}

TEST(Promise, DecidesNothingBeforeTwoQuietHeatsAndNothingInOthers) {
  const recipe::Recipe recipe = promising(0.05);
  const auto decided = [&](const std::vector<Trial>& trials) {
    const auto options = racing_options(recipe, trials, {"a", "b"});
    return stats::race_state(tabulate(trials, {"a", "b"}).value(), options.ranking).eliminated.size() == 1;
  };
  std::vector<Trial> trials = {trial("a", 1, 4), trial("b", 1, 12)};
  EXPECT_FALSE(decided(trials)) << "one process that is out of order looks the same";
  for (const HostRound& round : {kBusy, kUnjudged}) {
    std::vector<Trial> more = trials;
    for (const char* id : {"a", "b"}) more.push_back(trial(id, 2, *id == 'a' ? 4 : 12, {1, 1}, round));
    EXPECT_FALSE(decided(more));
  }
  trials.push_back(trial("a", 2, 4));
  trials.push_back(trial("b", 2, 12.1));
  EXPECT_TRUE(decided(trials));
}

TEST(Promise, IsWithdrawnByHeatsThatDifferByMoreThanItAllows) {
  const recipe::Recipe recipe = promising(0.05, false);
  std::vector<Trial> trials = {trial("a", 1, 4), trial("b", 1, 12), trial("a", 2, 4), trial("b", 2, 4.1)};
  const Promise found = promise_of(recipe, trials, {"a", "b"});
  EXPECT_FALSE(found.by_recipe);
  EXPECT_EQ(found.ceiling(), 0);
  EXPECT_THAT(found.withdrawn, HasSubstr("2 heats of"));
  EXPECT_EQ(racing_options(recipe, trials, {"a", "b"}).ranking.ceiling, 0);
  for (Trial& t : trials) t.rounds.assign(4, kBusy);
  EXPECT_THAT(promise_of(recipe, trials, {"a", "b"}).withdrawn, IsEmpty())
      << "it does not speak of disturbed heats, so they cannot contradict it";
}

TEST(Promise, IsNotAboutBurstsThatScatter) {
  const recipe::Recipe recipe = promising(0.05);
  const std::vector<double> factors = {1, 2.5, 1.1, 2.4};
  const auto width = [&](const std::vector<Trial>& trials) {
    const auto options = racing_options(recipe, trials, {"a", "b"});
    return stats::race_state(tabulate(trials, {"a", "b"}).value(), options.ranking)
        .standings[1]
        .interval.width();
  };
  std::vector<Trial> quiet, scattered;
  for (const int heat : {1, 2}) {
    quiet.push_back(trial("a", heat, 4));
    quiet.push_back(trial("b", heat, 4));
    scattered.push_back(trial("a", heat, 4));
    scattered.push_back(trial("b", heat, heat == 1 ? 4 : 3, factors));
  }
  const Promise found = promise_of(recipe, scattered, {"a", "b"});
  EXPECT_TRUE(found.by_recipe);
  EXPECT_THAT(found.withdrawn, IsEmpty()) << "heats that differ by 29% are explained by their bursts";
  EXPECT_LT(width(quiet), 0.5 * width(scattered)) << "and intervals are as wide as these make them";
}

// 400 races of three contenders whose noise is what was promised, looked at after every heat.
TEST(Promise, ThatHoldsIsSeldomWithdrawnAtAnyLook) {
  const recipe::Recipe recipe = promising(0.05);
  std::mt19937_64 random(7);
  std::normal_distribution<double> noise;
  int withdrawn = 0;
  constexpr int kRaces = 400;
  for (int race = 0; race < kRaces; ++race) {
    std::vector<Trial> trials;
    bool gone = false;
    for (int heat = 1; heat <= 8; ++heat) {
      for (const char* id : {"a", "b", "c"}) {
        // sd(d) = 5%: processes 0.03 and bursts 0.037 each, in both arms.
        const double process = std::exp(0.03 * noise(random));
        std::vector<double> factors;
        for (int burst = 0; burst < 4; ++burst) factors.push_back(std::exp(0.037 * noise(random)));
        trials.push_back(trial(id, heat, 4 * process, factors));
      }
      gone |= !promise_of(recipe, trials, {"a", "b", "c"}).withdrawn.empty();
    }
    withdrawn += gone;
  }
  EXPECT_LE(withdrawn, 0.2 * kRaces + 3 * std::sqrt(0.2 * 0.8 * kRaces));
}

TEST(Promise, OfAThirdOfTheNoiseIsWithdrawnWithinAFewHeats) {
  const recipe::Recipe recipe = promising(0.05);
  std::mt19937_64 random(7);
  std::normal_distribution<double> noise;
  int withdrawn = 0;
  for (int race = 0; race < 200; ++race) {
    std::vector<Trial> trials;
    for (int heat = 1; heat <= 8; ++heat) {
      for (const char* id : {"a", "b"})
        trials.push_back(trial(id, heat, 4 * std::exp(0.106 * noise(random))));
    }
    withdrawn += !promise_of(recipe, trials, {"a", "b"}).withdrawn.empty();
  }
  EXPECT_GE(withdrawn, 180);
}

}  // namespace
}  // namespace bakeoff
