#include "summary/summarise.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "ir/cost.h"
#include "ir/text.h"
#include "plan/testing.h"
#include "records/machine_report.h"
#include "study/training/fit_trial.h"
#include "summary/limits.h"
#include "summary/standing.h"
#include "worker/grants.h"
#include "zoo/zoo.h"

namespace bakeoff {
namespace {

using ::testing::Contains;
using ::testing::ContainsRegex;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using testing::TestFolder;

constexpr int64_t kMs = 1'000'000;
constexpr int64_t kBatch = 50;

// The records of a run of mlp_small, made by hand.
struct HandMade {
  Manifest manifest;
  std::vector<Parity> parities;
  std::vector<Trial> trials;

  explicit HandMade(const std::vector<std::string>& ids, const std::string& top = "") {
    manifest.recipe_name = "by hand";
    manifest.recipe_file = "/r/hand.toml";
    manifest.recipe_text = fmt::format(
        "workload = \"mlp_small\"\nbatch = {}\n{}\ncontenders = [{{ framework = \"torch\" }}]\n"
        "[optimizer]\nkind = \"sgd\"\nlr = 0.1\n",
        kBatch, top);
    manifest.workload_text = ir::dump(zoo::build("mlp_small").value());
    for (const std::string& id : ids) {
      manifest.contenders.push_back(
          {.id = id, .framework = "torch", .environment = "torch", .script = id + ".py"});
      manifest.not_started.emplace_back();
      parities.push_back({.contender = id,
                          .checks = {{"float64 loss", "loss", 0, 1e-10, true}},
                          .losses = {2.3},
                          .first_step_cold_ns = 900 * kMs,
                          .effective = {{"threads", "from the gate"}}});
    }
  }

  Parity& parity(const std::string& id) {
    return *std::find_if(parities.begin(), parities.end(),
                         [&](const Parity& p) { return p.contender == id; });
  }

  Trial& add(const std::string& id, int heat, double ms) {
    const auto burst = static_cast<int64_t>(std::llround(ms * 10 * static_cast<double>(kMs)));
    trials.push_back({.contender = id,
                      .heat = heat,
                      .start_ns = 50 * kMs,
                      .import_ns = 1000 * kMs,
                      .build_ns = 100 * kMs,
                      .first_step_ns = 300 * kMs,
                      .alone = true,
                      .warmup_ns = 20 * kMs,
                      .bursts = {{burst, 10}, {burst, 10}},
                      .step_ns = {burst / 10, burst / 10},
                      .rounds = {{.wall_ns = burst, .seen = {{"others", 0.0}}},
                                 {.wall_ns = burst, .seen = {{"others", 0.0}}}},
                      .last_loss = 1.0,
                      .peak_rss_bytes = int64_t{heat} << 20,
                      .effective = {{"threads", "2"}},
                      .versions = {{"torch", "2.13"}}});
    return trials.back();
  }

  // `heats` heats in which everybody runs; what a heat does to all cancels, and each has noise of its own.
  void race(const std::vector<std::pair<std::string, double>>& ms, int heats, double noise = 1e-3) {
    for (int heat = 1; heat <= heats; ++heat) {
      const double common = 1 + 0.05 * std::sin(heat);
      for (size_t i = 0; i < ms.size(); ++i) {
        std::mt19937_64 random(static_cast<uint64_t>(heat) * 64 + i);
        const double own = std::normal_distribution<double>(0, noise)(random);
        add(ms[i].first, heat, ms[i].second * common * (1 + own));
      }
    }
  }

  Summary summary() const {
    auto s = summarise(manifest, parities, trials, {});
    EXPECT_TRUE(s) << s.error().text();
    return s ? *s : Summary{};
  }
};

std::vector<std::string> ids(const std::vector<Row>& rows) {
  std::vector<std::string> all;
  for (const Row& row : rows) all.push_back(row.contender.id);
  return all;
}

TEST(Summarise, RanksByTimeWithTiesVerdictsAndIntervals) {
  HandMade run({"slow", "b", "a"});
  run.race({{"slow", 8}, {"a", 4}, {"b", 4.002}}, 30);
  const Summary s = run.summary();
  ASSERT_THAT(ids(s.ranked), ElementsAre("a", "b", "slow"));
  const Row &a = s.ranked[0], &b = s.ranked[1], &slow = s.ranked[2];
  EXPECT_EQ(a.verdict, RowVerdict::kLeader);
  EXPECT_EQ(b.verdict, RowVerdict::kSame);
  EXPECT_EQ(slow.verdict, RowVerdict::kMateriallySlower);
  EXPECT_EQ(a.ratio, (Estimate{1, 1, 1}));
  EXPECT_NEAR(slow.ratio.value, 2, 0.01);
  EXPECT_LT(slow.ratio.low, slow.ratio.value);
  EXPECT_GT(slow.ratio.high, slow.ratio.value);
  EXPECT_GT(slow.ratio.low, 1.9);
  EXPECT_LT(slow.ratio.high, 2.1);
  EXPECT_LT(b.ratio.low, 1);
  EXPECT_GT(b.ratio.high, 1);
  EXPECT_EQ(a.ties, b.ties);
  EXPECT_NE(a.ties, slow.ties);
  EXPECT_EQ(a.rank_best, 1);
  EXPECT_EQ(a.rank_worst, 2);
  EXPECT_EQ(slow.rank_best, 3);
  EXPECT_EQ(slow.rank_worst, 3);
  EXPECT_TRUE(s.decided);
  EXPECT_THAT(s.sentence, HasSubstr("a leads, tied with b within 3%"));
  EXPECT_THAT(s.unranked, IsEmpty());
  EXPECT_THAT(s.notes, IsEmpty());
}

TEST(Summarise, APredictionCostsItsForwardPass) {
  HandMade run({"a"}, "scenario = \"predict\"");
  run.race({{"a", 4}}, 3);
  const Summary s = run.summary();
  EXPECT_TRUE(s.predicts());
  const auto cost = ir::step_cost(zoo::build("mlp_small").value(), {}, kBatch).value();
  EXPECT_DOUBLE_EQ(s.gflop_per_step, static_cast<double>(cost.flops_forward) / 1e9);
  EXPECT_FALSE(HandMade({"a"}).summary().predicts());
}

TEST(Summarise, AHostThatWasBusyThroughoutAllowsNoVerdict) {
  HandMade run({"slow", "fast"});
  run.race({{"slow", 8}, {"fast", 4}}, 10);
  const HostRound busy{.wall_ns = 1, .seen = {{"others", 0.6}}, .busy = "other processes used 60%"};
  for (Trial& trial : run.trials) {
    trial.rounds = {busy, busy};
    trial.rounds[0].rerun = true;
  }
  const Summary s = run.summary();
  EXPECT_THAT(s.refusal, HasSubstr("busy throughout: 10 of 10 rounds"));
  EXPECT_FALSE(s.decided);
  EXPECT_THAT(s.sentence, HasSubstr("No verdict: this host was busy throughout"));
  ASSERT_EQ(s.ranked.size(), 2u) << "the times are shown";
  for (const Row& row : s.ranked) {
    EXPECT_EQ(row.verdict, RowVerdict::kRefused);
    EXPECT_EQ(row.rank_best, 1);
    EXPECT_EQ(row.rank_worst, 2);
  }
  EXPECT_THAT(s.notes,
              ::testing::Contains(HasSubstr("10 of 20 rounds of bursts were disturbed and run again by")));
  EXPECT_EQ(s.host.reruns, 10);
}

TEST(Summarise, AFewDisturbedRoundsAreNotedAndTheVerdictStands) {
  HandMade run({"slow", "fast"});
  run.race({{"slow", 8}, {"fast", 4}}, 10);
  for (Trial& trial : run.trials) {
    trial.rounds = {{.wall_ns = 1, .seen = {{"others", 0.0}}, .absent = {{"cpu pressure", "no such file"}}}};
    if (trial.heat == 3) trial.rounds[0].busy = "other processes used 60%";
  }
  const Summary s = run.summary();
  EXPECT_EQ(s.refusal, "");
  EXPECT_TRUE(s.decided);
  EXPECT_THAT(s.notes, ElementsAre(HasSubstr("The host disturbed 1 of 10 rounds that count"),
                                   "Not measured on this host: cpu pressure: no such file."));
  for (Trial& trial : run.trials) trial.memory["on_gpu"] = 1;
  EXPECT_THAT(run.summary().notes,
              ::testing::Contains(HasSubstr("The rule about the host judges its processors.")));
}

TEST(Summarise, WhoeverNeverBecomesSteadyIsShownWithItsDriftAndNotRanked) {
  HandMade run({"a", "b", "warming"});
  run.race({{"a", 4}, {"b", 5}, {"warming", 3}}, 8);
  for (Trial& trial : run.trials) {
    if (trial.contender != "warming") continue;
    trial.steadiness = "not steady";
    trial.drift = -0.2;
  }
  const Summary s = run.summary();
  EXPECT_THAT(ids(s.ranked), ElementsAre("a", "b"));
  EXPECT_EQ(s.ranked[0].verdict, RowVerdict::kLeader) << "the fastest of those that are steady";
  ASSERT_THAT(ids(s.unranked), ElementsAre("warming"));
  EXPECT_EQ(s.unranked[0].failure->stage, Stage::kWarmUp);
  EXPECT_THAT(s.unranked[0].failure->reason, HasSubstr("never became steady: in 8 of 8 heats"));
  EXPECT_EQ(s.unranked[0].drift, -0.2);
  EXPECT_EQ(s.unsteady, "warming") << "it ends faster than the leader, which is no winner then";
  EXPECT_THAT(s.sentence, HasSubstr("warming was measured faster than all others"));
  for (Trial& trial : run.trials) {
    for (Burst& burst : trial.bursts) burst.ns *= trial.contender == "warming" ? 2 : 1;
  }
  EXPECT_EQ(run.summary().unsteady, "") << "slower than the leader";
}

TEST(Summarise, BurstsThatWereStillWarmUpDoNotCount) {
  HandMade run({"a", "b"});
  run.race({{"a", 4}, {"b", 5}}, 8);
  for (Trial& trial : run.trials) {
    if (trial.contender != "a") continue;
    trial.bursts[0].ns *= 3;
    trial.warmup_bursts = 1;
  }
  const Summary s = run.summary();
  EXPECT_EQ(s.ranked[0].contender.id, "a");
  EXPECT_NEAR(s.ranked[0].ms_per_step.value, 4, 0.4);
}

TEST(Summarise, TimesOfAConfirmedWinnerAreThoseOfItsFreshHeats) {
  HandMade run({"slow", "fast"});
  run.race({{"slow", 8}, {"fast", 4}}, 10);
  for (const int heat : {11, 12, 13}) run.add("fast", heat, 4.4).confirms = true;
  const Summary s = run.summary();
  ASSERT_THAT(ids(s.ranked), ElementsAre("fast", "slow"));
  EXPECT_NEAR(s.ranked[0].ms_per_step.value, 4.4, 1e-9);
  EXPECT_EQ(s.ranked[0].confirmed, 3);
  EXPECT_EQ(s.ranked[0].heats, 13);
  EXPECT_EQ(s.ranked[0].heat_ms.size(), 3u);
  EXPECT_EQ(s.ranked[1].confirmed, 0);
  EXPECT_NEAR(s.ranked[1].ratio.value, 2, 0.01) << "the verdict is that of the race";
  EXPECT_THAT(
      s.notes,
      ElementsAre(HasSubstr(
          "The time of fast comes from 3 confirmation heats that did not influence the ranking. Every")));
}

TEST(Summarise, OneFreshHeatAloneReplacesNothing) {
  HandMade run({"slow", "fast"});
  run.race({{"slow", 8}, {"fast", 4}}, 10);
  run.add("fast", 11, 9).confirms = true;
  const Summary s = run.summary();
  EXPECT_EQ(s.ranked[0].contender.id, "fast");
  EXPECT_EQ(s.ranked[0].heat_ms.size(), 11u);
  EXPECT_EQ(s.ranked[0].confirmed, 0);
  EXPECT_LT(s.ranked[0].ms_per_step.value, 5);
  EXPECT_THAT(s.notes, Not(Contains(HasSubstr("confirmation heats"))));
}

TEST(Summarise, WhatRacingSparedIsCounted) {
  HandMade run({"slow", "b", "a"}, "race.noise_ceiling = 0.15");
  run.race({{"slow", 400}, {"a", 4}, {"b", 4.5}}, 2);
  run.race({{"a", 4}, {"b", 4.5}}, 20);
  for (size_t i = 6; i < run.trials.size(); ++i) run.trials[i].heat += 2;
  const Summary s = run.summary();
  EXPECT_TRUE(s.decided);
  EXPECT_EQ(s.ranked[2].heats, 2);
  EXPECT_EQ(s.ranked[2].verdict, RowVerdict::kMateriallySlower) << "by the promise about the noise";
  EXPECT_GT(s.ranked[2].ratio.low, 10);
  EXPECT_LT(s.ranked[2].ratio.high, 1000);
  EXPECT_TRUE(s.rests_on_promise);
  EXPECT_THAT(s.sentence, HasSubstr("This rests on the recipe's own promise of at most 15% of noise"));
  ASSERT_EQ(s.notes.size(), 2u);
  EXPECT_THAT(s.notes[0], HasSubstr("Some verdicts rest on the recipe's own promise"));
  // A heat takes slow 1.47 + 8 s, the others 1.47 + .08 and .09 s: 22 of both and two of slow, of 22 of all.
  EXPECT_EQ(
      s.notes[1],
      "Racing took 88.1 s; timing every contender in all 22 heats for the same guarantee would have taken "
      "4 min 45 s.");
}

void look(HandMade& run, const std::string& id, int heat, double behind, const std::string& disturbed = "") {
  Trial& trial = run.add(id, heat, 1);
  trial.bursts.clear();
  trial.rounds.clear();
  trial.dropped = "the fastest of its first 3 steps takes 41 s";
  trial.behind_leader = behind;
  trial.look_disturbed = disturbed;
}

TEST(Summarise, OneLookAtAHopelessContenderRanksNobody) {
  for (const bool disturbed : {false, true}) {
    HandMade run({"slow", "fast", "crawls"});
    run.race({{"slow", 8}, {"fast", 4}}, 10);
    look(run, "crawls", 1, 10'250);
    if (disturbed) look(run, "crawls", 2, 10'250, "other processes used 60%");
    const Summary s = run.summary();
    ASSERT_THAT(ids(s.unranked), ElementsAre("crawls"));
    EXPECT_THAT(
        s.unranked[0].failure->reason,
        HasSubstr("looked too slow to be timed (the fastest of its first 3 steps takes 41 s), and the "
                  "run ended before it was looked at again"));
  }
}

TEST(Summarise, WhoeverLooksHopelessTwiceIsRankedLastWithABound) {
  HandMade run({"crawls", "slow", "fast", "creeps"});
  run.race({{"slow", 80}, {"fast", 4}}, 10);
  for (const int heat : {1, 2}) {
    look(run, "crawls", heat, 10'250);
    look(run, "creeps", heat, 600);
  }
  const Summary s = run.summary();
  EXPECT_THAT(s.unranked, IsEmpty());
  ASSERT_THAT(ids(s.ranked), ElementsAre("fast", "slow", "creeps", "crawls"));
  EXPECT_TRUE(s.decided);
  const Row& last = s.ranked[3];
  EXPECT_EQ(verdict_of(last), "at least 10 times slower");
  EXPECT_EQ(last.at_least, 10);
  EXPECT_EQ(last.ratio, (Estimate{10, 10, std::numeric_limits<double>::infinity()}));
  EXPECT_EQ(last.ms_per_step.low, 10 * s.ranked[0].ms_per_step.value);
  EXPECT_EQ(last.samples_per_second, 0);
  EXPECT_EQ(last.rank_best, 2) << "slow is 20 times slower than fast: the bound does not tell them apart";
  EXPECT_EQ(last.rank_worst, 4);
  EXPECT_EQ(s.ranked[1].rank_best, 2);
  EXPECT_EQ(s.ranked[1].rank_worst, 4);
  EXPECT_THAT(s.notes,
              Contains(HasSubstr("crawls: its fastest step in 2 fresh processes took 1.02e+04 times")));
}

TEST(Summarise, HoldsFrameworksAgainstTheNativeLimit) {
  HandMade run({"torch", "native"});
  run.manifest.contenders[1].framework = "native";
  run.race({{"torch", 8.4}, {"native", 4}}, 10);
  const Summary s = run.summary();
  EXPECT_THAT(s.notes,
              Contains(HasSubstr("Times as long as plain C++ needs on this machine: PyTorch 2.10 [")));
  EXPECT_EQ(native_row(s), &s.ranked[0]);
  EXPECT_EQ(s.ranked[0].over_native, (Estimate{1, 1, 1}));
  ASSERT_TRUE(s.ranked[1].over_native);
  EXPECT_NEAR(s.ranked[1].over_native->value, 2.1, 0.01);
  EXPECT_EQ(native_limit_of(s.ranked[0]), "");
  EXPECT_THAT(native_limit_of(s.ranked[1]),
              HasSubstr("plain C++ needs 0.48 times as long on this machine ["));
  HandMade without({"torch", "jax"});
  without.race({{"torch", 8.4}, {"jax", 4}}, 10);
  EXPECT_EQ(native_row(without.summary()), nullptr);
  EXPECT_FALSE(without.summary().ranked[1].over_native);
}

TEST(Summarise, WhoeverIsOutByAThirdIsBehindThatOne) {
  HandMade run({"a", "b", "c"});
  // a leads; c met it in one heat only, and b in eight, where it was surely slower than b.
  run.race({{"a", 4}, {"b", 4.02}}, 12);
  const size_t before = run.trials.size();
  run.race({{"b", 4.02}, {"c", 6}}, 8);
  for (size_t i = before; i < run.trials.size(); ++i) run.trials[i].heat += 12;
  run.add("a", 21, 4);
  run.add("c", 21, 6);
  const Summary s = run.summary();
  const auto c =
      std::find_if(s.ranked.begin(), s.ranked.end(), [](const Row& row) { return row.contender.id == "c"; });
  ASSERT_NE(c, s.ranked.end());
  EXPECT_LE(c->ratio.low, 1);
  EXPECT_EQ(c->verdict, RowVerdict::kBehindAnother);
  ASSERT_TRUE(c->behind);
  EXPECT_EQ(c->behind->contender, "b");
  EXPECT_GT(c->behind->at_least, 1.3);
  EXPECT_LT(c->behind->at_least, 1.5);
}

TEST(Summarise, TimesAreTheLeadersTimesTheRatio) {
  HandMade run({"slow", "fast"});
  run.race({{"slow", 8}, {"fast", 4}}, 10, 0.1);
  for (const int heat : {11, 12, 13}) {
    run.add("fast", heat, 4.4).confirms = true;
    run.add("slow", heat, 7).confirms = true;
  }
  const Summary s = run.summary();
  for (const Row& row : s.ranked) {
    EXPECT_DOUBLE_EQ(row.ms_per_step.value, s.ranked[0].ms_per_step.value * row.ratio.value);
    EXPECT_LE(row.ms_per_step.low, row.ms_per_step.value);
    EXPECT_GE(row.ms_per_step.high, row.ms_per_step.value);
  }
}

TEST(Summarise, AHopelessContenderIsHeldAgainstOneThatWasNeverCompared) {
  HandMade run({"fast", "crawls"});
  for (const int heat : {1, 2, 3}) run.add("fast", heat, 4);
  for (const int heat : {1, 2}) look(run, "crawls", heat, 600);
  const Summary s = run.summary();
  ASSERT_THAT(ids(s.ranked), ElementsAre("fast", "crawls"));
  EXPECT_EQ(s.ranked[1].rank_best, 2);
  EXPECT_EQ(s.ranked[0].rank_worst, 1);
}

TEST(Summarise, ValuesOfARow) {
  HandMade run({"a", "b"}, "alpha = 0.05\nmargin = 0.1");
  run.race({{"a", 4}, {"b", 6}}, 11);
  const Summary s = run.summary();
  EXPECT_EQ(s.title, "by hand");
  EXPECT_EQ(s.track, ir::Track::kEqualised);
  EXPECT_EQ(s.alpha, 0.05);
  EXPECT_EQ(s.margin, 0.1);
  EXPECT_EQ(s.batch, kBatch);
  EXPECT_EQ(s.heats, 11);
  EXPECT_EQ(s.parameters, 100 * 128 + 128 + 128 * 10 + 10);
  EXPECT_EQ(s.manifest, run.manifest);
  const auto cost = ir::step_cost(zoo::build("mlp_small").value(), {}, kBatch).value();
  EXPECT_DOUBLE_EQ(s.gflop_per_step, static_cast<double>(cost.flops()) / 1e9);
  EXPECT_EQ(s.elapsed_s, 0) << "not recorded";
  for (Trial& trial : run.trials) trial.heat_ns = trial.contender == "a" ? 3 * kSecond : 2 * kSecond;
  EXPECT_EQ(run.summary().elapsed_s, 33) << "eleven heats, which their members share";
  run.trials.back().heat_ns = run.trials[20].heat_ns = 0;
  EXPECT_EQ(run.summary().elapsed_s, 0) << "of one heat it is not known";
  ASSERT_EQ(s.ranked.size(), 2u);
  const Row& a = s.ranked[0];
  EXPECT_NEAR(a.ms_per_step.value, 4, 0.3);
  EXPECT_LT(a.ms_per_step.low, a.ms_per_step.value);
  EXPECT_GT(a.ms_per_step.high, a.ms_per_step.value);
  EXPECT_NEAR(a.samples_per_second, 50 / a.ms_per_step.value * 1e3, 1e-6);
  EXPECT_NEAR(a.gflops, s.gflop_per_step / (a.ms_per_step.value / 1e3), 1e-9);
  EXPECT_EQ(a.heats, 11);
  EXPECT_EQ(a.heat_ms.size(), 11u);
  EXPECT_EQ(a.step_ms.size(), 22u);
  EXPECT_EQ(a.peak_rss_bytes, 11 << 20) << "the largest of all heats";
  EXPECT_EQ(a.parity, ParityState::kPassed);
  EXPECT_EQ(a.proof, run.parities[0]);
  EXPECT_EQ(a.effective.at("threads"), "2") << "as raced, not as proven";
  EXPECT_EQ(a.versions.at("torch"), "2.13");
  EXPECT_THAT(s.sentence, HasSubstr("a is the fastest here: the next, b, takes 1.50 times as long"));
  EXPECT_THAT(s.sentence, HasSubstr("wrong with probability 5% at most"));
}

TEST(Summarise, StartUpsAreMediansOverHeatsAndTheColdStepStandsApart) {
  HandMade run({"a", "b"});
  run.race({{"a", 4}, {"b", 6}}, 5);
  int n = 0;
  for (Trial& t : run.trials) {
    if (t.contender != "a") continue;
    const int64_t odd = std::vector<int64_t>{1, 900, 2, 3, 800}[static_cast<size_t>(n++)];  // median 3
    t.start_ns = odd * kMs, t.import_ns = 10 * odd * kMs, t.build_ns = 20 * odd * kMs;
    t.first_step_ns = 30 * odd * kMs;
  }
  const Summary equalised = run.summary();
  ASSERT_EQ(ids(equalised.ranked)[0], "a");
  EXPECT_EQ(equalised.ranked[0].start_up, (StartUp{3, 30, 60, 90, 900.0})) << "cold: of the gate's process";
  EXPECT_EQ(equalised.ranked[0].start_up.total(), 183);
  run.parity("a").first_step_cold_ns = 0;
  EXPECT_EQ(run.summary().ranked[0].start_up.first_step_cold, std::nullopt);
  // Where heats say that they were cold, these count as such and as nothing else.
  for (Trial& t : run.trials) t.cold = t.heat == 1;
  EXPECT_EQ(run.summary().ranked[0].start_up.first_step, 30 * (3 + 800) / 2.0);
  EXPECT_EQ(run.summary().ranked[0].start_up.first_step_cold, 30.0);
  for (Trial& t : run.trials) t.cold = true;
  EXPECT_EQ(run.summary().ranked[0].start_up.first_step, 90) << "all there is";
}

TEST(Summarise, BreakEvenIsTheStepFromWhichTheLeaderIsAhead) {
  HandMade run({"leader", "quick start", "slow start"});
  run.race({{"leader", 4}, {"quick start", 8}, {"slow start", 8}}, 12, 0);
  for (Trial& t : run.trials) {
    if (t.contender == "leader") t.import_ns = 10'000 * kMs;
    if (t.contender == "quick start") t.import_ns = 2'000 * kMs;
    if (t.contender == "slow start") t.import_ns = 20'000 * kMs;
  }
  const Summary s = run.summary();
  ASSERT_EQ(s.ranked[0].contender.id, "leader");
  EXPECT_EQ(s.ranked[0].break_even_step, std::nullopt);
  for (const Row& row : s.ranked) {
    if (row.contender.id == "quick start") {
      ASSERT_TRUE(row.break_even_step);
      const double gap = row.ms_per_step.value - s.ranked[0].ms_per_step.value;
      EXPECT_NEAR(*row.break_even_step, 8000 / gap, 3) << "8 s up front, about 4 ms a step";
    } else {
      EXPECT_EQ(row.break_even_step, std::nullopt) << row.contender.id << " is behind from the start";
    }
  }
}

TEST(Summarise, WhoeverIsNotRankedHasAReason) {
  HandMade run({"sound", "other", "wrong", "gate crash", "crash", "nan", "missing", "unsupported", "late"});
  run.race({{"sound", 4}, {"other", 5}}, 10);
  run.parity("wrong").diverges_at = "grad/fc1.weight";
  run.parity("wrong").divergence = 1.25e-3;
  run.parity("wrong").explanation = "matches: epsilon inside the root: sqrt(v + eps)";
  run.parity("gate crash").failure = Failure{Stage::kImport, "exit code 1 in stage import", "Traceback"};
  for (int heat = 1; heat <= 3; ++heat) run.add("crash", heat, 3);
  run.trials.back().failure = Failure{Stage::kRun, "killed by signal 9 (SIGKILL) in stage run", "tail"};
  run.add("nan", 1, 3).invalid = "the loss became nan";
  std::erase_if(run.parities,
                [](const Parity& p) { return p.contender == "missing" || p.contender == "unsupported"; });
  run.manifest.not_started[7] = Failure{Stage::kEmit, "torch has no op pad", ""};
  const Summary s = run.summary();
  EXPECT_THAT(ids(s.ranked), ElementsAre("sound", "other"));
  ASSERT_THAT(ids(s.unranked),
              ElementsAre("wrong", "gate crash", "crash", "nan", "missing", "unsupported", "late"));
  const std::vector<std::pair<const char*, const char*>> reasons = {
      {"parity",
       "not the same computation: grad/fc1.weight differs by 0.0013 (matches: epsilon inside the root: "
       "sqrt(v + eps))"},
      {"import", "exit code 1 in stage import"},
      {"run", "killed by signal 9 (SIGKILL) in stage run"},
      {"run", "the loss became nan"},
      {"environment", "was not run"},
      {"emit", "torch has no op pad"},
      {"run", "proven equal, but not raced: the run ended before its first heat"},
  };
  for (size_t i = 0; i < reasons.size(); ++i) {
    SCOPED_TRACE(s.unranked[i].contender.id);
    ASSERT_TRUE(s.unranked[i].failure);
    EXPECT_EQ(name(s.unranked[i].failure->stage), reasons[i].first);
    EXPECT_THAT(s.unranked[i].failure->reason, HasSubstr(reasons[i].second));
  }
  EXPECT_EQ(s.unranked[0].parity, ParityState::kFailed);
  EXPECT_EQ(s.unranked[1].parity, ParityState::kNotRun);
  EXPECT_EQ(s.unranked[1].failure->log_tail, "Traceback");
  EXPECT_EQ(s.unranked[2].parity, ParityState::kPassed);
  EXPECT_THAT(s.unranked[2].heat_ms, ::testing::SizeIs(2)) << "its sound heats stay visible";
}

// The fastest one crashes late: nobody is judged against what is not in the table.
TEST(Summarise, ALeaderThatFailedIsNoLongerTheMeasure) {
  HandMade run({"flash", "a", "b"});
  run.race({{"flash", 1}, {"a", 4}, {"b", 8}}, 15);
  run.add("flash", 16, 1).failure = Failure{Stage::kRun, "exit code 1", ""};
  const Summary s = run.summary();
  ASSERT_THAT(ids(s.ranked), ElementsAre("a", "b"));
  EXPECT_EQ(s.ranked[0].verdict, RowVerdict::kLeader);
  EXPECT_EQ(s.ranked[0].rank_best, 1);
  EXPECT_EQ(s.ranked[0].ratio.value, 1);
  EXPECT_NEAR(s.ranked[1].ratio.value, 2, 0.02);
  EXPECT_EQ(s.ranked[1].verdict, RowVerdict::kMateriallySlower);
  EXPECT_THAT(s.sentence, HasSubstr("a is the fastest here: the next, b, takes 2.0"));
  EXPECT_THAT(ids(s.unranked), ElementsAre("flash"));
}

TEST(Summarise, AVerdictNamesAFewAndCountsTheRest) {
  HandMade run({"a", "b", "c", "d", "e", "f"});
  run.race({{"a", 4}, {"b", 4.1}, {"c", 4.1}, {"d", 4.1}, {"e", 4.1}, {"f", 4.1}}, 3, 0.05);
  EXPECT_THAT(run.summary().sentence,
              ContainsRegex("ahead of . \\(.*\\), . \\(.*\\), . \\(.*\\) and 2 others\\."));
}

TEST(Summarise, TooLittleEvidenceIsUndecided) {
  HandMade run({"a", "b"});
  run.race({{"a", 4}, {"b", 4.1}}, 3, 0.05);
  const Summary s = run.summary();
  ASSERT_EQ(s.ranked.size(), 2u);
  EXPECT_EQ(s.ranked[1].verdict, RowVerdict::kUndecided);
  EXPECT_GT(s.ranked[1].ratio.high, 1.2) << "bounded by the promise about the noise alone";
  EXPECT_LT(s.ranked[1].ratio.low, 0.9);
  EXPECT_FALSE(s.decided);
  EXPECT_EQ(s.ranked[0].ties, s.ranked[1].ties);
  EXPECT_EQ(s.ranked[1].rank_best, 1);
  EXPECT_EQ(s.ranked[0].rank_worst, 2);
  EXPECT_THAT(s.sentence, HasSubstr("Not decided yet: a is the fastest so far, 4."));
  EXPECT_THAT(s.sentence, ContainsRegex("ahead of b \\([0-9.]+% sure\\)\\. About .* decide it"));
  ASSERT_EQ(s.outlooks.size(), 1u);
  EXPECT_EQ(s.outlooks[0].leader, "a");
  ASSERT_EQ(s.outlooks[0].rivals.size(), 1u);
  EXPECT_EQ(s.outlooks[0].rivals[0].ratio, s.ranked[1].ratio) << "the interval that the table shows";
  EXPECT_GT(s.outlooks[0].rest->seconds, 0);
  ASSERT_EQ(s.notes.size(), 1u);
  EXPECT_THAT(s.notes[0], HasSubstr("The leader was not measured again, as the race is undecided"));
}

TEST(Summarise, ALoneContenderHasATimeButNoRival) {
  HandMade run({"a", "b"});
  run.parity("b").diverges_at = "loss";
  for (int heat = 1; heat <= 3; ++heat) run.add("a", heat, 4);
  const Summary s = run.summary();
  ASSERT_THAT(ids(s.ranked), ElementsAre("a"));
  EXPECT_EQ(s.ranked[0].verdict, RowVerdict::kLeader);
  EXPECT_NEAR(s.ranked[0].ms_per_step.value, 4, 1e-6);
  EXPECT_EQ(s.sentence, "Only a could be ranked.");
}

// Every way in which a race can end, with contenders that had no heat and without: no sentence is about those.
TEST(Summarise, NothingIsSaidOfContendersThatHadNoHeat) {
  const std::vector<std::vector<std::pair<std::string, double>>> ends = {
      {{"a", 4}},              // one alone
      {{"a", 4}, {"b", 8}},    // decided
      {{"a", 4}, {"b", 4}},    // tied
      {{"a", 4}, {"b", 4.1}},  // undecided, with the noise below
  };
  for (size_t end = 0; end < ends.size(); ++end) {
    for (const size_t without : {0u, 1u, 3u}) {
      for (const int proofs : {1, 0}) {
        for (const bool busy : {false, true}) {
          std::vector<std::string> all = {"a", "b", "c", "d", "e"};
          all.resize(ends[end].size() + without);
          HandMade run(all);
          run.race(ends[end], end == 3 ? 3 : 30, end == 3 ? 0.05 : 1e-3);
          if (proofs == 0) std::erase_if(run.parities, [](const Parity& p) { return p.contender > "b"; });
          const HostRound disturbed{.wall_ns = 1, .seen = {{"others", 0.6}}, .busy = "others used 60%"};
          for (Trial& trial : run.trials)
            if (busy) trial.rounds = {disturbed, disturbed};
          const Summary s = run.summary();
          SCOPED_TRACE(fmt::format("end {}, {} without a heat, {}: {}", end, without, busy ? "busy" : "quiet",
                                   s.sentence));
          EXPECT_EQ(s.ranked.size(), ends[end].size());
          EXPECT_EQ(waiting(s).size(), without);
          EXPECT_EQ(s.decided, end != 3 && without == 0 && s.refusal.empty());
          if (!s.refusal.empty()) {
            EXPECT_THAT(s.sentence, ::testing::StartsWith("No verdict"));
          } else if (without > 0) {
            EXPECT_THAT(s.sentence,
                        ContainsRegex("^Not decided: the run ended before [13] contenders? had a heat"));
            EXPECT_THAT(s.sentence, Not(HasSubstr("could be ranked")));
          } else {
            EXPECT_THAT(s.sentence, Not(HasSubstr("had a heat")));
          }
        }
      }
    }
  }
}

TEST(Summarise, WithoutTrialsNobodyIsRanked) {
  HandMade run({"a", "b"});
  const Summary proven = run.summary();
  EXPECT_THAT(proven.ranked, IsEmpty());
  EXPECT_EQ(proven.unranked.size(), 2u);
  EXPECT_FALSE(proven.decided);
  EXPECT_EQ(proven.heats, 0);
  EXPECT_EQ(proven.sentence, "No contender could be ranked; the reasons are below.");
  run.parities.clear();
  const Summary nothing = run.summary();
  EXPECT_EQ(nothing.unranked[0].failure->stage, Stage::kEnvironment);
  EXPECT_EQ(nothing.unranked[0].parity, ParityState::kNotRun);
}

TEST(Summarise, AsIsRowsReportTheirDifferencesAndAreRankedAllTheSame) {
  HandMade run({"a", "b"}, "track = \"as-is\"");
  run.race({{"a", 4}, {"b", 8}}, 12);
  run.parity("b").diverges_at = "update/fc1.weight";
  const Summary s = run.summary();
  EXPECT_EQ(s.track, ir::Track::kAsIs);
  ASSERT_EQ(s.ranked.size(), 2u);
  EXPECT_EQ(s.ranked[0].parity, ParityState::kPassed);
  EXPECT_EQ(s.ranked[1].parity, ParityState::kReported);
  ASSERT_EQ(s.notes.size(), 1u);
  EXPECT_THAT(s.notes[0], HasSubstr("As-is track"));
}

TEST(Summarise, ATunedAllocatorIsStated) {
  HandMade run({"a", "b"});
  run.race({{"a", 4}, {"b", 8}}, 12);
  run.manifest.controls = {{"allocator", "tuned"}, {"pin", "auto"}};
  ASSERT_EQ(run.summary().notes.size(), 1u);
  EXPECT_THAT(run.summary().notes[0], HasSubstr("glibc malloc keeps freed pages"));
  run.manifest.calibration = {{"measured", "2026-11-21"}, {"with", "torch"}, {"prediction", "Nine heats."}};
  run.manifest.notes = {"Pinning to CPUs is refused here."};
  ASSERT_EQ(run.summary().notes.size(), 3u);
  EXPECT_EQ(run.summary().notes[0], "Pinning to CPUs is refused here.");
  EXPECT_EQ(run.summary().notes[2], "Machine profile of 2026-11-21 (torch). Nine heats.");
}

TEST(Summarise, ShortEpochsAreStatedWhereKerasRuns) {
  HandMade run({"a", "b"});
  run.race({{"a", 4}, {"b", 8}}, 12);
  run.manifest.data_rows = 8 * kBatch + 1;
  EXPECT_THAT(run.summary().notes, Not(Contains(HasSubstr("An epoch")))) << "nobody has work between epochs";
  run.manifest.contenders[1].framework = "keras";
  EXPECT_THAT(run.summary().notes, Contains(HasSubstr("An epoch of this data is 8 steps")));
  run.manifest.data_rows = 100 * kBatch;
  EXPECT_THAT(run.summary().notes, Not(Contains(HasSubstr("An epoch"))));
}

TEST(Summarise, SaysWhereTheVarianceIs) {
  HandMade run({"a", "b"});
  run.race({{"a", 4}, {"b", 8}}, 12);
  const Summary s = run.summary();
  ASSERT_TRUE(s.variance);
  ASSERT_TRUE(s.variance->processes);
  EXPECT_THAT(s.variance->sentence, HasSubstr("Restarting the process changes the result by"));
  EXPECT_FALSE(HandMade({"a", "b"}).summary().variance);
}

// A resumed run counts its heats on; a heat cut short has fewer members.
TEST(Summarise, ResumedRunsAreOneRun) {
  HandMade whole({"a", "b"}), resumed({"a", "b"});
  whole.race({{"a", 4}, {"b", 5}}, 12);
  resumed.race({{"a", 4}, {"b", 5}}, 12);
  for (Trial& t : resumed.trials) t.heat += t.heat > 6 ? 3 : 0;
  const Summary one = whole.summary(), two = resumed.summary();
  EXPECT_EQ(two.heats, 12);
  EXPECT_EQ(one.ranked[1].ratio, two.ranked[1].ratio);
  EXPECT_EQ(one.ranked[1].verdict, two.ranked[1].verdict);
  resumed.add("a", 16, 4);
  EXPECT_EQ(resumed.summary().ranked[1].ratio, two.ranked[1].ratio) << "alone in its heat: no pair";
  EXPECT_EQ(resumed.summary().ranked[0].heats, 13);
}

TEST(Summarise, IsAPureFunctionOfTheRecords) {
  HandMade run({"a", "b", "c"});
  run.race({{"a", 4}, {"b", 5}, {"c", 5.01}}, 9);
  EXPECT_EQ(run.summary(), run.summary());
  std::reverse(run.trials.begin(), run.trials.end());
  const Summary reversed = run.summary();
  EXPECT_EQ(ids(reversed.ranked), ids(run.summary().ranked));
}

// A machine of 8 processors, of which one makes 10 GFLOP/s and all together 50.
MachineReport machine_of_eight() {
  MachineReport machine{.measured = "2026-11-21T08:00:00Z"};
  machine.limits = {.cpus = 8,
                    .peaks = {{.dtype = "f32", .isa = "avx2", .ops = {10e9, 50e9}}},
                    .levels = {{.name = "DRAM", .read = {15e9, 60e9}}}};
  return machine;
}

TEST(Summarise, SharesOfTheLimitsAreOfAContendersOwnThreads) {
  HandMade run({"one", "two", "own"});
  run.manifest.host.cpus = 8;
  run.manifest.contenders[2].own_script = "/mine.py";
  run.race({{"one", 40}, {"two", 41}, {"own", 42}}, 5);
  for (Trial& t : run.trials) t.effective["threads"] = t.contender == "two" ? "2" : "1";
  const MachineReport machine = machine_of_eight();
  const Summary s = summarise(run.manifest, run.parities, run.trials, {}, &machine).value();
  ASSERT_EQ(s.ranked.size(), 3u);
  const auto row = [&](const std::string& id) {
    return *std::find_if(s.ranked.begin(), s.ranked.end(),
                         [&](const Row& r) { return r.contender.id == id; });
  };
  EXPECT_EQ(row("one").threads, 1);
  EXPECT_EQ(row("two").threads, 2);
  EXPECT_NEAR(row("one").flop_use.value(), row("one").gflops / 10, 1e-9);
  EXPECT_NEAR(row("two").flop_use.value(), row("two").gflops / 20, 1e-9);
  EXPECT_FALSE(row("own").flop_use) << "it may do other work";
  ASSERT_TRUE(s.roofline);
  EXPECT_EQ(s.roofline->threads, 2);
  EXPECT_EQ(s.roofline->fewest_threads, 1);
  EXPECT_EQ(s.roofline->peak_flops, 20e9);
  EXPECT_EQ(s.roofline->measured, machine.measured);
  EXPECT_FALSE(run.summary().roofline) << "of a machine that was not measured";
}

TEST(Summarise, AGpuHasNoShareOfTheProcessors) {
  HandMade run({"cpu", "gpu"});
  run.manifest.host.cpus = 8;
  run.race({{"cpu", 40}, {"gpu", 1e-3}}, 5);  // the GPU's rate is beyond the processors' peak
  for (Trial& t : run.trials) {
    t.effective["threads"] = t.contender == "gpu" ? "8" : "2";
    if (t.contender != "gpu") continue;
    t.effective["device"] = "cuda:0";
    t.memory["on_gpu"] = 1;
  }
  const MachineReport machine = machine_of_eight();
  const Summary s = summarise(run.manifest, run.parities, run.trials, {}, &machine).value();
  ASSERT_THAT(ids(s.ranked), ElementsAre("gpu", "cpu")) << "it breaks no rule";
  EXPECT_TRUE(s.ranked[0].gpu.on_gpu);
  EXPECT_FALSE(s.ranked[0].flop_use);
  EXPECT_FALSE(s.ranked[0].byte_use);
  EXPECT_FALSE(s.ranked[1].gpu.on_gpu);
  EXPECT_TRUE(s.ranked[1].flop_use);
  ASSERT_TRUE(s.roofline);
  EXPECT_EQ(s.roofline->threads, 2) << "of those that compute on the processors";
  for (Trial& t : run.trials) t.memory["on_gpu"] = 1;
  EXPECT_FALSE(summarise(run.manifest, run.parities, run.trials, {}, &machine)->roofline);
}

TEST(Summarise, TheCopyToTheDeviceIsTheMedianOfTheHeats) {
  HandMade run({"cpu", "gpu"});
  run.race({{"cpu", 40}, {"gpu", 30}}, 5);
  int64_t ns = 0;
  for (Trial& t : run.trials) {
    if (t.contender == "gpu") t.transfer = Transfer{"batch", ns += 10, 64};
  }
  const Summary s = run.summary();
  ASSERT_THAT(ids(s.ranked), ElementsAre("gpu", "cpu"));
  EXPECT_EQ(s.ranked[0].transfer, (Transfer{"batch", 30, 64}));
  EXPECT_FALSE(s.ranked[1].transfer);
}

TEST(Summarise, ABfloat16RowHasAShareOfItsOwnPeak) {
  HandMade run({"full", "half"});
  run.manifest.host.cpus = 8;
  run.manifest.contenders[1].settings["precision"] = "bfloat16";
  run.race({{"full", 40}, {"half", 20}}, 5);
  MachineReport machine = machine_of_eight();
  const auto half = [&] {
    const Summary s = summarise(run.manifest, run.parities, run.trials, {}, &machine).value();
    return *std::find_if(s.ranked.begin(), s.ranked.end(),
                         [](const Row& r) { return r.contender.id == "half"; });
  };
  EXPECT_EQ(half().group, "bfloat16");
  EXPECT_FALSE(half().flop_use) << "not measured";
  machine.limits.peaks.push_back({.dtype = "bf16", .isa = "amx", .ops = {100e9, 400e9}});
  EXPECT_NEAR(half().flop_use.value(), half().gflops / 200, 1e-9) << "of two threads";
  EXPECT_FALSE(half().byte_use);
}

TEST(Summarise, WhatAStepUsedAndAnEpochCosts) {
  HandMade run({"a", "b"}, "cost.per_hour = 36\ncost.currency = \"USD\"");
  run.manifest.data_rows = 1000;
  run.race({{"a", 4}, {"b", 5}}, 5);
  for (Trial& t : run.trials) {
    for (Burst& burst : t.bursts) burst.used = {{"wall_s", 2}, {"cpu_s", 3}, {"minor_faults", 70}};
    t.not_sampled = {{"energy_j", "no sensor"}};
  }
  const Summary s = run.summary();
  ASSERT_EQ(s.ranked.size(), 2u);
  EXPECT_DOUBLE_EQ(s.ranked[0].usage.cores.value(), 1.5);
  EXPECT_DOUBLE_EQ(s.ranked[0].usage.faults.value(), 7);
  EXPECT_NEAR(s.ranked[0].epoch.price.value(), 20 * s.ranked[0].ms_per_step.value / 1e3 / 100, 1e-9);
  EXPECT_EQ(s.currency, "USD");
  EXPECT_THAT(s.not_sampled, ElementsAre("energy: no sensor"));
}

TEST(Summarise, WhoeverBreaksALimitIsShownWithTheRuleAndNotRanked) {
  HandMade run({"a", "b", "liar"});
  run.manifest.host.cpus = 8;
  run.race({{"a", 4}, {"b", 5}, {"liar", 6}}, 5);
  run.add("liar", 6, 1e-4);
  const MachineReport machine = machine_of_eight();
  const Summary s = summarise(run.manifest, run.parities, run.trials, {}, &machine).value();
  EXPECT_THAT(ids(s.ranked), ElementsAre("a", "b"));
  ASSERT_EQ(s.unranked.size(), 1u);
  EXPECT_THAT(s.unranked[0].failure.value().reason, HasSubstr("FLOP/s <= measured peak"));
  EXPECT_THAT(s.unranked[0].failure.value().reason, HasSubstr("against 50e9 FLOP/s"));
  EXPECT_EQ(ids(run.summary().ranked).size(), 3u) << "where no limits are known";
  MachineReport disturbed = machine;
  disturbed.disturbed = "other processes used 22%";
  const Summary lenient = summarise(run.manifest, run.parities, run.trials, {}, &disturbed).value();
  EXPECT_EQ(lenient.ranked.size(), 3u) << "limits that are too low are held against nobody";
  EXPECT_EQ(lenient.roofline.value().disturbed, disturbed.disturbed);
}

TEST(Summarise, ARunDirectoryGivesTheSameAsItsRecords) {
  const TestFolder folder;
  HandMade run({"a", "b"});
  run.race({{"a", 4}, {"b", 5}}, 8);
  run.add("b", 9, 5).failure = Failure{Stage::kRun, "exit code 3", "tail"};
  const RunDirectory directory = RunDirectory::create(folder / "run").value();
  ASSERT_TRUE(directory.write(run.manifest));
  for (const Parity& p : run.parities) ASSERT_TRUE(directory.append(p));
  for (const Trial& t : run.trials) ASSERT_TRUE(directory.append(t));
  ASSERT_TRUE(write_file(directory.scripts() / "a.py", "print('a')\n"));
  const auto from_disk = summarise(directory);
  ASSERT_TRUE(from_disk) << from_disk.error().text();
  const auto from_records = summarise(run.manifest, run.parities, run.trials, {{"a.py", "print('a')\n"}});
  EXPECT_EQ(from_disk->run, directory.path().string());
  Summary without = *from_disk;
  without.run.clear();
  EXPECT_EQ(without, from_records.value());
}

// Of a text the held-out rows are those of its test split: an epoch of [fit] and [target] is all of the rows.
TEST(Summarise, AnEpochOfATextIsAllOfItsTrainingRows) {
  const TestFolder folder;
  HandMade run({"a"});
  run.manifest.recipe_text =
      "workload = \"lstm_lm_small\"\nbatch = 10\ncontenders = [{ framework = \"torch\" }]\n"
      "[optimizer]\nkind = \"sgd\"\nlr = 0.1\n[data]\nkind = \"text\"\npath = \"book.txt\"\n"
      "[fit]\nepochs = 2\nrows = 100\n[target]\nloss = 1.5\nrows = 100\n";
  run.manifest.workload_text = ir::dump(zoo::build("lstm_lm_small").value());
  run.manifest.data_rows = 1000;
  const RunDirectory directory = RunDirectory::create(folder / "run").value();
  ASSERT_TRUE(directory.write(run.manifest));
  for (const Parity& p : run.parities) ASSERT_TRUE(directory.append(p));
  const TargetLook end{.steps = 200, .ns = 2000 * kMs, .loss = 1.4};
  ASSERT_TRUE(directory.append(FitTrial{.contender = "a", .seed = 1, .on_trained = end, .on_held = end}));
  for (const char* name : {TargetTrial::kReferee, "a"})
    ASSERT_TRUE(directory.append(TargetTrial{.contender = name, .seed = 1, .looks = {end}, .reached = true}));
  const auto s = summarise(directory);
  ASSERT_TRUE(s) << s.error().text();
  ASSERT_EQ(s->studies.size(), 2u);
  const table::Section &target = s->studies[0], &fit = s->studies[1];
  EXPECT_EQ(fit.key, "fit");
  EXPECT_EQ(fit.json["what"], "2 epochs of 1,000 rows");
  ASSERT_EQ(fit.rows(), 1u);
  EXPECT_DOUBLE_EQ(fit.json["rows"][0]["seconds"]["value"].get<double>(), 2.0)
      << "200 steps are exactly the two epochs asked for";
  EXPECT_EQ(fit.notes[0], "");
  EXPECT_EQ(target.key, "target");
  ASSERT_EQ(target.rows(), 2u);
  EXPECT_NEAR(target.json["rows"][1]["epochs"]["value"].get<double>(), 2.0, 1e-9);
  const auto seeds = "target: 1 of 5 seeds were trained";
  EXPECT_TRUE(std::any_of(s->notes.begin(), s->notes.end(), [&](const std::string& note) {
    return note.starts_with(seeds);
  })) << "what a study remarks stands among the notes";
}

TEST(Summarise, RecordsThatMakeNoSenseAreAnError) {
  HandMade run({"a"});
  run.manifest.recipe_text = "batch = = 3";
  EXPECT_FALSE(summarise(run.manifest, run.parities, run.trials, {}));
  HandMade other({"a"});
  other.manifest.workload_text = "workload nonsense";
  const auto refused = summarise(other.manifest, other.parities, other.trials, {});
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().where, HasSubstr("run.json"));
}

}  // namespace
}  // namespace bakeoff
