#include "stats/ranking.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>

#include "stats/boundary.h"
#include "stats/noise_testing.h"

namespace bakeoff::stats {
namespace {

using testing::Machine;
using testing::NoiseModel;

NoiseModel quiet() { return {.process = 0.01, .machine = 0.03, .machine_phi = 0.9, .step = 0.01}; }

PairTable race_of(const std::vector<double>& effects, int heats, uint64_t seed, NoiseModel noise = quiet()) {
  Machine machine(std::move(noise), effects, seed);
  PairTable table(effects.size());
  for (int i = 0; i < heats; ++i) EXPECT_TRUE(table.add(machine.heat()));
  return table;
}

TEST(Race, SeparatesWhatIsFarApart) {
  const Race race = race_state(race_of({0.2, 0, 0.4, 0.012}, 12, 1), {});
  EXPECT_EQ(race.leader, 1);
  EXPECT_EQ(race.eliminated, (std::vector<size_t>{0, 2}));
  EXPECT_EQ(race.standings[0].verdict, Verdict::kMateriallySlower);
  EXPECT_TRUE(race.standings[2].interval.contains(0.4));
  EXPECT_NEAR(race.standings[2].effect.value(), 0.4, 0.03);
  EXPECT_EQ(race.standings[1].verdict, Verdict::kSame);
  EXPECT_EQ(race.standings[1].interval, (Interval{0, 0}));
  EXPECT_EQ(race.still_undecided, (std::vector<size_t>{3}));
  EXPECT_EQ(race.winner, std::nullopt);
}

TEST(Race, EndsInAWinner) {
  const Race race = race_state(race_of({0.2, 0, 0.4}, 12, 1), {});
  EXPECT_EQ(race.winner, 1);
  EXPECT_TRUE(race.still_undecided.empty());
}

TEST(Race, KnowsNothingBeforeTheFirstHeat) {
  for (const size_t contenders : {0, 1, 2, 5}) {
    const Race race = race_state(PairTable(contenders), {});
    EXPECT_EQ(race.leader, std::nullopt);
    EXPECT_EQ(race.winner, std::nullopt);
    EXPECT_TRUE(race.still_undecided.empty());
    const Ranking ranking = rank(PairTable(contenders), {});
    EXPECT_TRUE(ranking.order.empty());
    EXPECT_TRUE(ranking.tie_groups.empty());
  }
}

TEST(Race, ThresholdOfEliminationIsAParameter) {
  const PairTable table = race_of({0, 0.05}, 30, 4);
  EXPECT_EQ(race_state(table, {.eliminate_above = 0}).eliminated, (std::vector<size_t>{1}));
  const Race late = race_state(table, {.eliminate_above = 0.10});
  EXPECT_TRUE(late.eliminated.empty());
  EXPECT_EQ(late.standings[1].verdict, Verdict::kMateriallySlower);
  EXPECT_TRUE(late.still_undecided.empty());  // decided, though not out
}

TEST(Race, AContenderThatFailedIsLeftOut) {
  Machine machine(quiet(), {0, 0.3, 0}, 5);
  PairTable table(3);
  for (int i = 0; i < 10; ++i) ASSERT_TRUE(table.add(machine.heat({0, 1})));
  const Ranking ranking = rank(table, {});
  EXPECT_EQ(ranking.race.leader, 0);
  EXPECT_EQ(ranking.race.winner, 0);
  EXPECT_EQ(ranking.race.standings[2], Standing());
  EXPECT_EQ(ranking.places[2], Place());
  EXPECT_EQ(ranking.places[1], (Place{2, 2, "b"}));
  EXPECT_EQ(ranking.order, (std::vector<size_t>{0, 1}));
}

TEST(Race, WhoIsOutStaysOutUnderANewLeader) {
  // 2 loses to 0, then 0 loses to 1, whom 2 never met.
  PairTable table(3);
  Machine machine(quiet(), {0.3, 0, 0.6}, 6);
  for (int i = 0; i < 10; ++i) ASSERT_TRUE(table.add(machine.heat({0, 2})));
  EXPECT_EQ(race_state(table, {}).leader, 0);
  for (int i = 0; i < 10; ++i) ASSERT_TRUE(table.add(machine.heat({0, 1})));
  const Race race = race_state(table, {});
  EXPECT_EQ(race.leader, 1);
  EXPECT_EQ(race.winner, 1);
  EXPECT_EQ(race.standings[2].eliminated_by, 0);
  EXPECT_EQ(race.standings[2].pairs, 0);
  EXPECT_EQ(race.standings[2].verdict, Verdict::kSlower);
  const Ranking ranking = rank(table, {});
  EXPECT_EQ(ranking.places[2], (Place{3, 3, "c"}));  // by the chain 1 < 0 < 2
}

TEST(Ranking, AllTiedIsOneGroup) {
  const Ranking ranking = rank(race_of({0, 0, 0, 0, 0}, 6, 7), {});
  ASSERT_EQ(ranking.tie_groups.size(), 1);
  EXPECT_EQ(ranking.tie_groups[0], ranking.order);
  for (const Place& place : ranking.places) EXPECT_EQ(place, (Place{1, 5, "a"}));
  EXPECT_EQ(ranking.pairs.size(), 10);
}

TEST(Ranking, OverlapIsNotTransitive) {
  const Ranking ranking = rank(race_of({0, 0.015, 0.04}, 7, 8), {});
  EXPECT_EQ(ranking.places[0], (Place{1, 2, "a"}));
  EXPECT_EQ(ranking.places[1], (Place{1, 3, "ab"}));
  EXPECT_EQ(ranking.places[2], (Place{2, 3, "b"}));
}

TEST(Ranking, TwoContendersHaveOneQuestion) {
  const PairTable table = race_of({0, 0.03}, 20, 9);
  const Ranking ranking = rank(table, {});
  ASSERT_EQ(ranking.pairs.size(), 1);
  EXPECT_EQ(ranking.pairs[0].interval.mirrored(), ranking.race.standings[1].interval);
  EXPECT_EQ(ranking.pairs[0].gap, -ranking.race.standings[1].gap);
}

TEST(Ranking, PermutationOfTheContendersPermutesTheAnswer) {
  EXPECT_TRUE(rc::check([](uint64_t seed) {
    const size_t n = *rc::gen::inRange<size_t>(2, 7);
    std::mt19937_64 random(seed);
    std::vector<double> effects(n);
    for (double& effect : effects) effect = std::normal_distribution<double>(0, 0.04)(random);
    std::vector<size_t> to(n);
    std::iota(to.begin(), to.end(), size_t{0});
    std::shuffle(to.begin(), to.end(), random);
    Machine machine(quiet(), effects, seed);
    PairTable plain(n);
    PairTable moved(n);
    for (int h = 0; h < 12; ++h) {
      HeatResult heat = machine.heat();
      if (n > 2) heat.log_ms[random() % n].reset();
      HeatResult other{std::vector<std::optional<double>>(n)};
      for (size_t i = 0; i < n; ++i) other.log_ms[to[i]] = heat.log_ms[i];
      RC_ASSERT(plain.add(heat).has_value() && moved.add(other).has_value());
    }
    const Ranking a = rank(plain, {});
    const Ranking b = rank(moved, {});
    RC_ASSERT(to[*a.race.leader] == *b.race.leader);
    for (size_t i = 0; i < n; ++i) {
      RC_ASSERT(a.places[i] == b.places[to[i]]);
      RC_ASSERT(a.race.standings[i].verdict == b.race.standings[to[i]].verdict);
      RC_ASSERT(a.race.standings[i].eliminated_by.has_value() ==
                b.race.standings[to[i]].eliminated_by.has_value());
      RC_ASSERT(to[a.order[i]] == b.order[i]);
    }
  }));
}

TEST(Ranking, IsConsistentWithItself) {
  EXPECT_TRUE(rc::check([](uint64_t seed) {
    const size_t n = *rc::gen::inRange<size_t>(2, 8);
    const int heats = *rc::gen::inRange(1, 25);
    std::mt19937_64 random(seed);
    std::vector<double> effects(n);
    for (double& effect : effects) effect = std::normal_distribution<double>(0, 0.05)(random);
    const Ranking ranking = rank(race_of(effects, heats, seed), {});
    const Race& race = ranking.race;
    RC_ASSERT(ranking.places[*race.leader].best == 1);
    RC_ASSERT(!race.standings[*race.leader].eliminated_by);
    for (size_t i = 0; i < n; ++i) {
      const Place& place = ranking.places[i];
      RC_ASSERT(1 <= place.best && place.best <= place.worst && place.worst <= n && !place.letters.empty());
      const bool out = std::count(race.eliminated.begin(), race.eliminated.end(), i) > 0;
      const bool open = std::count(race.still_undecided.begin(), race.still_undecided.end(), i) > 0;
      RC_ASSERT(out == race.standings[i].eliminated_by.has_value());
      RC_ASSERT(!(out && open));
      RC_ASSERT(open == (race.standings[i].verdict == Verdict::kUndecided));
      RC_ASSERT((place.best > 1) == out);
      const bool beaten = race.standings[i].verdict == Verdict::kSlower ||
                          race.standings[i].verdict == Verdict::kMateriallySlower;
      RC_ASSERT(beaten == out);  // every heat has all contenders, the leader too
    }
  }));
}

TEST(Ranking, ADominatedContenderIsNeverInTheLeadersGroup) {
  for (uint64_t seed = 0; seed < 100; ++seed) {
    const Ranking ranking = rank(race_of({0, 0.01, 0.3, 0.01}, 8, seed), {});
    ASSERT_NE(ranking.race.leader, 2);
    EXPECT_EQ(ranking.places[2].letters.find('a'), std::string::npos);
    EXPECT_EQ(ranking.places[2].best, 4);
  }
}

// The intervals of a table by hand: those of its looks, at a level of its own.
Interval at_level(const PairTable& table, size_t a, size_t b, double alpha) {
  std::vector<double> ratios;
  for (size_t n = 0; n <= table.met(a, b); ++n) ratios.push_back(boundary_ratio(n, alpha));
  return table.interval(a, b, ratios);
}

TEST(Race, AlphaIsSharedAmongTheOpenOnes) {
  const PairTable tied = race_of({0, 0.002, 0.001, 0.003}, 8, 10);
  const Ranking equal = rank(tied, {});
  ASSERT_TRUE(equal.race.eliminated.empty());
  for (const PairGap& pair : equal.pairs)
    EXPECT_EQ(pair.interval, at_level(tied, pair.a, pair.b, 0.01 / 6)) << pair.a << pair.b;

  // Two far behind: what is between them and the others keeps the first level, the two that are left have
  // all.
  const PairTable table = race_of({0, 0.4, 0.002, 0.8}, 8, 10);
  const Ranking ranking = rank(table, {});
  EXPECT_EQ(ranking.race.eliminated, (std::vector<size_t>{1, 3}));
  for (const PairGap& pair : ranking.pairs) {
    const double level = pair.a == 0 && pair.b == 2 ? 0.01 : 0.01 / 6;
    EXPECT_EQ(pair.interval, at_level(table, pair.a, pair.b, level)) << pair.a << pair.b;
  }
  const size_t other = *ranking.race.leader == 0 ? 2 : 0;
  const Interval whole = at_level(table, other, *ranking.race.leader, 0.01);
  EXPECT_EQ(ranking.race.standings[other].interval, whole);
}

TEST(Race, StepsDownUntilNobodyLeaves) {
  // d of 1 against 0 is enough for alpha and for alpha/1, not for alpha/3: it is out once 2 is.
  std::vector<HeatResult> heats;
  for (int h = 0; h < 6; ++h) heats.push_back({{0.0, 0.03 + 0.01 * (h % 2), 1.0}});
  PairTable both(3), alone(2);
  for (const HeatResult& heat : heats) {
    ASSERT_TRUE(both.add(heat));
    ASSERT_TRUE(alone.add({{heat.log_ms[0], heat.log_ms[1]}}));
  }
  double alpha = 0.5;  // the least at which two contenders are told apart, from above
  while (!race_state(alone, {.alpha = alpha * 0.9}).eliminated.empty()) alpha *= 0.9;
  const Race race = race_state(both, {.alpha = alpha});
  EXPECT_EQ(race.eliminated, (std::vector<size_t>{1, 2}));
  EXPECT_EQ(race.winner, 0);
  EXPECT_GT(race.standings[1].interval.low, 0) << "the interval that is shown is the one that decided";
  for (HeatResult& heat : heats) heat.log_ms[2] = 0.0;  // a third one as fast as the first: nobody leaves
  PairTable close(3);
  for (const HeatResult& heat : heats) ASSERT_TRUE(close.add(heat));
  EXPECT_TRUE(race_state(close, {.alpha = alpha}).eliminated.empty());
}

TEST(Race, WhoWasLeftOutTakesNoShare) {
  PairTable three(3), two(2);
  for (int h = 0; h < 6; ++h) {
    ASSERT_TRUE(three.add({{0.0, 0.03 + 0.01 * (h % 2), std::nullopt}}));
    ASSERT_TRUE(two.add({{0.0, 0.03 + 0.01 * (h % 2)}}));
  }
  const Interval alone = race_state(two, {}).standings[1].interval;
  EXPECT_GT(race_state(three, {}).standings[1].interval.width(), alone.width());
  three.leave_out(2);
  EXPECT_EQ(race_state(three, {}).standings[1].interval, alone);
}

TEST(Ranking, ShowsAsSeparatedWhateverTheRaceSeparated) {
  const std::vector<double> effects = {0, 0.05, 0.06, 0.07, 0.08, 0.09, 0.10, 0.11};
  Machine machine(quiet(), effects, 11);
  PairTable table(effects.size());
  std::vector<size_t> alive(effects.size());
  std::iota(alive.begin(), alive.end(), size_t{0});
  while (alive.size() > 1 && table.heats(0) < 60) {
    ASSERT_TRUE(table.add(machine.heat(alive)));
    const Race race = race_state(table, {});
    std::erase_if(alive, [&](size_t i) { return race.standings[i].eliminated_by.has_value(); });
  }
  const Ranking ranking = rank(table, {});
  EXPECT_EQ(ranking.race.winner, 0);
  EXPECT_EQ(ranking.places[0], (Place{1, 1, "a"}));
  EXPECT_EQ(ranking.tie_groups[0], (std::vector<size_t>{0}));
  for (size_t i = 1; i < effects.size(); ++i) EXPECT_GE(ranking.places[i].best, 2);
}

// The claims of the header on races with a look after every heat. 300 races at alpha = 5% expect 15 failures
// at most; more than 28 has probability < .001.
TEST(RankingErrors, AllTiedNamesNoWinnerAndSeparatesNobody) {
  int winners = 0;
  int verdicts = 0;
  int separations = 0;
  for (uint64_t seed = 0; seed < 300; ++seed) {
    Machine machine(quiet(), std::vector<double>(6, 0.0), seed);
    PairTable table(6);
    bool winner = false;
    bool verdict = false;
    bool separation = false;
    for (int heat = 0; heat < 40; ++heat) {
      ASSERT_TRUE(table.add(machine.heat()));
      const Ranking ranking = rank(table, {.alpha = 0.05});
      separation = separation || ranking.tie_groups.size() > 1;
      for (const Standing& standing : ranking.race.standings) {
        verdict = verdict || (standing.verdict != Verdict::kUndecided && standing.verdict != Verdict::kSame);
      }
      winner = winner || ranking.race.winner.has_value();
    }
    winners += winner;
    verdicts += verdict;
    separations += separation;
  }
  EXPECT_LE(winners, 28);
  EXPECT_LE(verdicts, 28);
  EXPECT_LE(separations, 28);
}

TEST(RankingErrors, TheFastestOfManyIsNotLost) {
  int lost = 0;
  int won = 0;
  const std::vector<double> effects = {0.02, 0.03, 0, 0.025, 0.05, 0.02};
  for (uint64_t seed = 0; seed < 300; ++seed) {
    Machine machine(quiet(), effects, 1000 + seed);
    PairTable table(6);
    Race race;
    std::vector<size_t> alive = {0, 1, 2, 3, 4, 5};
    for (int heat = 0; heat < 60 && alive.size() > 1; ++heat) {  // as the race loop does: survivors only
      ASSERT_TRUE(table.add(machine.heat(alive)));
      race = race_state(table, {.alpha = 0.05});
      std::erase_if(alive, [&](size_t i) { return race.standings[i].eliminated_by.has_value(); });
    }
    lost += race.standings[2].eliminated_by.has_value();
    won += race.winner == 2;
  }
  EXPECT_LE(lost, 28);
  EXPECT_GE(won, 270);
}

}  // namespace
}  // namespace bakeoff::stats
