#include "selftest/selftest.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <span>

#include "ir/text.h"
#include "plan/lane.h"
#include "plan/testing.h"
#include "selftest/selftest_scripts.h"

namespace bakeoff {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsSupersetOf;
using ::testing::Not;
using Outcome = Claim::Outcome;

std::vector<double> normal(size_t count, double mean, double sd, uint64_t seed) {
  tensor::Rng rng(seed);
  std::vector<double> d;
  for (size_t i = 0; i < count; ++i) d.push_back(mean + sd * rng.normal());
  return d;
}

SelfTestEvidence sound() {
  SelfTestEvidence evidence{.framework = "torch", .identical = normal(60, 0, 0.01, 1)};
  for (const int every : {50, 20, 10})
    evidence.planted.push_back({every, normal(40, std::log1p(1.0 / every), 0.01, 2)});
  evidence.barriers = {{"jax as emitted", false, ""},
                       {"jax, never waited for", true, "answers before its work is done in 4 of 4 bursts"}};
  evidence.host = {.rounds = 100, .judged = 100, .busy = 3};
  return evidence;
}

TEST(Judge, ASoundMachineHoldsEveryClaim) {
  const auto claims = judge(sound());
  ASSERT_EQ(claims.size(), 7u);
  for (const Claim& claim : claims)
    EXPECT_EQ(claim.outcome, Outcome::kHeld) << claim.claim << ": " << claim.seen;
  EXPECT_THAT(claims[0].seen, HasSubstr("0 false in "));
  EXPECT_THAT(claims[0].seen, HasSubstr("60 pairs, sd(d) "));
  EXPECT_THAT(claims[1].claim, HasSubstr("2% of real extra work"));
}

TEST(Judge, TwinsThatAreToldApartMissTheirBar) {
  SelfTestEvidence evidence = sound();
  evidence.identical = normal(60, 0.05, 0.01, 1);
  const Claim claim = judge(evidence)[0];
  EXPECT_EQ(claim.outcome, Outcome::kMissed);
  EXPECT_THAT(claim.seen, Not(HasSubstr("0 false")));
}

TEST(RacesFinished, NeedADecisionOrTheirWholeBudget) {
  EXPECT_EQ(races_finished({}), 0);
  EXPECT_EQ(races_finished({0.01}), 0);
  EXPECT_EQ(races_finished(normal(kPairsOfRace - 1, 0, 0.5, 3)), 0);
  EXPECT_EQ(races_finished(normal(kPairsOfRace, 0, 0.5, 3)), 1);
  SelfTestEvidence nothing = sound();
  nothing.identical = {0.01};
  EXPECT_EQ(judge(nothing)[0].outcome, Outcome::kNotTried);
}

TEST(Judge, APlantedSlowdownMustBeFoundWithItsSizeAndSign) {
  SelfTestEvidence evidence = sound();
  evidence.planted[2].d = normal(40, std::log1p(0.02), 0.01, 2);  // says 2%, is 10%
  EXPECT_EQ(judge(evidence)[3].outcome, Outcome::kMissed);
  evidence.planted[2].d = normal(40, -0.1, 0.01, 2);
  EXPECT_EQ(judge(evidence)[3].outcome, Outcome::kMissed) << "slower seen as faster";
  evidence.planted[2].d = normal(200, 0, 0.01, 2);
  EXPECT_EQ(judge(evidence)[3].outcome, Outcome::kMissed) << "never found";
  evidence.planted[2].d = normal(2, 0.1, 0.01, 2);
  EXPECT_EQ(judge(evidence)[3].outcome, Outcome::kNotTried) << "too little time";
  evidence.planted[2].d.clear();
  EXPECT_EQ(judge(evidence)[3].outcome, Outcome::kNotTried);
}

TEST(Judge, BarriersAreCaughtAndHonestWorkersAreNot) {
  SelfTestEvidence evidence = sound();
  evidence.barriers[0].outcome = evidence.barriers[1].outcome;
  evidence.barriers[1].outcome = "";
  EXPECT_EQ(judge(evidence)[4].outcome, Outcome::kMissed);
  EXPECT_EQ(judge(evidence)[5].outcome, Outcome::kMissed);
  evidence.barriers[1].outcome = "run: exit code 1";
  EXPECT_EQ(judge(evidence)[5].outcome, Outcome::kMissed) << "a crash is not being caught";
  evidence.barriers.clear();
  evidence.no_barriers = "jax is not installed";
  EXPECT_EQ(judge(evidence)[4].outcome, Outcome::kNotTried);
  EXPECT_EQ(judge(evidence)[4].seen, "jax is not installed");
}

TEST(Judge, ABusyMachineIsNamed) {
  SelfTestEvidence evidence = sound();
  evidence.host = {.rounds = 10, .judged = 10, .busy = 9, .worst = "other processes used 50%"};
  const Claim claim = judge(evidence).back();
  EXPECT_EQ(claim.outcome, Outcome::kMissed);
  EXPECT_THAT(claim.seen, HasSubstr("9 of 10 rounds disturbed, 0 run again; for example: other processes"));
}

TEST(PairsToDecide, IsTheFirstLookThatDoes) {
  EXPECT_EQ(pairs_to_decide({}, 0.01), std::nullopt);
  EXPECT_EQ(pairs_to_decide(normal(100, 0, 0.01, 4), 0.01), std::nullopt);
  const auto pairs = pairs_to_decide(normal(100, 0.1, 0.01, 4), 0.01);
  ASSERT_TRUE(pairs);
  EXPECT_GE(*pairs, 4u) << "no gap decides 1% sooner";
  EXPECT_LE(*pairs, 6u);
}

TEST(BlockLine, IsOneLineOfStepAndBurstTimes) {
  const Trial a{.bursts = {{3'000'000, 2}}, .step_ns = {1'500'000, 1'250'000}};
  const Trial b{.bursts = {{4'000'000, 2}, {6'000'000, 2}}};
  EXPECT_EQ(block_line(a, b), R"({"a":[1.5,1.25],"b":[2.0,3.0],"a_bursts":[1.5],"b_bursts":[2.0,3.0]})");
  Trial warming = b;
  warming.warmup_bursts = 1;
  EXPECT_THAT(block_line(a, warming), HasSubstr(R"("b_bursts":[3.0])"));
}

TEST(SelfTestContenders, AreAllThatTrainFirstThoseThatWorkCanBePlantedIn) {
  const SelfTestNames names = selftest_names();
  EXPECT_THAT(names.all, IsSupersetOf({"torch", "tensorflow", "jax", "keras-tensorflow", "keras-torch",
                                       "keras-jax", "keras2", "libtorch"}));
  EXPECT_THAT(names.all, Not(Contains("onnxruntime"))) << "it does not train";
  EXPECT_THAT(std::span(names.all).first(names.plantable), IsSupersetOf({"torch", "tensorflow", "jax"}));
  EXPECT_THAT(std::span(names.all).subspan(names.plantable), IsSupersetOf({"keras-jax", "libtorch"}));
}

TEST(SelfTestContenders, RunWhereTheirFrameworkDoes) {
  std::map<std::string, std::string> places;
  for (const SelfTestContender& contender : selftest_contenders())
    places[contender.name] = contender.environment;
  EXPECT_EQ(places["keras-jax"], "jax");
  EXPECT_EQ(places["keras2"], "keras2");
  EXPECT_EQ(places["libtorch"], "torch");
}

TEST(SelfTestContenders, HaveFaults) {
  std::vector<std::string> barriers;
  for (const SelfTestContender& contender : selftest_contenders()) {
    SCOPED_TRACE(contender.name);
    const emit::Faults& faults = contender.framework->faults;
    if (contender.has_own_loop()) {
      EXPECT_THAT(faults.repeated_steps(20), HasSubstr("steps % 20 == 0"));
    }
    EXPECT_EQ(faults.no_barrier.empty(), faults.unread_loss.empty());
    if (!faults.no_barrier.empty()) barriers.push_back(contender.name);
  }
  EXPECT_THAT(barriers, Contains("jax"));
}

TEST(SelfTestWorkload, IsOne) {
  const auto workload = ir::parse(selftest_workload(), "selftest.ir");
  ASSERT_TRUE(workload) << workload.error().text();
  EXPECT_EQ(workload->name, "selftest");
}

TEST(SelfTest, WithoutAFrameworkSaysWhatToDo) {
  const testing::TestFolder folder;
  const auto said = [](const std::string&) {};
  const auto seen = [](const Happening&) {};
  const auto none = selftest({.folder = folder / "none"}, {}, said, seen);
  ASSERT_FALSE(none);
  EXPECT_THAT(none.error().remedy, HasSubstr("bakeoff env create torch"));
  const Interpreters absent = {{"jax", {.python = "", .why_not = "not created"}}};
  const auto jax = selftest({.framework = "jax", .folder = folder / "jax"}, absent, said, seen);
  ASSERT_FALSE(jax);
  EXPECT_THAT(jax.error().message, HasSubstr("no environment for jax"));
}

}  // namespace
}  // namespace bakeoff
