#include "plan/plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plan/lane.h"
#include "plan/testing.h"
#include "records/controls.h"

namespace bakeoff {
namespace {

using ::testing::HasSubstr;
using testing::TestFolder;

const Interpreters kTorch = {{"torch", {"/usr/bin/python3", "", "some"}}};

class PlanTest : public ::testing::Test {
 protected:
  PlanTest() { ::setenv("BAKEOFF_HOME", (folder_ / "home").c_str(), 1); }
  ~PlanTest() override { ::unsetenv("BAKEOFF_HOME"); }

  recipe::Recipe recipe(const std::string& contender, const std::string& race) {
    return recipe::parse(
               "workload = \"mlp_small\"\nbatch = 10\ncontenders = [{ framework = \"torch\"" + contender +
                   " }]\n[data]\nsamples = 20\n[optimizer]\nkind = \"sgd\"\nlr = 0.1\n[race]\n" + race,
               "r.toml")
        .value();
  }

  TestFolder folder_;
};

TEST_F(PlanTest, EveryLaneHasItsControlsAndKeepsThemWhenReopened) {
  recipe::Recipe with =
      recipe(", allocator = [\"default\", \"tuned\"]", "threads = 1\nburst_seconds = 0.1\n");
  with.race.cooldown_seconds = 0.02;  // as from a profile: not in the recipe's text
  const auto plan = make_plan(with, folder_ / "run", kTorch, kSilent, {{"measured", "today"}});
  ASSERT_TRUE(plan) << plan.error().text();
  fs::copy(folder_ / "run", folder_ / "moved", fs::copy_options::recursive);  // the first is locked
  const auto again = reopen_plan(folder_ / "moved", kTorch);
  ASSERT_TRUE(again) << again.error().text();
  for (const auto* p : {&plan, &again}) {
    const auto& lanes = (*p)->lanes;
    ASSERT_EQ(lanes.size(), 2u);
    EXPECT_FALSE(lanes[0].failure);
    EXPECT_FALSE(lanes[0].entry.worker.environment.contains("MALLOC_TRIM_THRESHOLD_"));
    EXPECT_EQ(lanes[1].entry.worker.environment.at("MALLOC_TRIM_THRESHOLD_"), "4294967296");
    for (const Lane& lane : lanes) {
      EXPECT_EQ(lane.entry.worker.threads, 1);
      EXPECT_EQ(lane.entry.worker.environment.at("OMP_NUM_THREADS"), "1");
      EXPECT_EQ(lane.entry.worker.cpus.size(), 1u);
      EXPECT_FALSE(lane.entry.worker.options.contains("allocator")) << "no business of the framework's";
    }
    EXPECT_EQ((*p)->recipe.race.cooldown_seconds, 0.02);
    EXPECT_EQ((*p)->manifest.contenders[1].stated, (Texts{{"allocator", "tuned"}}));
    EXPECT_EQ((*p)->manifest.contenders[1].controls.at("threads"), "1");
    EXPECT_EQ((*p)->manifest.calibration.at("measured"), "today");
  }
}

// A contender that makes eight steps in a call cannot stand where the referee does after ten.
TEST_F(PlanTest, TheGateTakesStepsOfWholeCalls) {
  const auto gate_with = [&](const std::string& settings, const std::string& folder) {
    const auto parsed = recipe::parse(
        "workload = \"mlp_small\"\nbatch = 2\ncontenders = [{ framework = \"jax\", steps_per_call = " +
            settings + " }]\n[data]\nsamples = 2000\n[optimizer]\nkind = \"sgd\"\nlr = 0.1\n",
        "r.toml");
    const auto plan = make_plan(parsed.value(), folder_ / folder, kTorch, kSilent);
    EXPECT_TRUE(plan) << plan.error().text();
    return std::pair(plan->gate, plan->lanes.back().entry.steps_per_call);
  };
  EXPECT_EQ(gate_with("1", "a").first.steps, 10);
  const auto [some, eight] = gate_with("[3, 4]", "b");
  EXPECT_EQ(some.per_call, 12);
  EXPECT_EQ(some.steps, 12);
  EXPECT_EQ(eight, 4);
  const auto [many, long_calls] = gate_with("[1, 500]", "c");
  EXPECT_EQ(many.steps, 10) << "not for calls that long";
  EXPECT_EQ(long_calls, 500);
}

TEST_F(PlanTest, WhatCannotBeEmittedSaysWhatToDoInstead) {
  const auto plan = make_plan(recipe(", workers = 2", ""), folder_ / "run", kTorch, kSilent);
  ASSERT_TRUE(plan) << plan.error().text();
  ASSERT_TRUE(plan->lanes[0].failure);
  EXPECT_EQ(plan->lanes[0].failure->stage, Stage::kEmit);
  EXPECT_THAT(plan->lanes[0].failure->reason, HasSubstr("no DataLoader, and it no workers; set input ="));
}

TEST_F(PlanTest, AControlThatIsNotThereIsTheContendersFailureOrTheRecipesError) {
  const auto one = make_plan(recipe(", pin = [\"0\", \"4095\"]", ""), folder_ / "one", kTorch, kSilent);
  ASSERT_TRUE(one) << one.error().text();
  ASSERT_TRUE(one->lanes[1].failure);
  EXPECT_EQ(one->lanes[1].failure->stage, Stage::kControls);
  EXPECT_THAT(one->lanes[1].failure->reason, HasSubstr("may not run on CPU 4095"));
  const auto all = make_plan(recipe("", "pin = \"4095\"\n"), folder_ / "all", kTorch, kSilent);
  ASSERT_FALSE(all);
  EXPECT_EQ(all.error().where, "r.toml:10");
  EXPECT_FALSE(fs::exists(folder_ / "all")) << "nothing is left behind";
}

}  // namespace
}  // namespace bakeoff
