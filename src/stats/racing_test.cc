#include "stats/racing.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "stats/noise_testing.h"

namespace bakeoff::stats {
namespace {

using ::testing::AnyOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::Machine;
using testing::NoiseModel;

NoiseModel quiet() { return {.process = 0.01, .machine = 0.02, .machine_phi = 0.9, .rounds = 2, .steps = 2}; }

Heat next(const PairTable& table, const std::vector<ContenderState>& states,
          const RacingOptions& options = {}, size_t confirmed = 0) {
  return next_heat(table, race_state(table, options.ranking), states, confirmed, options);
}

TEST(NextHeat, CheapOnesRunFirst) {
  std::vector<ContenderState> states(5);
  for (size_t i = 0; i < 5; ++i) states[i].heat_s = 10.0 - static_cast<double>(i);
  states[2].heat_s.reset();  // unknown: last
  const Heat heat = next(PairTable(5), states, {.live = 4});
  EXPECT_EQ(heat.phase, Phase::kRace);
  EXPECT_THAT(heat.members, ElementsAre(4, 3, 1, 0));
}

TEST(NextHeat, WhoIsOutNeverRuns) {
  std::vector<ContenderState> states(3);
  states[1].out = true;
  EXPECT_THAT(next(PairTable(3), states).members, ElementsAre(0, 2));
  states[2].out = true;
  const Heat lone = next(PairTable(3), states);
  EXPECT_EQ(lone.phase, Phase::kDone);
  EXPECT_THAT(lone.members, IsEmpty());
}

TEST(NextWave, TakesTurnsAndLinksEverybody) {
  std::vector<ContenderState> states(9);
  for (size_t i = 0; i < 9; ++i) states[i].heat_s = 1.0 + static_cast<double>(i);
  const PairTable table(9);
  const Race race = race_state(table, {});
  const auto wave = next_wave(table, race, states, 0, {.live = 3}, 6);
  ASSERT_EQ(wave.size(), 6u);
  EXPECT_EQ(wave.front(), next_heat(table, race, states, 0, {.live = 3}));
  std::vector<int> heats(9, 0);
  for (const Heat& heat : wave) {
    EXPECT_EQ(heat.members.size(), 3u);
    EXPECT_EQ(heat.members.front(), 0u) << "the cheapest links those of different heats";
    for (const size_t member : heat.members) ++heats[member];
  }
  EXPECT_THAT(heats, ElementsAre(6, 2, 2, 2, 2, 1, 1, 1, 1));
}

TEST(NextWave, ConfirmsWhatIsDecided) {
  PairTable table(2);
  for (int i = 0; i < 12; ++i) ASSERT_TRUE(table.add({{1.0 + 0.001 * i, 2.0 - 0.001 * i}}));
  const std::vector<ContenderState> states(2);
  const Race race = race_state(table, {});
  const auto wave = next_wave(table, race, states, 1, {.confirm_heats = 3}, 8);
  ASSERT_EQ(wave.size(), 2u) << "one of three is done";
  EXPECT_EQ(wave.front().phase, Phase::kConfirm);
  EXPECT_THAT(next_wave(table, race, states, 3, {.confirm_heats = 3}, 8), IsEmpty());
}

TEST(LeaveToTheseNodes, WaitsUntilNoNodeJoinsAndThenLeavesWhatTheFirstQuarterDecided) {
  EXPECT_EQ(earliest_of(std::vector<int>{0, 1, 1, 0, 0, 0, 1, 0}), 2u);
  EXPECT_EQ(earliest_of(std::vector<int>{0, 0, 1, 0, 0, 2, 1, 0}), 0u) << "2 has just joined";
  Race race;
  race.leader = 0;
  race.standings.resize(4);
  race.still_undecided = {1, 2, 3};
  Race early = race;
  for (Standing& one : early.standings) one.effect = 0.1;
  early.standings[1].verdict = Verdict::kSlower;
  early.standings[2].eliminated_by = 1;
  leave_to_these_nodes(race, early);
  EXPECT_THAT(race.still_undecided, ElementsAre(3));
  race.still_undecided = {1, 2, 3};
  early.leader = 3;
  leave_to_these_nodes(race, early);
  EXPECT_THAT(race.still_undecided, ElementsAre(1, 3)) << "compared with another leader";
}

// A race to its end, as the lab runs it.
struct Outcome {
  Race race;
  size_t starts = 0;
  size_t confirmed = 0;
  std::vector<size_t> last;
};

Outcome run_race(const std::vector<double>& effects, const RacingOptions& options, uint64_t seed,
                 size_t most = 4000) {
  Machine machine(quiet(), effects, seed);
  PairTable table(effects.size());
  const std::vector<ContenderState> states(effects.size());
  Outcome seen;
  while (seen.starts < most) {
    seen.race = race_state(table, options.ranking);
    const Heat heat = next_heat(table, seen.race, states, seen.confirmed, options);
    if (heat.phase == Phase::kDone) break;
    EXPECT_LE(heat.members.size(), options.live);
    seen.starts += heat.members.size();
    seen.last = heat.members;
    const HeatResult result = machine.heat(heat.members);
    if (heat.phase == Phase::kConfirm) {
      ++seen.confirmed;
    } else {
      EXPECT_TRUE(table.add(result));
    }
  }
  return seen;
}

TEST(NextHeat, EndsWithTheWinnerMeasuredAgain) {
  const Outcome seen = run_race({0.3, 0, 0.2, 0.5, 0.1}, {}, 3);
  EXPECT_EQ(seen.race.winner, 1u);
  EXPECT_EQ(seen.confirmed, 3u);
  EXPECT_THAT(seen.last, ElementsAre(1, 4)) << "with the next one";
}

TEST(NextHeat, ATieIsConfirmedTogether) {
  const Outcome seen = run_race({0.3, 0, 0, 0.4}, {}, 4);
  EXPECT_EQ(seen.race.winner, std::nullopt);
  EXPECT_THAT(seen.last, AnyOf(ElementsAre(1, 2), ElementsAre(2, 1)));
  const Outcome brief = run_race({0.3, 0, 0, 0.4}, {.confirm_heats = 0}, 4);
  EXPECT_EQ(brief.confirmed, 0u);
  EXPECT_EQ(brief.starts + 3 * 2, seen.starts);
}

// 64 contenders, one of them close to the best: nearly all the cost of equal shares is saved.
TEST(NextHeat, ManyContendersCostLittle) {
  std::vector<double> effects(64);
  for (size_t i = 0; i < effects.size(); ++i) effects[i] = 0.1 + 0.02 * static_cast<double>(i);
  effects[40] = 0;
  effects[7] = 0.01;
  RacingOptions options = {.confirm_heats = 0};
  const Outcome plain = run_race(effects, options, 5);
  EXPECT_EQ(plain.race.leader, 40u);
  options.ranking.ceiling = 0.1;
  const Outcome promised = run_race(effects, options, 5);
  EXPECT_EQ(promised.race.leader, 40u);
  EXPECT_LT(promised.starts, plain.starts * 8 / 10);
  EXPECT_GE(promised.race.eliminated.size(), 62u);
}

TEST(Race, AmongEqualsTheLeadStaysWhereTheHeatsAre) {
  PairTable table(3);
  ASSERT_TRUE(table.add({{0.001, 0.0, 0.5}}));
  ASSERT_TRUE(table.add({{0.001, std::nullopt, 0.5}}));
  EXPECT_EQ(race_state(table, {}).leader, 1u);
  EXPECT_EQ(race_state(table, {.leader_band = 0.005}).leader, 0u);
  EXPECT_EQ(race_state(table, {.leader_band = 0.0005}).leader, 1u);
}

TEST(Race, APromisedCeilingEliminatesAfterOneHeat) {
  PairTable table(3);
  ASSERT_TRUE(table.add({{0.0, 0.6, 0.2}}));
  EXPECT_THAT(race_state(table, {}).eliminated, IsEmpty());
  const Race race = race_state(table, {.ceiling = 0.1});
  EXPECT_THAT(race.eliminated, ElementsAre(1));
  EXPECT_EQ(race.standings[1].verdict, Verdict::kMateriallySlower);
}

TEST(Race, ACeilingIsBesideWhatBurstsVaryBy) {
  const auto eliminated = [](std::optional<double> variance) {
    PairTable table(2);
    EXPECT_TRUE(table.add({.log_ms = {0.0, 0.3}, .variance = {variance, variance}}));
    return race_state(table, {.ceiling = 0.03}).eliminated.size();
  };
  EXPECT_EQ(eliminated(0), 1u);
  EXPECT_EQ(eliminated(1e-4), 1u);
  EXPECT_EQ(eliminated(0.01), 0u) << "its bursts scatter";
  EXPECT_EQ(eliminated(std::nullopt), 0u) << "one burst shows no scatter: nothing is promised";
}

TEST(KnownVarianceHalfWidth, CoversAtAllLooksTogether) {
  EXPECT_NEAR(known_variance_half_width(0.01, 0.5, 0.01), 0.3601, 0.0005);
  int missed = 0;
  for (uint64_t seed = 0; seed < 2000; ++seed) {
    std::mt19937_64 random(seed);
    std::normal_distribution<double> normal(0, 0.1);
    double sum = 0, precision = 0;  // weighted, of heats of two kinds
    bool out = false;
    for (size_t n = 1; n <= 60; ++n) {
      const double sd = n % 3 == 0 ? 2 : 1;
      sum += sd * normal(random) / (0.01 * sd * sd);
      precision += 1 / (0.01 * sd * sd);
      out = out || std::abs(sum) / precision > known_variance_half_width(1 / precision, 0.5, 0.05);
    }
    missed += out;
  }
  EXPECT_LE(missed, 133);  // 5%, and what chance adds once in 1,000 times
  EXPECT_GE(missed, 5);
}

TEST(GapToDecide, IsThatOfTheMemberFarthestBehind) {
  PairTable table(4);
  ASSERT_TRUE(table.add({{0.0, 0.01, 0.5, std::nullopt}}));
  const Race race = race_state(table, {});
  EXPECT_NEAR(gap_to_decide(race, {Phase::kRace, {0, 1, 2}}, 0.03), 0.5, 1e-12);
  EXPECT_NEAR(gap_to_decide(race, {Phase::kRace, {0, 1}}, 0.03), std::log1p(0.03), 1e-12);
  EXPECT_NEAR(gap_to_decide(race, {Phase::kRace, {0, 1, 3}}, 0.03), kWideGap, 1e-12) << "it may be anywhere";
  EXPECT_NEAR(gap_to_decide(race_state(PairTable(2), {}), {Phase::kRace, {0, 1}}, 0.03), std::log1p(0.03),
              1e-12);
}

}  // namespace
}  // namespace bakeoff::stats
