#include "stats/outlook.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <random>
#include <vector>

#include "stats/racing.h"

namespace bakeoff::stats {
namespace {

// A race between two heats, by the functions that races use. Its noise: restarts, and bursts.
class SimulatedRace {
 public:
  struct Noise {
    double restart = 0.01, burst = 0.06;
  };
  SimulatedRace(std::vector<double> effects, Noise noise, uint64_t seed)
      : effects_(std::move(effects)),
        noise_(noise),
        random_(seed),
        table_(effects_.size(), std::log1p(options_.ranking.margin), Backup::kOnSigns),
        past_(effects_.size() * effects_.size()) {
    look();
  }

  bool decided() const { return next_.phase != Phase::kRace; }
  double seconds() const { return seconds_; }
  size_t heats() const { return heats_; }
  const PairTable& table() const { return table_; }
  const Race& race() const { return race_; }
  double effect(size_t i) const { return effects_[i]; }

  void run_heat() {
    HeatResult heat = {.log_ms = std::vector<std::optional<double>>(effects_.size())};
    std::vector<double> within(effects_.size());
    const double variance = noise_.burst * noise_.burst / static_cast<double>(rounds_);
    for (const size_t i : next_.members) {
      heat.log_ms[i] =
          effects_[i] + noise_.restart * normal_(random_) + std::sqrt(variance) * normal_(random_);
      std::chi_squared_distribution<double> chi(static_cast<double>(rounds_ - 1));
      within[i] = variance * chi(random_) / static_cast<double>(rounds_ - 1);
    }
    for (const size_t a : next_.members) {
      for (const size_t b : next_.members)
        past(a, b).push_back({*heat.log_ms[a] - *heat.log_ms[b], within[a] + within[b], rounds_});
    }
    EXPECT_TRUE(table_.add(heat));
    seconds_ += static_cast<double>(next_.members.size()) * member_s();
    ++heats_;
    look();
  }

  Rest rest() {
    std::vector<OpenPair> pairs;
    for (const size_t i : race_.still_undecided) {
      if (i != *race_.leader)
        pairs.push_back(
            open_pair(table_, race_, options_.ranking, i, past(i, *race_.leader), rounds_, member_s()));
    }
    return rest_of_race(pairs, member_s(), options_.live, options_.ranking.margin);
  }

 private:
  std::vector<PastHeat>& past(size_t a, size_t b) { return past_[a * effects_.size() + b]; }
  double member_s() const { return kStart + static_cast<double>(rounds_) * kBurst; }

  void look() {
    race_ = race_state(table_, options_.ranking);
    next_ = next_heat(table_, race_, std::vector<ContenderState>(effects_.size()), 0, options_);
    if (decided()) return;
    std::optional<size_t> nearest;
    for (const size_t i : next_.members) {
      if (!race_.leader || i == *race_.leader || !race_.standings[i].effect) continue;
      if (!nearest || *race_.standings[i].effect < *race_.standings[*nearest].effect) nearest = i;
    }
    const auto members = static_cast<double>(next_.members.size());
    const HeatVariance variance =
        heat_variance(nearest ? past(*nearest, *race_.leader) : std::vector<PastHeat>());
    rounds_ =
        plan_rounds(variance, {members * kStart, members * kBurst},
                    gap_to_decide(race_, next_, options_.ranking.margin), options_.ranking.alpha, rounds_);
  }

  static constexpr double kStart = 3, kBurst = 0.35;  // seconds of a member
  std::vector<double> effects_;
  Noise noise_;
  std::mt19937_64 random_;
  std::normal_distribution<double> normal_;
  RacingOptions options_ = {.ranking = {.margin = 0.03, .leader_band = 0.005}, .confirm_heats = 0};
  PairTable table_;
  std::vector<std::vector<PastHeat>> past_;
  Race race_;
  Heat next_;
  int64_t rounds_ = kFewestRounds;
  size_t heats_ = 0;
  double seconds_ = 0;
};

// Of races with gaps of all sizes, looked at after a number of heats that does not depend on what they show.
struct Draw {
  std::vector<double> effects = {};
  SimulatedRace::Noise noise = {};
  size_t look = 0;
};

Draw draw(std::mt19937_64& random) {
  std::normal_distribution<double> normal;
  std::uniform_real_distribution<double> uniform;
  Draw drawn = {.effects = std::vector<double>(2 + random() % 3)};
  for (double& effect : drawn.effects) effect = 0.05 * normal(random);
  drawn.noise = {0.003 + 0.017 * uniform(random), 0.03 + 0.09 * uniform(random)};
  drawn.look = 2 + random() % 9;
  return drawn;
}

TEST(SlowerByNow, OrdersStatedWithPPercentAreRightInPPercent) {
  std::mt19937_64 random(5);
  struct Bin {
    double stated = 0, right = 0, count = 0;
  };
  std::array<Bin, 5> bins;  // 50 to 60%, ..., 90 to 100%
  for (size_t seed = 0, undecided = 0; undecided < 2000; ++seed) {
    const Draw drawn = draw(random);
    SimulatedRace race(drawn.effects, drawn.noise, seed);
    while (!race.decided() && race.heats() < drawn.look) race.run_heat();
    if (race.decided()) continue;
    ++undecided;
    for (const size_t i : race.race().still_undecided) {
      const size_t leader = *race.race().leader;
      if (i == leader) continue;
      const double slower = slower_by_now(race.table(), i, leader).value();
      EXPECT_NEAR(slower + slower_by_now(race.table(), leader, i).value(), 1, 1e-12);
      const double sure = std::max(slower, 1 - slower);
      Bin& bin = bins[std::min<size_t>(4, static_cast<size_t>((sure - 0.5) * 10))];
      bin.stated += sure;
      bin.right += (slower > 0.5) == (race.effect(i) > race.effect(leader));
      ++bin.count;
    }
  }
  for (const Bin& bin : bins) {
    ASSERT_GT(bin.count, 100);
    EXPECT_NEAR(bin.right / bin.count, bin.stated / bin.count, 0.04) << bin.stated / bin.count;
  }
}

TEST(RestOfRace, IsWithinAFactorOfTwoOfMostRaces) {
  std::mt19937_64 random(6);
  size_t races = 0, within_two = 0, longer = 0, inside = 0;
  for (uint64_t seed = 0; races < 1000; ++seed) {
    const Draw drawn = draw(random);
    SimulatedRace race(drawn.effects, drawn.noise, seed);
    while (!race.decided() && race.heats() < drawn.look) race.run_heat();
    if (race.decided()) continue;
    const Rest rest = race.rest();
    const double before = race.seconds();
    while (!race.decided() && race.heats() < 400) race.run_heat();
    const double took = race.seconds() - before;
    ++races;
    within_two += rest.seconds < 2 * took && rest.seconds > took / 2;
    longer += took > rest.seconds;
    inside += rest.low_s <= took && took <= rest.high_s;
    EXPECT_LE(rest.low_s, rest.seconds);
    EXPECT_LE(rest.seconds, rest.high_s);
  }
  const auto all = static_cast<double>(races);
  EXPECT_GT(static_cast<double>(within_two) / all, 0.6);
  // Medians, somewhat too long: a contender that leaves releases alpha, and heats are planned anew.
  EXPECT_NEAR(static_cast<double>(longer) / all, 0.43, 0.1);
  EXPECT_NEAR(static_cast<double>(inside) / all, 0.75, 0.1);
}

TEST(SlowerByNow, TwoHeatsAtLeast) {
  PairTable table(2);
  EXPECT_FALSE(slower_by_now(table, 0, 1));
  ASSERT_TRUE(table.add({{0.0, 0.1}}));
  EXPECT_FALSE(slower_by_now(table, 0, 1)) << "one difference shows no noise";
  ASSERT_TRUE(table.add({{0.0, 0.1}}));
  EXPECT_FALSE(slower_by_now(table, 0, 1)) << "nor do equal ones";
  ASSERT_TRUE(table.add({{0.0, 0.13}}));
  // d = .1, .1, .13: t = 11 with 2 degrees of freedom.
  EXPECT_NEAR(slower_by_now(table, 1, 0).value(), 0.99590, 1e-4);
  EXPECT_NEAR(slower_by_now(table, 0, 1).value(), 0.00410, 1e-4);
}

OpenPair pair_of(std::vector<double> d, double sd) {
  OpenPair pair = {.alpha = 0.01, .seen_variance = sd * sd, .next_variance = sd * sd, .heat_s = 10};
  for (const double value : d) pair.seen.add(value);
  return pair;
}

TEST(RestOfRace, GrowsWithTheNoiseAndTheNumberOfContenders) {
  const OpenPair near = pair_of({0.05, 0.06, 0.04}, 0.02), far = pair_of({0.5, 0.51, 0.49}, 0.02);
  const OpenPair noisy = pair_of({0.05, 0.09, 0.01}, 0.08);
  const auto rest = [](const std::vector<OpenPair>& pairs, size_t live = 8) {
    return rest_of_race(pairs, 5, live, 0.03);
  };
  EXPECT_EQ(rest({}), Rest{});
  EXPECT_EQ(rest({near}), rest({near})) << "the seed is fixed";
  EXPECT_LT(rest({far}).seconds, rest({near}).seconds);
  EXPECT_LT(rest({near}).seconds, rest({noisy}).seconds);
  EXPECT_GT(rest({near, near}).seconds, 1.5 * rest({near}).seconds) << "two contenders cost twice as much";
  const Rest narrow = rest({far, far, far, far}, 3), wide = rest({far, far, far, far}, 5);
  EXPECT_GE(narrow.heats, 2 * wide.heats) << "two of the four in a heat";
  EXPECT_GT(narrow.seconds, wide.seconds) << "the leader runs in more heats";
}

TEST(RestOfRace, SaysSoWhereNoLengthDecides) {
  std::vector<double> equal(40000, 1e-6);
  for (size_t i = 0; i < equal.size(); i += 2) equal[i] = -1e-6;
  const Rest rest = rest_of_race(std::vector{pair_of(equal, 0.1)}, 5, 8, 0);
  EXPECT_TRUE(rest.more);
  EXPECT_GT(rest.heats, 1000);
}

}  // namespace
}  // namespace bakeoff::stats
