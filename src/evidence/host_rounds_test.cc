#include "evidence/host_rounds.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace bakeoff {
namespace {

using sample::HostChange;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// A second in which nothing happened.
HostChange quiet() {
  HostChange change;
  change.wall_s = 1;
  change.steal = change.others = change.throttled = change.cpu_pressure = 0.0;
  change.memory_pressure = change.io_pressure = change.clock_change = change.slept_s = 0.0;
  return change;
}

TEST(Disturbance, EachLimitHasItsWords) {
  const recipe::HostRule rule;
  EXPECT_EQ(disturbance(quiet(), rule), "");
  const struct {
    sample::Reading HostChange::*reading;
    double just_right, too_much;
    const char* words;
  } cases[] = {
      {&HostChange::steal, 0.05, 0.2, "the hypervisor took 20% of the processors' time (limit 5%)"},
      {&HostChange::throttled, 0.05, 0.5, "a CPU quota took 50% of the processors' time (limit 5%)"},
      {&HostChange::others, 0.1, 0.4, "other processes used 40% of the processors' time (limit 10%)"},
      {&HostChange::memory_pressure, 0.1, 0.3, "tasks waited for memory for 30% of the time (limit 10%)"},
      {&HostChange::io_pressure, 0.1, 0.3, "tasks waited for a disk for 30% of the time (limit 10%)"},
      {&HostChange::clock_change, 0.1, 0.25, "the processor's speed changed by 25% (limit 10%)"},
      {&HostChange::slept_s, 0.1, 60, "the machine was suspended for 60.0 s"},
  };
  for (const auto& c : cases) {
    SCOPED_TRACE(c.words);
    HostChange change = quiet();
    change.*c.reading = c.just_right;
    EXPECT_EQ(disturbance(change, rule), "");
    change.*c.reading = c.too_much;
    EXPECT_EQ(disturbance(change, rule), c.words);
    change.*c.reading = sample::Reading::absent("not here");
    EXPECT_EQ(disturbance(change, rule), "") << "what is absent disturbs nobody";
  }
}

TEST(Disturbance, PressureOnProcessorsIsNotJudgedAndShortRoundsAreNot) {
  HostChange change = quiet();
  change.cpu_pressure = 1.0;
  EXPECT_EQ(disturbance(change, {}), "") << "a contender makes its own";
  change.io_pressure = 0.9;
  change.wall_s = 0.1;
  EXPECT_EQ(disturbance(change, {}), "");
  change.wall_s = -2;
  EXPECT_EQ(disturbance(change, {}), "the clock went back by 2.000 s");
}

TEST(Disturbance, TheRecipeSetsTheLimits) {
  HostChange change = quiet();
  change.others = 0.4;
  EXPECT_EQ(disturbance(change, {.max_others = 0.5}), "");
  change.others = 0.001;
  EXPECT_NE(disturbance(change, {.max_others = 0}), "");
}

TEST(HostRound, HoldsNumbersAndReasons) {
  sample::HostSnapshot before, after;
  before.ns = 5'000'000'000;
  after.ns = 6'000'000'000;
  before.cpus = after.cpus = 2;
  before.busy_s = 10.0;
  after.busy_s = 11.9;
  before.clock_ghz = after.clock_ghz = 3.5;
  const HostRound round = host_round(before, after, 0.9, {});
  EXPECT_EQ(round.wall_ns, 1'000'000'000);
  EXPECT_NEAR(round.seen.at("others"), 0.5, 1e-12);
  EXPECT_EQ(round.seen.at("clock GHz"), 3.5);
  EXPECT_EQ(round.absent.at("steal"), "not read");
  EXPECT_FALSE(round.seen.contains("steal"));
  EXPECT_THAT(round.busy, HasSubstr("other processes used 50%"));
  EXPECT_FALSE(round.rerun);
}

// One heat of two members; b missed the last round.
std::vector<Trial> heat(int number, const std::vector<HostRound>& rounds) {
  return {{.contender = "a", .heat = number, .rounds = rounds},
          {.contender = "b", .heat = number, .rounds = {rounds.begin(), rounds.end() - 1}}};
}

HostRound round(const std::string& busy, bool rerun = false) {
  return {.wall_ns = 1,
          .seen = {{"others", 0.1}},
          .absent = {{"cpu pressure", "no such file"}},
          .busy = busy,
          .rerun = rerun};
}

TEST(Tally, CountsEveryRoundOfAHeatOnce) {
  auto trials = heat(1, {round(""), round("x used 20% (limit 10%)", true), round("")});
  for (const Trial& trial : heat(2, {round("x used 30% (limit 10%)"), round("it slept"), round("")}))
    trials.push_back(trial);
  const HostTally seen = tally(trials);
  EXPECT_EQ(seen.rounds, 5);
  EXPECT_EQ(seen.judged, 5);
  EXPECT_EQ(seen.busy, 2);
  EXPECT_EQ(seen.reruns, 1);
  EXPECT_EQ(seen.worst, "x used 30% (limit 10%)") << "alike but for the figure";
  EXPECT_THAT(seen.absent, ElementsAre("cpu pressure: no such file"));
  EXPECT_EQ(tally({}), HostTally{});
}

TEST(Refusal, NeedsMostOfFourJudgedRounds) {
  HostTally seen{.rounds = 4, .judged = 4, .busy = 2, .worst = "steal"};
  EXPECT_EQ(seen.refusal({}), std::nullopt);
  seen.busy = 3;
  EXPECT_EQ(*seen.refusal({}),
            "this host was busy throughout: 3 of 4 rounds were disturbed, for example steal");
  EXPECT_EQ(seen.refusal({.max_busy = 1}), std::nullopt);
  EXPECT_NE(seen.refusal({.max_busy = 0}), std::nullopt);
}

TEST(Refusal, FewerJudgedRoundsThanItTakesTellNothingAndAllowNoVerdict) {
  HostTally seen{.rounds = 3, .judged = 3};
  EXPECT_EQ(*seen.refusal({}),
            "unknown whether this host was quiet: 3 of 3 rounds could be judged, at least 4 are needed");
  EXPECT_TRUE(seen.needs_more({}));
  EXPECT_EQ(seen.refusal({.max_busy = 1}), std::nullopt) << "asked for whatever the host did";
  EXPECT_FALSE(seen.needs_more({.max_busy = 1}));
  seen = {.rounds = 40, .judged = 0, .absent = {"others: there is no readable /proc/stat"}};
  EXPECT_THAT(*seen.refusal({}),
              HasSubstr("0 of 40 rounds could be judged, at least 4 are needed (others: there is "
                        "no readable /proc/stat)"));
  EXPECT_FALSE(seen.needs_more({})) << "no further heat would help";
}

TEST(Tally, RoundsThatWereJudgedTogetherCountAsOne) {
  std::vector<HostRound> rounds(5, round(""));
  rounds[0].stretch = rounds[1].stretch = 1;
  rounds[2].stretch = rounds[3].stretch = 2;
  rounds[4].stretch = 3;
  rounds[0].rerun = rounds[1].rerun = true;
  rounds[2].busy = rounds[3].busy = "x used 30% (limit 10%)";
  rounds.push_back(round(""));  // b's is one shorter
  rounds.back().stretch = 3;
  const HostTally seen = tally(heat(1, rounds));
  EXPECT_EQ(seen.rounds, 2);
  EXPECT_EQ(seen.judged, 2);
  EXPECT_EQ(seen.busy, 1);
  EXPECT_EQ(seen.reruns, 1);
}

TEST(HostRound, AQuotaTakesNothingFromWhoDoesNotRun) {
  sample::HostSnapshot before, after;
  after.ns = 250'000'000;
  before.cpus = after.cpus = 2;
  before.throttled_s = 1.0;
  after.throttled_s = 1.02;
  EXPECT_EQ(host_round(before, after, 0, {}).busy, "") << "4% of all";
  EXPECT_THAT(host_round(before, after, 0, {}, 0.2).busy, HasSubstr("a CPU quota took 20%"));
}

TEST(Tally, RoundsThatWereTooShortAreNotJudged) {
  HostRound brief{.wall_ns = 1, .absent = {{"others", "0.10 s are too short to judge by"}}};
  const HostTally seen = tally(heat(1, {brief, brief, brief}));
  EXPECT_EQ(seen.rounds, 3);
  EXPECT_EQ(seen.judged, 0);
}

TEST(DisturbedText, CountsAndGivesAnExample) {
  EXPECT_EQ(disturbed_text({}, "x"), "");
  EXPECT_EQ(disturbed_text({{}, {}}, "x"), "");
  HostRound busy;
  busy.busy = "steal";
  EXPECT_EQ(disturbed_text({{}, busy, busy}, "stretches"), "2 of 3 stretches were disturbed: steal");
}

}  // namespace
}  // namespace bakeoff
