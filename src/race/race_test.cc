#include "race/race.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cmath>
#include <limits>
#include <thread>

#include "evidence/host_rounds.h"
#include "evidence/warm_up.h"
#include "parity/gate.h"
#include "plan/fake_lanes_testing.h"
#include "plan/testing.h"
#include "proc/interrupt.h"
#include "race/heat_plan.h"
#include "race/outlook.h"
#include "records/controls.h"
#include "records/machine_report.h"
#include "worker/grants.h"
#include "zoo/zoo.h"

namespace bakeoff {
namespace {

using testing::all_pass;
using ::testing::ElementsAre;
using testing::fake_spec;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::now_s;
using testing::TestFolder;

using Options = std::map<std::string, std::string>;

const Watch kNobody = [](const Happening&) {};

// A steady machine. By its clock every look is so long after the last one, usually enough for the round between them
// to be judged, however short it was. Others use most of it, which make_plan_of() allows: what is said of trials has
// to hold beside whatever runs while the tests do.
sample::HostSnapshot quiet(int64_t apart_ns = 300'000'000) {
  static int64_t ns = 0;
  sample::HostSnapshot snapshot;
  snapshot.ns = ns += apart_ns;
  snapshot.cpus = 2;
  snapshot.uptime_s = static_cast<double>(snapshot.ns) / 1e9;
  for (sample::Reading* r : {&snapshot.busy_s, &snapshot.steal_s, &snapshot.memory_pressure_s,
                             &snapshot.io_pressure_s, &snapshot.throttled_s, &snapshot.cpu_pressure_s})
    *r = 0.0;
  snapshot.busy_s = 1.6 * static_cast<double>(ns) / 1e9;
  snapshot.clock_ghz = 3.0;
  return snapshot;
}

// A plan and what it is raced with.
struct TestPlan : Plan {
  Sensed sensed = {};
  int64_t begin_ns = monotonic_clock().now_ns();

  TimeBudget time() const { return recipe.budget.time(begin_ns); }
  RaceContext with(const Watch& watch) const { return {.time = time(), .sensed = sensed, .watch = watch}; }
};

Status race(const TestPlan& plan, const std::vector<Parity>& parities, std::vector<Trial> trials,
            const Watch& watch) {
  return bakeoff::race(plan, parities, std::move(trials), plan.with(watch));
}

Status first_heat(const TestPlan& plan, const std::vector<Parity>& parities, const Watch& watch) {
  return bakeoff::first_heat(plan, parities, plan.with(watch));
}

std::vector<Trial> run_heat(const TestPlan& plan, const std::vector<size_t>& members, int number,
                            HeatOrder order, const Watch& watch) {
  order.members = members;
  order.number = number;
  return bakeoff::run_heat(plan, order, plan.sensed, watch, {}).trials;
}

// A run whose lanes are fakes, a name and the fake's options each; on a machine that counts as quiet.
TestPlan make_plan_of(const fs::path& folder, const std::vector<std::pair<std::string, Options>>& lanes) {
  TestPlan plan{{.recipe = {}, .directory = RunDirectory::create(folder).value()}};
  plan.recipe.alpha = 0.05;
  plan.recipe.race.warmup_steps = 2;
  plan.recipe.race.bursts = 2;
  plan.recipe.race.burst_seconds = 0.03;
  plan.recipe.race.host.max_others = 0.9;
  plan.sensed.host = [] { return quiet(); };
  plan.sensed.measure_peak = [](const std::vector<int>&) { return roofline::Limits{}; };
  for (const auto& [id, options] : lanes) testing::add_fake_lane(plan, id, options);
  return plan;
}

Trial sound(const std::string& id, int heat, double ms) {
  const auto ns = static_cast<int64_t>(std::llround(ms * 1e7));
  return {.contender = id, .heat = heat, .bursts = {{ns, 10}, {ns, 10}}};
}

TEST(HeatValue, IsTheLogOfTheMeanStepTimeOfASoundTrial) {
  Trial trial = sound("a", 1, 4);
  EXPECT_NEAR(heat_value(trial).value(), std::log(4.0), 1e-12);
  trial.bursts = {{20'000'000, 10}, {60'000'000, 10}};
  EXPECT_NEAR(heat_value(trial).value(), std::log(4.0), 1e-12);
  Trial failed = trial, invalid = trial, none = trial, impossible = trial;
  failed.failure = Failure{Stage::kRun, "exit code 1", ""};
  invalid.invalid = "the loss became nan";
  none.bursts.clear();
  impossible.bursts[0].ns = 0;
  for (const Trial& t : {failed, invalid, none, impossible}) EXPECT_EQ(heat_value(t), std::nullopt);
}

TEST(Tabulate, PairsWhoMetInAHeat) {
  const std::vector<Trial> trials = {sound("a", 1, 4), sound("b", 1, 8),        sound("a", 2, 5),
                                     sound("c", 2, 5), sound("stranger", 2, 1), sound("b", 3, 1)};
  const auto table = tabulate(trials, {"a", "b", "c"});
  ASSERT_TRUE(table) << table.error().text();
  EXPECT_EQ(table->met(0, 1), 1u);
  EXPECT_EQ(table->met(0, 2), 1u);
  EXPECT_EQ(table->met(1, 2), 0u);
  EXPECT_NEAR(table->gap(1, 0), std::log(2.0), 1e-12);
  EXPECT_EQ(table->heats(1), 1u) << "alone in heat 3";
  EXPECT_EQ(tabulate({}, {"a", "b"})->contenders(), 2u);
}

TEST(Tabulate, WhoNeverHadAValueTakesNoShareOfAlpha) {
  std::vector<Trial> trials = {sound("a", 1, 4), sound("b", 1, 8), sound("slow", 1, 4000),
                               sound("late", 1, 4)};
  trials[2].bursts.clear();
  trials[2].dropped = "the fastest of its first 3 steps takes 4 s, 1000 times the leader's step of 4 ms";
  trials[2].behind_leader = 1000;
  trials.push_back(trials[2]);
  trials.back().heat = 2;
  trials.push_back(sound("late", 2, 4));
  trials.back().failure = Failure{Stage::kRun, "exit code 1", ""};
  const auto table = tabulate(trials, {"a", "b", "slow", "late", "waiting"}).value();
  EXPECT_TRUE(table.left_out(2));
  EXPECT_FALSE(table.left_out(3)) << "it was compared before it failed";
  EXPECT_FALSE(table.left_out(4)) << "its turn is yet to come";
  EXPECT_FALSE(table.left_out(0));
}

TEST(Tabulate, LooksForSignsInEveryHeatThatCounts) {
  // b loses 1.5% for each percent of steal, of which a round that was run again has had far more.
  std::vector<Trial> trials;
  for (int heat = 1; heat <= 8; ++heat) {
    const double steal = 0.01 * (heat * 5 % 8);
    for (const bool suffers : {false, true}) {
      Trial& trial =
          trials.emplace_back(sound(suffers ? "b" : "a", heat, suffers ? 4 * std::exp(1.5 * steal) : 4));
      trial.confirms = heat > 6;
      trial.rounds = {{.wall_ns = 1'000'000, .seen = {{"steal", 0.9}}, .rerun = true},
                      {.wall_ns = 2'000'000, .seen = {{"steal", steal}}},
                      {.wall_ns = 1'000'000, .seen = {}}};
    }
  }
  const auto table = tabulate(trials, {"a", "b"}).value();
  EXPECT_EQ(table.met(0, 1), 6u) << "heats of the confirmation are no evidence";
  const auto signs = table.signs(0, 1);
  ASSERT_TRUE(signs.steal);
  EXPECT_EQ(signs.steal->heats, 8u) << "but they may show a sign";
  EXPECT_NEAR(signs.steal->slope, -1.5, 1e-6);
  EXPECT_NEAR(signs.steal->high, 0.07, 1e-9);
}

TEST(Tabulate, WhoeverFailedOnceCountsInNoHeat) {
  std::vector<Trial> trials;
  for (int heat = 1; heat <= 4; ++heat) {
    for (const auto& [id, ms] : {std::pair{"flash", 1.0}, {"nan", 2.0}, {"a", 4.0}, {"b", 8.0}}) {
      trials.push_back(sound(id, heat, ms));
    }
  }
  trials[trials.size() - 4].failure = Failure{Stage::kRun, "exit code 1", ""};
  trials[trials.size() - 3].invalid = "the loss became nan";
  EXPECT_EQ(failed_in(trials), (std::set<std::string>{"flash", "nan"}));
  const auto table = tabulate(trials, {"flash", "nan", "a", "b"}).value();
  EXPECT_EQ(table.heats(0), 0u);
  EXPECT_EQ(table.heats(1), 0u);
  EXPECT_EQ(table.met(2, 3), 4u);
  EXPECT_EQ(stats::race_state(table, {}).leader, 2u) << "not the one that is out";
}

TEST(Eligible, AreThoseThatCanStartAndPassedTheGate) {
  const TestFolder folder;
  TestPlan plan = make_plan_of(
      folder / "run", {{"ok", {}}, {"absent", {}}, {"differs", {}}, {"broke", {}}, {"unproven", {}}});
  plan.lanes[1].failure = Failure{Stage::kEnvironment, "there is no environment 'fake'", ""};
  std::vector<Parity> parities = all_pass(plan);
  parities[2].diverges_at = "loss";
  parities[3].failure = Failure{Stage::kImport, "exit code 1", ""};
  parities.pop_back();
  EXPECT_THAT(eligible(plan, parities), ElementsAre(0));
  plan.recipe.training.track = ir::Track::kAsIs;
  EXPECT_THAT(eligible(plan, parities), ElementsAre(0, 2)) << "a difference is reported, not refused";
  EXPECT_THAT(eligible(plan, {}), IsEmpty());
}

TEST(LeastHeats, GrowWithTheDemandAndAreEnough) {
  EXPECT_LE(least_heats(0.05, 2), least_heats(0.01, 2));
  EXPECT_LE(least_heats(0.01, 2), least_heats(0.01, 10));
  EXPECT_GE(least_heats(0.5, 2), 2);
  for (const double alpha : {0.2, 0.05, 0.01}) {
    const stats::RankingOptions options = {.alpha = alpha};
    const int64_t least = least_heats(alpha, 3);
    stats::PairTable table(3);
    for (int64_t heat = 1; heat <= least; ++heat) {
      EXPECT_THAT(stats::race_state(table, options).eliminated, IsEmpty()) << heat << " of " << least;
      const double wobble = 1e-4 * std::sin(static_cast<double>(heat));
      ASSERT_TRUE(table.add({{0.0, 5 + wobble, 9 - wobble}}));
    }
    EXPECT_EQ(stats::race_state(table, options).winner, 0u) << alpha;
  }
}

TEST(CheckBudget, RefusesWhatCannotDecide) {
  recipe::Recipe recipe;
  recipe.file = "/r/x.toml";
  recipe.contenders.resize(4);
  EXPECT_TRUE(check_budget(recipe)) << "the default budget";
  const int64_t least = least_heats(recipe.alpha, 4);
  recipe.budget.heats = least - 1;
  const Status few = check_budget(recipe);
  ASSERT_FALSE(few);
  EXPECT_EQ(few.error().where, "/r/x.toml");
  EXPECT_THAT(few.error().message, HasSubstr("a budget of " + std::to_string(least - 1) + " heats"));
  EXPECT_THAT(few.error().remedy, HasSubstr("at least " + std::to_string(least) + " heats"));
  recipe.budget.heats = least;
  EXPECT_TRUE(check_budget(recipe));
  recipe.budget.minutes = 0.05;
  const Status brief = check_budget(recipe);
  ASSERT_FALSE(brief);
  EXPECT_THAT(brief.error().message, HasSubstr("a budget of 3.00 s cannot decide"));
  recipe.race.burst_seconds = 0.001;
  EXPECT_TRUE(check_budget(recipe));
  recipe.contenders.resize(1);
  recipe.budget = {.minutes = 0.001, .heats = 1};
  EXPECT_TRUE(check_budget(recipe)) << "one contender: nothing to decide";
}

class RaceTest : public ::testing::Test {
 protected:
  void SetUp() override { proc::clear_interrupt(); }
  void TearDown() override {
    proc::clear_interrupt();
    EXPECT_TRUE(testing::soon([] { return testing::workers_alive().empty(); }))
        << "a worker outlived its race";
  }
  TestFolder folder_;
};

// A trial of two bursts, with at least so many milliseconds a step.
void expect_healthy(const Trial& healthy, double least_ms) {
  EXPECT_FALSE(healthy.failure) << healthy.failure->reason;
  EXPECT_FALSE(healthy.invalid);
  ASSERT_EQ(healthy.bursts.size(), 2u) << "all its bursts";
  EXPECT_GE(healthy.bursts[0].steps, 1);
  EXPECT_LE(healthy.bursts[0].steps, 15);
  EXPECT_GE(std::exp(heat_value(healthy).value()), least_ms);
  EXPECT_EQ(healthy.step_ns.size(),
            static_cast<size_t>(healthy.bursts[0].steps + healthy.bursts[1].steps - 2));
  EXPECT_GT(healthy.first_step_ns, 0);
  EXPECT_GE(static_cast<double>(healthy.warmup_ns), 2 * least_ms * 1e6) << "two steps";
  EXPECT_EQ(healthy.versions.at("fake"), "1.0");
  EXPECT_EQ(healthy.effective.at("parameters"), "1");
  EXPECT_TRUE(healthy.last_loss);
}

TEST_F(RaceTest, AHeatSurvivesWhateverItsMembersDo) {
  // Steps: 1 first, 2 and 3 warm-up, 4 the first one of a burst.
  TestPlan plan =
      make_plan_of(folder_ / "run", {{"healthy", {{"step_ms", "2"}}},
                                     {"import", {{"crash_at", "import"}}},
                                     {"first", {{"crash_step", "1"}, {"crash_how", "exit"}}},
                                     {"step", {{"step_ms", "2"}, {"crash_step", "4"}, {"crash_how", "segv"}}},
                                     {"hang", {{"step_ms", "2"}, {"hang_step", "4"}, {"spin", "1"}}},
                                     {"nan", {{"step_ms", "2"}, {"nan_step", "4"}}},
                                     {"healthy too", {{"step_ms", "3"}}}});
  plan.lanes[4].entry.worker.stage_seconds = 2;
  std::vector<std::string> seen;
  int last_done = -1;
  const Watch watch = [&](const Happening& now) {
    seen.push_back(now.detail);
    EXPECT_GT(now.done, last_done);
    EXPECT_LT(now.done, now.total);
    last_done = now.done;
  };
  const auto trials = run_heat(plan, {0, 1, 2, 3, 4, 5, 6}, 3, {}, watch);
  ASSERT_EQ(trials.size(), 7u);
  for (size_t i = 0; i < 7; ++i) {
    EXPECT_EQ(trials[i].contender, plan.manifest.contenders[i].id) << "in the order of the members";
    EXPECT_EQ(trials[i].heat, 3);
    EXPECT_TRUE(trials[i].alone);
    EXPECT_NE(trials[i].started, "");
    EXPECT_GT(trials[i].start_ns, 0);
    EXPECT_GT(trials[i].heat_ns, trials[i].start_ns);
    EXPECT_GT(trials[i].peak_rss_bytes, 1 << 20) << trials[i].contender;
  }
  for (const size_t i : {0u, 6u}) expect_healthy(trials[i], i == 0 ? 2 : 3);
  const auto failed = [&](size_t i, const char* stage, const char* reason) {
    ASSERT_TRUE(trials[i].failure) << trials[i].contender;
    EXPECT_EQ(name(trials[i].failure->stage), stage);
    EXPECT_THAT(trials[i].failure->reason, HasSubstr(reason));
    EXPECT_EQ(heat_value(trials[i]), std::nullopt);
  };
  failed(1, "import", "asked to crash");
  failed(2, "first step", "exit code 1");
  failed(3, "run", "SIGSEGV");
  failed(4, "run", "timed out after 2 s in stage run");
  EXPECT_EQ(trials[5].failure, std::nullopt);
  EXPECT_EQ(trials[5].invalid, "the loss became nan");
  EXPECT_EQ(heat_value(trials[5]), std::nullopt);
  EXPECT_THAT(seen, ::testing::Contains("starting healthy"));
  EXPECT_THAT(seen, ::testing::Contains("timing healthy too"));
  EXPECT_THAT(seen, ::testing::Not(::testing::Contains("timing import")));
  EXPECT_TRUE(testing::workers_alive().empty()) << "at the end of the heat already";
  EXPECT_TRUE(fs::is_empty(new_shared_file(folder_.path()).parent_path()))
      << "at the end of the heat already";
}

// The machine sleeps during the second of three rounds.
TEST_F(RaceTest, ADisturbedRoundIsRecordedAndCounts) {
  TestPlan plan = make_plan_of(folder_ / "run", {{"a", {{"step_ms", "2"}}}, {"b", {{"step_ms", "3"}}}});
  plan.recipe.race.bursts = 3;
  int looks = 0;
  plan.sensed.host = [&] {
    sample::HostSnapshot snapshot = quiet();
    if (++looks == 4) snapshot.uptime_s = *snapshot.uptime_s + 60;
    return snapshot;
  };
  const auto trials = run_heat(plan, {0, 1}, 1, {}, kNobody);
  EXPECT_EQ(looks, 6) << "before and after each round, and none is run again";
  for (const Trial& trial : trials) {
    EXPECT_EQ(trial.bursts.size(), 3u);
    EXPECT_TRUE(trial.void_bursts.empty());
    ASSERT_EQ(trial.rounds.size(), 3u);
    EXPECT_THAT(trial.rounds[1].busy, HasSubstr("suspended for 60"));
    for (const size_t i : {0u, 2u}) {
      EXPECT_EQ(trial.rounds[i].busy, "");
      EXPECT_EQ(trial.rounds[i].seen.at("memory pressure"), 0);
      EXPECT_EQ(trial.rounds[i].absent.at("load"), "not read");
    }
    EXPECT_TRUE(heat_value(trial));
    EXPECT_GT(trial.bursts[0].awake_ns, trial.bursts[0].ns);
    EXPECT_GT(trial.bursts[1].woken_ns, trial.bursts[0].woken_ns + trial.bursts[0].awake_ns);
  }
  EXPECT_EQ(trials[0].rounds, trials[1].rounds);
}

// Of a step that takes 0.2 s and 16 rounds of 10 ms: it takes part in few of them, and is timed.
TEST_F(RaceTest, WhoseStepIsLongTakesPartInFewRounds) {
  TestPlan plan =
      make_plan_of(folder_ / "run", {{"long", {{"step_ms", "200"}}}, {"light", {{"step_ms", "2"}}}});
  plan.recipe.race.bursts = 16;
  plan.recipe.race.burst_seconds = 0.01;
  const auto trials = run_heat(plan, {0, 1}, 1, {}, kNobody);
  EXPECT_EQ(trials[0].bursts.size(), 2u);
  EXPECT_EQ(trials[0].rounds.size(), 2u);
  EXPECT_EQ(trials[1].bursts.size(), 16u);
  EXPECT_EQ(trials[0].rounds[1], trials[1].rounds[8]) << "the round that it took part in";
  EXPECT_TRUE(heat_value(trials[0]));
}

// Steps: 1 first, 2 and 3 warm-up, 4 and perhaps 5 lead-in, then up to 10 of the first burst.
TEST_F(RaceTest, AClockThatJumpsVoidsTheRoundForBothArms) {
  TestPlan plan =
      make_plan_of(folder_ / "run", {{"jumps", {{"step_ms", "20"}, {"jump_step", "7"}, {"jump_ms", "50000"}}},
                                     {"steady", {{"step_ms", "20"}}}});
  plan.recipe.race.burst_seconds = 0.2;
  const auto trials = run_heat(plan, {0, 1}, 1, {}, kNobody);
  for (const Trial& trial : trials) {
    EXPECT_FALSE(trial.failure) << trial.failure->reason;
    EXPECT_EQ(trial.bursts.size(), 1u);
    ASSERT_EQ(trial.void_bursts.size(), 1u);
    ASSERT_EQ(trial.rounds.size(), 2u);
    EXPECT_THAT(trial.rounds[0].busy, HasSubstr("the clock jumped: a burst reported"));
    EXPECT_LT(std::exp(heat_value(trial).value()), 1000) << "50 seconds are not in it";
  }
}

TEST_F(RaceTest, AWarmUpGoesOnUntilItTellsHowLongALightStepTakes) {
  TestPlan plan =
      make_plan_of(folder_ / "run", {{"light", {{"step_ms", "1"}}}, {"heavy", {{"step_ms", "60"}}}});
  plan.recipe.race.burst_seconds = 0.2;
  std::vector<Trial> trials;
  // Beside other work a light step may look heavy; then again.
  EXPECT_TRUE(testing::soon([&] {
    trials = run_heat(plan, {0, 1}, 1, {}, kNobody);
    return trials[0].warmup_step_ns.size() >= 15;
  })) << "after the one step asked for 16 more";
  ASSERT_FALSE(trials[0].failure || trials[1].failure);
  EXPECT_LE(trials[0].warmup_step_ns.size(), 1u + 16 + 256);
  EXPECT_LE(trials[1].warmup_step_ns.size(), 2u) << "what was asked for";
}

TEST_F(RaceTest, AWorkerThatDiesInTheMiddleVoidsThePair) {
  TestPlan plan =
      make_plan_of(folder_ / "run", {{"dies", {{"step_ms", "2"}, {"crash_step", "6"}, {"crash_how", "kill"}}},
                                     {"lives", {{"step_ms", "2"}}}});
  const auto trials = run_heat(plan, {0, 1}, 1, {}, kNobody);
  ASSERT_TRUE(trials[0].failure);
  EXPECT_THAT(trials[0].failure->reason, HasSubstr("SIGKILL"));
  EXPECT_EQ(heat_value(trials[0]), std::nullopt);
  EXPECT_TRUE(heat_value(trials[1]));
  const auto table = tabulate(trials, {"dies", "lives"}).value();
  EXPECT_EQ(table.met(0, 1), 0u) << "no half pair";
  EXPECT_EQ(table.heats(0), 0u);
}

TEST_F(RaceTest, AnAnswerBeforeTheWorkIsDoneBreaksARule) {
  // Beside others a burst must leave more than 100 ms undone, and a single step less than that.
  TestPlan plan = make_plan_of(folder_ / "run", {{"honest", {{"step_ms", "10"}, {"busy", "1"}}},
                                                 {"late", {{"step_ms", "30"}, {"barrier", "late"}}},
                                                 {"none", {{"step_ms", "30"}, {"barrier", "none"}}},
                                                 {"spins", {{"step_ms", "10"}, {"pool_spin_ms", "60"}}}});
  plan.recipe.race.burst_seconds = 0.3;
  plan.sensed.host = [] { return quiet(5'000'000'000); };
  std::vector<Trial> trials;
  // The host that this race is told of is idle. Where the real one is not, an honest worker that waited for a
  // processor looks late; and where the machine halts during a single step, that step is as late as a burst, and
  // nobody is accused. Then again.
  const auto honest = [&](size_t i) {
    double waited_s = 0;
    for (const Burst& burst : trials[i].bursts) {
      const auto waited = burst.used.find("wait_s");  // left out of a burst in which a thread ended
      waited_s = std::max(waited_s, waited == burst.used.end() ? 1 : waited->second);
    }
    return !trials[i].invalid || waited_s > 0.02;
  };
  EXPECT_TRUE(testing::soon([&] {
    trials = run_heat(plan, {0, 1, 2, 3}, 1, {}, kNobody);
    return trials[1].invalid && trials[2].invalid && honest(0) && honest(3);
  })) << "threads that spin for a while are no outstanding work: "
      << trials[3].invalid.value_or("");
  for (const size_t i : {1u, 2u}) {
    ASSERT_TRUE(trials[i].invalid) << trials[i].contender;
    EXPECT_THAT(*trials[i].invalid, HasSubstr("answers before its work is done in "));
    EXPECT_EQ(heat_value(trials[i]), std::nullopt);
    EXPECT_LT(trials[i].bursts[0].steps, 50) << "bursts are sized by the work, not by the claim";
  }
}

TEST_F(RaceTest, WhoeverDriftsInEveryHeatIsOutAndNotRanked) {
  TestPlan plan = make_plan_of(folder_ / "run", {{"steady", {{"step_ms", "3"}}},
                                                 {"drifts", {{"step_ms", "2"}, {"drift", "0.02"}}},
                                                 {"also", {{"step_ms", "3"}}}});
  plan.recipe.race.bursts = 4;
  plan.recipe.race.burst_seconds = 0.06;
  plan.recipe.margin = 0.1;
  // Steps of milliseconds, on a machine that others use: noise may hide a drift, then try again.
  std::vector<Trial> trials;
  ASSERT_TRUE(testing::soon([&] {
    trials.clear();
    for (int heat = 1; heat <= 4; ++heat) {
      for (Trial& trial : run_heat(plan, {0, 1, 2}, heat, {}, kNobody)) trials.push_back(std::move(trial));
    }
    const auto unsteady = not_steady(trials, 0.1);
    return unsteady.size() == 1 && unsteady.contains("drifts");
  }));
  const auto unsteady = not_steady(trials, 0.1);
  EXPECT_GT(unsteady.at("drifts").drift, 0.3);
  EXPECT_EQ(out_of_race(trials, 0.1), std::set<std::string>{"drifts"});
  EXPECT_EQ(tabulate(trials, {"steady", "drifts"}, 0.1)->heats(1), 0u);
}

TEST_F(RaceTest, WhatAWorkerRunsUnderIsAnEffectiveSetting) {
  TestPlan plan = make_plan_of(folder_ / "run", {{"a", {{"step_ms", "2"}}}, {"b", {{"step_ms", "2"}}}});
  plan.recipe.race.cooldown_seconds = 0.001;
  const Machine machine = this_machine();
  ASSERT_TRUE(apply({.allocator = "tuned", .threads = 1}, machine, plan.lanes[1].entry.worker));
  const auto trials = run_heat(plan, {0, 1}, 1, {}, kNobody);
  EXPECT_EQ(trials[0].effective.at("allocator"), "default");
  EXPECT_EQ(trials[1].effective.at("allocator"), "tuned");
  EXPECT_EQ(trials[1].effective.at("cpus"), std::to_string(machine.cpus.front()));
  EXPECT_EQ(trials[1].effective.at("cooldown"), "0.001 s");
  EXPECT_EQ(trials[1].bursts.size(), 2u);
}

// The contenders of every heat, a string each, in the order of the records; confirmations in brackets.
std::vector<std::string> heats_of(const std::vector<Trial>& trials) {
  std::vector<std::string> heats;
  for (const Trial& trial : trials) {
    heats.resize(static_cast<size_t>(trial.heat));
    heats.back() += trial.confirms ? "(" + trial.contender + ")" : trial.contender;
  }
  return heats;
}

TEST_F(RaceTest, EndsWhenEverythingIsDecidedAndTheWinnerWasMeasuredAgain) {
  TestPlan plan = make_plan_of(folder_ / "run", {{"s", {{"step_ms", "15"}}}, {"f", {{"step_ms", "3"}}}});
  plan.recipe.race.noise_ceiling = 0;  // without a promise: by intervals alone
  plan.recipe.race.confirm_heats = 2;
  std::vector<Happening> seen;
  ASSERT_TRUE(race(plan, all_pass(plan), {}, [&](const Happening& h) { seen.push_back(h); }));
  const auto trials = plan.directory.read<Trial>().value();
  const std::vector<std::string> heats = heats_of(trials);
  ASSERT_GE(heats.size(), 2u + static_cast<size_t>(least_heats(0.05, 2)));
  EXPECT_LT(static_cast<int64_t>(heats.size()), plan.recipe.budget.heats) << "a gap of five times is obvious";
  // One that confirms may show noise of another kind, after which the decision takes further heats.
  const auto confirming = std::ranges::count(heats, "(f)(s)");
  EXPECT_GE(confirming, 2);
  EXPECT_EQ(heats.back(), "(f)(s)");
  for (const std::string& heat : heats) EXPECT_TRUE(heat.size() == 2 || heat == "(f)(s)") << heat;
  const auto table = tabulate(trials, {"s", "f"}).value();
  EXPECT_EQ(stats::race_state(table, racing_options(plan.recipe, trials, {"s", "f"}).ranking).winner, 1u);
  EXPECT_EQ(table.met(0, 1), heats.size() - static_cast<size_t>(confirming))
      << "what confirms is no evidence";
  EXPECT_EQ(seen.back().stage, "confirmation");
  EXPECT_EQ(seen.back().leader, "f");
  EXPECT_GE(seen.back().leader_ms, 3);
  EXPECT_LT(seen.back().leader_ms, 15);
  EXPECT_EQ(seen.back().survivors, 1);
  EXPECT_EQ(seen.back().heat, static_cast<int>(heats.size()));
  std::erase_if(seen, [](const Happening& h) { return !h.standing; });
  ASSERT_EQ(seen.size(), heats.size()) << "one standing after each heat";
  const bool first_is_fast = heat_value(trials[0]).value() < heat_value(trials[1]).value();
  EXPECT_EQ(seen.front().standing->next, trials[first_is_fast ? 1 : 0].contender)
      << "by one heat, right or not";
  EXPECT_FALSE(seen.front().standing->slower) << "one heat";
  EXPECT_GT(seen[1].standing->slower.value(), 0.5);
  EXPECT_TRUE(seen[1].standing->to_go_s);
  EXPECT_TRUE(seen.back().standing->decided);
  // Going on with a decided race does nothing; a kill before the last confirmation leaves one to do.
  ASSERT_TRUE(race(plan, all_pass(plan), trials, kNobody));
  EXPECT_EQ(plan.directory.read<Trial>()->size(), trials.size());
  ASSERT_TRUE(race(plan, all_pass(plan), {trials.begin(), trials.end() - 2}, kNobody));
  const auto after = plan.directory.read<Trial>().value();
  ASSERT_GE(after.size(), trials.size() + 2);
  EXPECT_TRUE(after[trials.size()].confirms);
}

TEST_F(RaceTest, AFirstHeatOfThoseThatAreProvenCountsLikeTheOthers) {
  TestPlan plan =
      make_plan_of(folder_ / "run",
                   {{"late", {{"step_ms", "15"}}}, {"f", {{"step_ms", "2"}}}, {"s", {{"step_ms", "15"}}}});
  plan.recipe.race.noise_ceiling = 0;
  plan.recipe.race.confirm_heats = 0;
  const std::vector<Parity> all = all_pass(plan);
  ASSERT_TRUE(first_heat(plan, {all[1]}, kNobody));
  EXPECT_TRUE(plan.directory.read<Trial>()->empty()) << "one contender is no race";
  std::vector<Happening> seen;
  ASSERT_TRUE(first_heat(plan, {all[1], all[2]}, [&](const Happening& h) { seen.push_back(h); }));
  const auto first = plan.directory.read<Trial>().value();
  ASSERT_EQ(first.size(), 2u);
  for (const Trial& trial : first) EXPECT_EQ(trial.heat, 1);
  ASSERT_FALSE(seen.empty());
  EXPECT_EQ(seen.back().failed, 0) << "a contender without a proof has not failed";
  ASSERT_TRUE(race(plan, all, first, kNobody));
  const auto trials = plan.directory.read<Trial>().value();
  const std::vector<std::string> heats = heats_of(trials);
  ASSERT_GE(heats.size(), 4u);
  EXPECT_EQ(heats[0], "fs");
  EXPECT_EQ(heats[1], "flates") << "the next number, and all that are not decided";
  const auto table = tabulate(trials, {"late", "f", "s"}).value();
  EXPECT_EQ(table.met(1, 2), table.heats(2)) << "the first heat is evidence";
  EXPECT_GT(table.met(1, 2), table.met(0, 2));
}

TEST_F(RaceTest, APromisedCeilingEndsAnObviousGapAfterTwoHeats) {
  // Beside other work a heat may be added, to know whether the host was quiet; then again.
  EXPECT_TRUE(testing::soon([&] {
    fs::remove_all(folder_ / "run");
    TestPlan plan = make_plan_of(folder_ / "run", {{"s", {{"step_ms", "30"}}}, {"f", {{"step_ms", "2"}}}});
    plan.recipe.race.confirm_heats = 0;
    plan.recipe.race.noise_ceiling = 0.15;
    return race(plan, all_pass(plan), {}, kNobody) && plan.directory.read<Trial>()->size() == 4;
  }));
}

TEST_F(RaceTest, HeatsAreAddedUntilItIsKnownWhetherTheHostWasQuiet) {
  const std::vector<std::pair<std::string, Options>> far_apart{{"s", {{"step_ms", "30"}}},
                                                               {"f", {{"step_ms", "2"}}}};
  TestPlan plan = make_plan_of(folder_ / "run", far_apart);
  plan.recipe.race.confirm_heats = 0;
  plan.recipe.race.noise_ceiling = 0.15;
  plan.sensed.host = [] { return quiet(120'000'000); };
  ASSERT_TRUE(race(plan, all_pass(plan), {}, kNobody));
  const auto trials = plan.directory.read<Trial>().value();
  // Two heats decide on a quiet machine, and the host is known after four. Beside other work deciding may take more.
  EXPECT_GE(trials.size(), 8u) << "heats of less than a quarter of a second are judged once each";
  EXPECT_EQ(tally(trials).judged, static_cast<int64_t>(trials.size() / 2));
  for (const Trial& trial : trials) {
    ASSERT_EQ(trial.rounds.size(), 2u);
    EXPECT_EQ(trial.rounds[0].stretch, trial.rounds[1].stretch);
    EXPECT_TRUE(was_judged(trial.rounds[0]));
  }
  fs::remove_all(folder_ / "run");
  plan = make_plan_of(folder_ / "run", far_apart);
  plan.recipe.race.confirm_heats = 0;
  plan.sensed.host = [] {
    sample::HostSnapshot snapshot = quiet();
    snapshot.busy_s = snapshot.steal_s = sample::Reading::absent("there is no /proc/stat");
    return snapshot;
  };
  ASSERT_TRUE(race(plan, all_pass(plan), {}, kNobody));
  const auto blind = plan.directory.read<Trial>().value();
  EXPECT_THAT(failed_in(blind), IsEmpty()) << "late as it may be, perhaps others had the processors";
  EXPECT_GE(blind.size(), 2 * static_cast<size_t>(least_heats(0.05, 2)));
  EXPECT_LE(blind.size(), 2 * static_cast<size_t>(least_heats(0.05, 2)) + 12) << "no heat more would tell";
  EXPECT_TRUE(tally(blind).refusal(plan.recipe.race.host));
}

// A neighbour takes four fifths of both processors.
TEST_F(RaceTest, ABusyHostIsSeenHoweverShortTheRace) {
  TestPlan plan = make_plan_of(folder_ / "run", {{"s", {{"step_ms", "5"}}}, {"f", {{"step_ms", "1"}}}});
  plan.recipe.race.burst_seconds = 0.005;
  plan.recipe.race.host.max_others = 0.1;
  ASSERT_TRUE(race(plan, all_pass(plan), {}, kNobody));
  const HostTally seen = tally(plan.directory.read<Trial>().value());
  EXPECT_GE(seen.judged, HostTally::kLeastJudged);
  EXPECT_THAT(seen.refusal(plan.recipe.race.host).value_or(""), HasSubstr("busy throughout"));
}

TEST_F(RaceTest, TheEliminatedAndTheFailedLeaveAndTheBudgetEndsIt) {
  // One disturbed heat among the first costs several that are not, until "slow" is surely slower all the same.
  const int64_t least = least_heats(0.2, 4), budget = least + 8;
  std::vector<Trial> trials;
  std::map<std::string, int64_t> heats;
  int last = 0;
  // One twin may be called slower with a probability of alpha, which is large to need few heats; then again.
  for (int attempt = 0; attempt < 5 && last < budget; ++attempt) {
    TestPlan plan = make_plan_of(folder_ / fmt::format("run{}", attempt),
                                 {{"twin", {{"step_ms", "3"}}},
                                  {"slow", {{"step_ms", "30"}}},
                                  {"crash", {{"step_ms", "3"}, {"crash_step", "5"}, {"crash_how", "exit"}}},
                                  {"brother", {{"step_ms", "3"}}}});
    plan.recipe.alpha = 0.2;
    plan.recipe.margin = 1e-6;  // twins are never "the same"
    plan.recipe.race.noise_ceiling = 0;
    plan.recipe.budget.heats = budget;
    ASSERT_TRUE(race(plan, all_pass(plan), {}, kNobody));
    trials = plan.directory.read<Trial>().value();
    heats.clear();
    for (const Trial& trial : trials) {
      ++heats[trial.contender];
      last = trial.heat;
    }
  }
  EXPECT_EQ(heats["crash"], 1) << "failed in the first heat";
  EXPECT_GE(heats["slow"], least);
  EXPECT_LT(heats["slow"], budget) << "out once it is surely slower";
  EXPECT_EQ(last, budget);
  EXPECT_EQ(heats["twin"], last);
  EXPECT_EQ(heats["brother"], last);
  const RaceCost cost = race_cost(trials);
  EXPECT_GT(cost.heats, 0);
  EXPECT_LE(cost.heats, last) << "disturbed heats are no evidence";
  EXPECT_LT(cost.raced_s, cost.uniform_s);
}

// The first three steps of this one take more than a second by its own clock, later ones 60 ms.
const Options kHopeless = {{"step_ms", "60"}, {"jump_step", "1-3"}, {"jump_ms", "1200"}};

// Fast, slow by ten times, and far slower with steps that cost more than a second.
TEST_F(RaceTest, ALookAtItsFirstStepsEndsTheHeatOfWhoeverIsFarTooSlow) {
  TestPlan plan =
      make_plan_of(folder_ / "run",
                   {{"fast", {{"step_ms", "2"}}}, {"slow", {{"step_ms", "20"}}}, {"hopeless", kHopeless}});
  const auto trials = run_heat(plan, {0, 1, 2}, 1, {}, kNobody);  // a block is taken for a second
  EXPECT_EQ(trials[0].dropped, "");
  EXPECT_EQ(trials[1].dropped, "");
  EXPECT_EQ(trials[1].bursts.size(), 2u);
  EXPECT_THAT(trials[2].dropped, HasSubstr("the fastest of its first 3 steps takes 1."));
  EXPECT_GT(trials[2].behind_leader, 20);
  EXPECT_EQ(trials[2].look_disturbed, "");
  EXPECT_EQ(trials[2].warmup_step_ns.size() + trials[2].bursts.size(), 0u) << "single steps leave no marks";
  EXPECT_THAT(trials[2].bursts, IsEmpty());
  EXPECT_FALSE(trials[2].failure);
  EXPECT_EQ(heat_value(trials[2]), std::nullopt);
  EXPECT_THAT(out_of_race(trials, 0.03), IsEmpty()) << "one process may have stood still";
  // Whoever was timed before is timed again; four times the leader's block is the most that it gets.
  const auto known = run_heat(plan, {2}, 2, {.timed = {2}}, kNobody);
  EXPECT_EQ(known[0].dropped, "");
  ASSERT_EQ(known[0].bursts.size(), 2u);
  EXPECT_EQ(known[0].bursts[0].steps, 1);
}

TEST_F(RaceTest, WhoeverLooksHopelessIsLookedAtAgainInAFreshProcess) {
  TestPlan plan =
      make_plan_of(folder_ / "run",
                   {{"fast", {{"step_ms", "2"}}}, {"slow", {{"step_ms", "20"}}}, {"hopeless", kHopeless}});
  plan.recipe.race.confirm_heats = 0;
  ASSERT_TRUE(race(plan, all_pass(plan), {}, kNobody));
  const auto trials = plan.directory.read<Trial>().value();
  EXPECT_EQ(std::count_if(trials.begin(), trials.end(), [](const Trial& t) { return !t.dropped.empty(); }),
            2);
  EXPECT_EQ(out_of_race(trials, 0.03), std::set<std::string>{"hopeless"});
  EXPECT_GT(hopeless(trials).at("hopeless"), 20);
}

TEST_F(RaceTest, ALookBesideOtherWorkIsNoneAndAfterFourItIsTimed) {
  TestPlan plan = make_plan_of(folder_ / "run", {{"fast", {{"step_ms", "2"}}}, {"hopeless", kHopeless}});
  plan.recipe.race.confirm_heats = 0;
  plan.recipe.budget.heats = 5;
  plan.recipe.race.host.max_others = 0.1;
  std::vector<Trial> before;  // three looks
  for (int heat = 1; heat <= 3; ++heat) {
    before.push_back(sound("fast", heat, 2));
    before.push_back({.contender = "hopeless",
                      .heat = heat,
                      .dropped = "too slow",
                      .behind_leader = 500,
                      .look_disturbed = "other processes used 40%"});
  }
  ASSERT_TRUE(race(plan, all_pass(plan), before, kNobody));
  std::vector<Trial> trials = plan.directory.read<Trial>().value();
  ASSERT_EQ(trials.size(), 4u);
  EXPECT_THAT(trials[1].dropped, HasSubstr("the fastest of its first 3 steps takes 1."));
  EXPECT_THAT(trials[1].look_disturbed, HasSubstr("other processes used "));
  EXPECT_TRUE(heat_value(trials[2]) && heat_value(trials[3]));
  trials.insert(trials.begin(), before.begin(), before.end());
  EXPECT_THAT(hopeless(trials), IsEmpty());
}

TEST_F(RaceTest, AStallAtItsFirstStepsCostsNobodyItsPlace) {
  std::vector<Trial> trials = {sound("a", 1, 4), sound("b", 2, 5), sound("a", 2, 4)};
  trials.push_back({.contender = "b", .heat = 1, .dropped = "too slow", .behind_leader = 300});
  trials.push_back({.contender = "b", .heat = 3, .dropped = "too slow", .behind_leader = 300});
  EXPECT_THAT(hopeless(trials), IsEmpty()) << "it was timed once";
  EXPECT_EQ(tabulate(trials, {"a", "b"})->met(0, 1), 1u);
}

TEST_F(RaceTest, AnEvenHeatStartsInTheReverseOrderOfTheOneBefore) {
  TestPlan plan = make_plan_of(folder_ / "run", {{"a", {}}, {"b", {}}, {"c", {}}, {"d", {}}});
  for (Lane& lane : plan.lanes)
    lane.entry.worker.python = "/no/such/python";  // the order of attempts is enough
  const auto order = [&](int heat, const std::vector<size_t>& members) {
    std::string names;
    const Watch watch = [&](const Happening& now) {
      if (now.detail.starts_with("starting ")) names += now.detail.back();
    };
    run_heat(plan, members, heat, {}, watch);
    return names;
  };
  std::set<std::string> seen;
  for (const int heat : {1, 3, 5}) {
    const std::string first = order(heat, {0, 1, 2, 3});
    EXPECT_EQ(order(heat + 1, {0, 1, 2, 3}), std::string(first.rbegin(), first.rend()));
    seen.insert(first);
  }
  EXPECT_GT(seen.size(), 1u) << "drawn anew for every two heats";
  const bool b_first = order(1, {0, 1, 2, 3}).find('b') < order(1, {0, 1, 2, 3}).find('c');
  EXPECT_EQ(order(1, {2, 1}), b_first ? "bc" : "cb") << "whoever else runs";
}

TEST_F(RaceTest, ALoneContenderIsTimedThoughNothingIsToBeDecided) {
  TestPlan plan = make_plan_of(folder_ / "run", {{"alone", {{"step_ms", "2"}}}, {"differs", {}}});
  std::vector<Parity> parities = all_pass(plan);
  parities[1].diverges_at = "loss";
  ASSERT_TRUE(race(plan, parities, {}, kNobody));
  const auto trials = plan.directory.read<Trial>().value();
  ASSERT_EQ(trials.size(), 3u);
  for (const Trial& trial : trials) {
    EXPECT_EQ(trial.contender, "alone");
    EXPECT_TRUE(heat_value(trial));
  }
}

TEST_F(RaceTest, APeakWhoseMeasurementWasInterruptedBoundsNobody) {
  TestPlan plan = make_plan_of(folder_ / "run", {{"a", {{"step_ms", "2"}}}, {"b", {{"step_ms", "2"}}}});
  plan.recipe.workload = zoo::build("mlp_small").value();
  plan.recipe.budget.heats = 1;
  proc::install_interrupt_handlers();
  plan.sensed.measure_peak = [](const std::vector<int>&) {
    ::raise(SIGINT);
    return roofline::Limits{.peaks = {{.dtype = "f32", .isa = "scalar", .ops = {1e6, 1e6}}}};
  };
  ASSERT_TRUE(race(plan, all_pass(plan), {}, kNobody));
  EXPECT_FALSE(run_peak(plan.directory.path(), plan.manifest.host));
  proc::clear_interrupt();
  plan.sensed.measure_peak = [](const std::vector<int>&) { return roofline::Limits{}; };
  ASSERT_TRUE(race(plan, all_pass(plan), {}, kNobody));
  const auto trials = plan.directory.read<Trial>().value();
  ASSERT_FALSE(trials.empty());
  for (const Trial& trial : trials) EXPECT_FALSE(trial.invalid) << trial.invalid.value_or("");
}

TEST_F(RaceTest, ARunWithoutAMachineReportMeasuresThePeakItselfAndHoldsEverybodyAgainstIt) {
  TestPlan plan = make_plan_of(folder_ / "run", {{"a", {{"step_ms", "2"}}}, {"b", {{"step_ms", "2"}}}});
  plan.recipe.workload = zoo::build("mlp_small").value();
  plan.recipe.budget.heats = 1;
  int measured = 0;
  double peak = 1e12;
  plan.sensed.measure_peak = [&](const std::vector<int>& cpus) {
    ++measured;
    EXPECT_FALSE(cpus.empty());
    return roofline::Limits{.peaks = {{.dtype = "f32", .isa = "avx2", .ops = {peak, peak}}}};
  };
  ASSERT_TRUE(race(plan, all_pass(plan), {}, kNobody));
  EXPECT_FALSE(plan.directory.read<Trial>()->front().invalid);
  EXPECT_EQ(run_peak(plan.directory.path(), plan.manifest.host)->limits.peak("f32")->ops.one, 1e12);
  ASSERT_TRUE(race(plan, all_pass(plan), {}, kNobody));
  EXPECT_EQ(measured, 1) << "a run that goes on keeps its own";
  fs::remove(plan.directory.path() / "peak.json");
  peak = 1e6;  // a step of mlp_small is some 20 million operations
  ASSERT_TRUE(race(plan, all_pass(plan), {}, kNobody));
  EXPECT_EQ(measured, 2);
  EXPECT_THAT(plan.directory.read<Trial>()->back().invalid.value_or(""),
              HasSubstr("FLOP/s <= measured peak"));
}

TEST_F(RaceTest, AHeatHasTheRoundsThatItsTimeAllows) {
  const std::map<std::string, std::string> step = {{"step_ms", "100"}};
  TestPlan plan = make_plan_of(folder_ / "run", {{"a", step}, {"b", step}, {"c", step}});
  plan.recipe.race.bursts = 40;
  plan.recipe.race.burst_seconds = 0.1;
  // A member's burst and lead-in take 0.2 s a round; on a slow machine one of the three leaves.
  const auto some = run_heat(plan, {0, 1, 2}, 1, {.left_s = 5}, kNobody);
  EXPECT_GE(some.size(), 2u);
  for (const Trial& trial : some) {
    ASSERT_FALSE(trial.failure) << trial.failure->reason;
    EXPECT_GE(trial.bursts.size(), 3u);
    EXPECT_LE(0.2 * static_cast<double>(trial.bursts.size() * some.size()), 5);
  }
  const auto late = run_heat(plan, {0, 1, 2}, 2, {.left_s = 0}, kNobody);
  ASSERT_EQ(late.size(), 2u) << "two are started, and can be compared; for the third no time was left";
  for (const Trial& trial : late) EXPECT_EQ(trial.bursts.size(), 3u) << trial.contender;
}

TEST_F(RaceTest, TimeIsABudgetToo) {
  TestPlan plan = make_plan_of(folder_ / "run", {{"a", {{"step_ms", "3"}}}, {"b", {{"step_ms", "3"}}}});
  plan.recipe.margin = 1e-6;
  plan.recipe.budget.minutes = 1.0 / 600;  // 0.1 s: less than a heat
  ASSERT_TRUE(race(plan, all_pass(plan), {}, kNobody));
  EXPECT_EQ(plan.directory.read<Trial>()->size(), 2u) << "the heat under way is finished, and it is the last";
}

TEST_F(RaceTest, AMemberThatCouldNotEndInTimeIsNotPrepared) {
  const std::map<std::string, std::string> slow = {{"step_ms", "100"}};
  const TestPlan plan = make_plan_of(folder_ / "run", {{"a", slow}, {"b", slow}, {"c", slow}});
  // Two rounds of two members, of three steps each, take 1.2 s.
  const auto trials = run_heat(plan, {0, 1, 2}, 1, {.left_s = 1.5}, kNobody);
  ASSERT_EQ(trials.size(), 2u);
  for (const Trial& trial : trials) EXPECT_EQ(trial.bursts.size(), 2u) << trial.contender;
}

TEST(ExpectedHeat, IsTheLastOneForItsShareOfMembers) {
  const auto trial = [](const char* id, int heat, double own_s, double heat_s) {
    return Trial{.contender = id,
                 .heat = heat,
                 .heat_ns = std::llround(heat_s * 1e9),
                 .warmup_ns = std::llround(own_s * 1e9)};
  };
  const std::vector<Trial> trials = {trial("a", 1, 9, 20), trial("c", 1, 6, 20), trial("a", 2, 1, 8),
                                     trial("b", 2, 3, 8)};
  EXPECT_DOUBLE_EQ(expected_heat_s(trials, {"a", "b"}), 8);
  EXPECT_DOUBLE_EQ(expected_heat_s(trials, {"a"}), 2);
  EXPECT_DOUBLE_EQ(expected_heat_s(trials, {"c", "b"}), 18) << "as in its latest heat";
  EXPECT_DOUBLE_EQ(expected_heat_s(trials, {"a", "new"}), 6) << "as the mean";
  EXPECT_EQ(expected_heat_s({}, {"a", "b"}), 0);
}

TEST_F(RaceTest, AHeatThatDoesNotFitIsForThoseWithoutOneAndElseNotBegun) {
  TestPlan plan = make_plan_of(
      folder_ / "run", {{"a", {{"step_ms", "3"}}}, {"b", {{"step_ms", "3"}}}, {"c", {{"step_ms", "3"}}}});
  plan.recipe.margin = 1e-6;
  plan.recipe.budget = {.minutes = 10, .heats = 2};
  std::vector<Trial> trials;
  ASSERT_TRUE(testing::soon([&] {
    trials = run_heat(plan, {0, 1}, 1, {}, kNobody);
    return heat_value(trials[0]) && heat_value(trials[1]);
  }));
  const auto put = [&](double heat_s) {
    for (Trial& trial : trials) trial.heat_ns = std::llround(heat_s * 1e9), trial.warmup_ns = 1'000'000'000;
  };
  std::vector<std::string> remarks;
  const Watch watch = [&](const Happening& now) {
    if (!now.remark.empty()) remarks.push_back(now.remark);
  };
  put(480);  // 240 s each, and 10 minutes are left
  ASSERT_TRUE(race(plan, all_pass(plan), trials, watch));
  std::set<std::string> raced;
  const auto fresh = plan.directory.read<Trial>().value();
  for (const Trial& trial : fresh) raced.insert(trial.contender);
  EXPECT_EQ(raced.size(), 2u);
  EXPECT_TRUE(raced.contains("c")) << "it had no heat yet";
  EXPECT_TRUE(remarks.empty());
  put(1000);
  ASSERT_TRUE(race(plan, all_pass(plan), trials, watch));
  EXPECT_EQ(plan.directory.read<Trial>()->size(), 2u);
  ASSERT_EQ(remarks.size(), 1u);
  EXPECT_THAT(remarks[0], HasSubstr("no further heat: one takes about 25 min"));
}

TEST_F(RaceTest, TheBudgetCountsFromTheStartOfTheCommand) {
  TestPlan plan = make_plan_of(folder_ / "run", {{"a", {{"step_ms", "3"}}}, {"b", {{"step_ms", "3"}}}});
  plan.recipe.margin = 1e-6;
  plan.recipe.budget.minutes = 10;
  EXPECT_NEAR(plan.time().left_s(), 600, 60);
  plan.begin_ns -= 3600 * kSecond;
  EXPECT_EQ(plan.time().left_s(), 0);
  ASSERT_TRUE(race(plan, all_pass(plan), {}, kNobody));
  EXPECT_EQ(plan.directory.read<Trial>()->size(), 2u) << "one heat in any case";
  plan.recipe.budget.minutes = recipe::Budget::kNoLimit;
  EXPECT_EQ(plan.time().left_s(), recipe::Budget::kNoLimit);
}

TEST_F(RaceTest, UntilDecidedItGivesUpWhereThatIsPlannedToTakeTooLong) {
  TestPlan plan = make_plan_of(folder_ / "run", {{"a", {{"step_ms", "3"}}}, {"b", {{"step_ms", "3"}}}});
  plan.recipe.margin = 1e-6;
  plan.recipe.alpha = 1e-9;  // of two twins one is called slower with this probability: never by chance
  plan.recipe.budget = {.minutes = 1, .heats = std::numeric_limits<int64_t>::max(), .until_decided = true};
  ASSERT_TRUE(race(plan, all_pass(plan), {}, kNobody));
  const auto trials = plan.directory.read<Trial>().value();
  EXPECT_GE(heats_of(trials).size(), 6u) << "fewer heats do not tell";
  EXPECT_LT(heats_of(trials).size(), 60u) << "a minute of heats";
  EXPECT_GT(plan.time().left_s(), 15);
  const auto open = outlook(plan.recipe, trials, {"a", "b"}, plan.recipe.alpha);
  ASSERT_TRUE(open);
  EXPECT_TRUE(open->rest->more || open->rest->seconds > 60);
}

TEST_F(RaceTest, CtrlCEndsItAtOnceAndVoidsTheHeat) {
  proc::install_interrupt_handlers();
  proc::clear_interrupt();
  TestPlan plan = make_plan_of(folder_ / "run", {{"a", {{"step_ms", "50"}}},
                                                 {"b", {{"step_ms", "50"}, {"ignore_sigterm", "1"}}},
                                                 {"c", {{"step_ms", "50"}}}});
  plan.recipe.race.burst_seconds = 600;
  std::atomic<double> raised{0};
  std::thread user;
  const Watch watch = [&](const Happening& now) {
    if (user.joinable() || now.detail.rfind("timing", 0) != 0) return;
    user = std::thread([&] {
      ::usleep(300'000);
      raised = now_s();
      ::kill(::getpid(), SIGINT);
    });
  };
  ASSERT_TRUE(race(plan, all_pass(plan), {}, watch));
  const double ended = now_s();
  ASSERT_TRUE(user.joinable()) << "nobody was timed";
  user.join();
  EXPECT_TRUE(proc::interrupted());
  EXPECT_LT(ended - raised, 60) << "and not after a burst";
  EXPECT_TRUE(testing::workers_alive().empty());
  EXPECT_THAT(plan.directory.read<Trial>().value(), IsEmpty()) << "a heat cut short is void";
}

TEST_F(RaceTest, TheGateRecordsFailuresOnceAndTheRefereesLosses) {
  TestPlan plan =
      make_plan_of(folder_ / "run", {{"known", {}}, {"absent", {}}, {"crash", {{"crash_at", "import"}}}});
  ASSERT_TRUE(make_folder(folder_ / "gate"));
  plan.gate = testing::gate_job(folder_ / "gate");
  plan.lanes[1].failure = Failure{Stage::kEnvironment, "not here", ""};
  ASSERT_TRUE(plan.directory.write(plan.manifest));
  const Parity known{.contender = "known", .losses = {1.5}};
  const auto all = gate_all(plan, {known}, kNobody);
  ASSERT_TRUE(all) << all.error().text();
  ASSERT_EQ(all->size(), 2u);
  EXPECT_EQ((*all)[0], known) << "not proven again";
  EXPECT_EQ((*all)[1].contender, "crash");
  ASSERT_TRUE((*all)[1].failure);
  EXPECT_EQ((*all)[1].failure->stage, Stage::kImport);
  EXPECT_EQ(plan.directory.read<Parity>().value(), std::vector<Parity>{(*all)[1]});
  EXPECT_EQ(plan.manifest.referee_losses.size(), 5u);
  EXPECT_EQ(plan.directory.manifest()->referee_losses, plan.manifest.referee_losses);
  // Nothing left to do: the referee is not asked, nothing is written.
  EXPECT_EQ(gate_all(plan, *all, kNobody).value(), *all);
  EXPECT_EQ(plan.directory.read<Parity>()->size(), 1u);
}

TEST_F(RaceTest, Tf32OnACpuIsARowWithItsReasonAsIsToo) {
  TestPlan plan = make_plan_of(folder_ / "run", {{"plain", {}}, {"rounded", {}}});
  ASSERT_TRUE(make_folder(folder_ / "gate"));
  plan.gate = testing::gate_job(folder_ / "gate");
  plan.recipe.training.track = plan.gate.training.track = ir::Track::kAsIs;
  plan.lanes[1].entry.contender.settings = {{"tf32", "true"}};
  ASSERT_TRUE(plan.directory.write(plan.manifest));
  const auto all = gate_all(plan, {}, kNobody);
  ASSERT_TRUE(all) << all.error().text();
  ASSERT_EQ(all->size(), 2u);
  const auto reason = [](const Parity& p) { return p.failure ? p.failure->reason : ""; };
  EXPECT_NE(reason((*all)[0]), "there is no TF32 on a CPU");
  EXPECT_EQ(reason((*all)[1]), "there is no TF32 on a CPU");
}

}  // namespace
}  // namespace bakeoff
