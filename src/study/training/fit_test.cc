// Whole trainings: what is asked of each contender, by workers of the fake framework where they fail.
// Trainings that end well are those of real frameworks (tests/cli/fit_test.py).

#include "study/training/fit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "plan/fake_lanes_testing.h"
#include "plan/lane.h"
#include "plan/rows.h"
#include "plan/testing.h"
#include "records/records.h"
#include "study/training/fit_rows.h"

namespace bakeoff {
namespace {

using testing::all_pass;
using testing::fake_spec;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using testing::TestFolder;

TEST(HeldRows, AreThoseAskedForElseTheTestPictures) {
  recipe::Recipe recipe;
  EXPECT_EQ(held_rows(recipe), 0);
  EXPECT_EQ(trained_sample(recipe, 500), 500);
  EXPECT_EQ(trained_sample(recipe, 50'000), kTrainedSample);
  recipe.data.kind = "mnist";
  EXPECT_EQ(held_rows(recipe), 10'000);
  EXPECT_EQ(trained_sample(recipe, 60'000), 10'000);
  recipe.fit.rows = 300;
  EXPECT_EQ(held_rows(recipe), 300);
  EXPECT_EQ(trained_sample(recipe, 60'000), 300);
}

TEST(CheckFit, RefusesToHoldOutMoreThanThereIs) {
  recipe::Recipe recipe;
  recipe.training.batch = 10;
  recipe.fit.rows = 91;
  EXPECT_TRUE(check_fit(recipe, 100)) << "nothing is asked for";
  recipe.fit.epochs = 1;
  EXPECT_THAT(check_fit(recipe, 100).error().message,
              HasSubstr("91 rows are to be held out, but only 90 can be"));
  recipe.fit.rows = 90;
  EXPECT_TRUE(check_fit(recipe, 100));
  recipe.data.kind = "mnist";
  recipe.fit.rows = 10'001;
  EXPECT_FALSE(check_fit(recipe, 60'000));
}

TEST(NextStretch, IsTheRestOfAnEpochOrWhatTheDeadlineAllows) {
  EXPECT_EQ(next_stretch(0, 468, 234, 0.1, 300), 234);
  EXPECT_EQ(next_stretch(100, 468, 234, 0.1, 300), 134) << "up to the epoch's end";
  EXPECT_EQ(next_stretch(400, 468, 234, 0.1, 300), 68);
  EXPECT_EQ(next_stretch(400, 410, 234, 0.1, 300), 10) << "not beyond the last";
  EXPECT_EQ(next_stretch(0, 468, 234, 1, 300), 75) << "a quarter of 300 s";
  EXPECT_EQ(next_stretch(0, 468, 234, 1000, 300), 1);
  EXPECT_EQ(next_stretch(0, 468, 234, 0, 300), 1) << "nothing is known";
  EXPECT_EQ(next_stretch(512, 700, 234, 0.1, 300), 188) << "a framework that did more than it was asked for";
}

TEST(OutOfPatience, CountsEpochsWithoutALowerLoss) {
  const auto ends = [](const std::vector<double>& losses, int64_t patience, double min_delta = 0) {
    std::vector<TargetLook> watched;
    for (const double loss : losses) watched.push_back({.loss = loss});
    return out_of_patience(watched, {.patience = patience, .min_delta = min_delta});
  };
  const double nan = std::nan("");
  EXPECT_FALSE(ends({1, 2, 3, 4}, 0)) << "never";
  EXPECT_FALSE(ends({1}, 1)) << "the first loss is the lowest so far";
  EXPECT_TRUE(ends({1, 1}, 1)) << "equal is not lower";
  EXPECT_FALSE(ends({1, 2, 0.5, 0.7}, 2)) << "it fell between";
  EXPECT_TRUE(ends({1, 2, 0.5, 0.7, 0.6}, 2)) << "lower than the last, not than the lowest";
  EXPECT_FALSE(ends({1, 0.9, 0.8, 0.7}, 2, 0.05));
  EXPECT_TRUE(ends({1, 0.99, 0.98}, 2, 0.05));
  EXPECT_FALSE(ends({1, 0.97, 0.94, 0.91}, 2, 0.05)) << "small falls add up";
  EXPECT_TRUE(ends({1, nan, nan}, 2)) << "no number is never lower";
  EXPECT_FALSE(ends({}, 1));
}

TEST(TypicalStep, IsTheMedianOfSoundTrials) {
  const auto trial = [](double ms) {
    const auto ns = static_cast<int64_t>(ms * 1e7);
    return Trial{.contender = "a", .bursts = {{ns, 10}, {ns, 10}}};
  };
  Trial dead = trial(1);
  dead.failure = Failure{Stage::kRun, "gone", {}};
  EXPECT_NEAR(typical_step_ms({trial(8), trial(2), dead, trial(3)}, "a").value(), 3, 1e-9);
  EXPECT_FALSE(typical_step_ms({trial(8)}, "b"));
}

ir::Workload line() {
  using Ints = ir::Shape;
  ir::Builder b("line");
  const auto x = b.input("x", {ir::DType::kF32, Ints{ir::kBatch, 2}});
  const auto y = b.input("y", {ir::DType::kI32, Ints{ir::kBatch}});
  return b.finish(b.softmax_cross_entropy(b.linear(x, "fc", 2), y)).value();
}

Plan plan_of(const fs::path& folder, const std::vector<std::map<std::string, std::string>>& lanes) {
  Plan plan{.recipe = {}, .directory = RunDirectory::create(folder).value()};
  plan.recipe.workload = line();
  plan.recipe.training.batch = 10;
  plan.recipe.fit = {.epochs = 2, .rows = 10};
  plan.gate.folder = folder;
  plan.gate.data = folder / "data.safetensors";
  plan.gate.rows = 60;
  EXPECT_TRUE(testing::write_random_data(plan.recipe.workload, 60, 2, plan.gate.data));
  for (const auto& options : lanes) {
    const std::string id(1, static_cast<char>('a' + plan.lanes.size()));
    testing::add_fake_lane(plan, id, options);
  }
  return plan;
}

// Timed at 2 ms a step.
std::vector<Trial> timed(const Plan& plan) {
  std::vector<Trial> trials;
  for (const Contender& c : plan.manifest.contenders)
    trials.push_back({.contender = c.id, .bursts = {{20'000'000, 10}, {20'000'000, 10}}});
  return trials;
}

TEST(Fit, DoesNothingUnasked) {
  const TestFolder folder;
  Plan plan = plan_of(folder / "run", {{}});
  plan.recipe.fit = {};
  ASSERT_TRUE(fit(
      {.plan = plan, .parities = all_pass(plan), .trials = timed(plan), .progress = [](const std::string&) {
         FAIL();
       }}));
  EXPECT_THAT(plan.directory.read<FitTrial>().value(), IsEmpty());
}

TEST(Fit, WhoeverFailsIsARecordWithItsReasonAndIsNotTrainedAgain) {
  const TestFolder folder;
  Plan plan =
      plan_of(folder / "run", {{{"crash_step", "7"}, {"crash_how", "segv"}}, {{"crash_at", "build"}}});
  plan.recipe.fit.seeds = 2;
  std::vector<std::string> said;
  const Progress hear = [&](const std::string& line) { said.push_back(line); };
  ASSERT_TRUE(fit({.plan = plan, .parities = all_pass(plan), .trials = timed(plan), .progress = hear}));
  ASSERT_THAT(said, SizeIs(1));
  EXPECT_THAT(said[0], HasSubstr("2 epochs of 50 rows by 2 contenders, 2 times take about 1 s"))
      << "2 contenders x 2 seeds x 10 steps x 2 ms, told in whole seconds";
  auto records = plan.directory.read<FitTrial>().value();
  ASSERT_THAT(records, SizeIs(2)) << "once failed, no second seed";
  if (records[0].contender == "b") std::swap(records[0], records[1]);
  EXPECT_EQ(records[0].failure->stage, Stage::kRun);
  EXPECT_THAT(records[0].failure->reason, HasSubstr("SIGSEGV"));
  ASSERT_THAT(records[0].stretches, SizeIs(1)) << "the first epoch's 5 steps were done";
  EXPECT_EQ(records[0].stretches[0].steps, 5);
  EXPECT_THAT(records[0].rounds, SizeIs(1));
  EXPECT_EQ(records[1].failure->stage, Stage::kBuild);
  EXPECT_FALSE(records[1].on_trained);
  ASSERT_TRUE(fit({.plan = plan, .parities = all_pass(plan), .trials = timed(plan), .progress = hear}));
  EXPECT_THAT(plan.directory.read<FitTrial>().value(), SizeIs(2)) << "goes on where it stood";
  EXPECT_THAT(said, SizeIs(1)) << "nothing is left to do";
  EXPECT_FALSE(fs::exists(folder / "run/fit_data.safetensors"));
}

TEST(Fit, TheBudgetOfTheCommandEndsItInMidTraining) {
  const TestFolder folder;
  const Plan plan = plan_of(folder / "run", {{}});
  int asked = 0;  // before a seed, before a process, and before each of two epochs
  ASSERT_TRUE(fit({.plan = plan, .parities = all_pass(plan), .trials = timed(plan), .over = [&] {
                     return ++asked > 3;
                   }}));
  EXPECT_EQ(asked, 4);
  EXPECT_THAT(plan.directory.read<FitTrial>().value(), IsEmpty()) << "cut short is no record";
  ASSERT_TRUE(fit({.plan = plan, .parities = all_pass(plan), .trials = timed(plan)}));
  EXPECT_THAT(plan.directory.read<FitTrial>().value(), SizeIs(1)) << "it goes on";
}

TEST(Fit, WhoeverBreaksARuleIsAFailureWithIt) {
  const TestFolder folder;
  const Plan plan = plan_of(
      folder / "run", {{{"step_ms", "60"}}, {{"step_ms", "60"}, {"barrier", "late"}}, {{"lie", "twice"}}});
  ASSERT_TRUE(fit({.plan = plan, .parities = all_pass(plan), .trials = timed(plan)}));
  std::map<std::string, Failure> failures;
  const auto records = plan.directory.read<FitTrial>().value();
  for (const FitTrial& trial : records) failures[trial.contender] = trial.failure.value_or(Failure{});
  EXPECT_EQ(failures["a"].stage, Stage::kState) << "it has no such parameters, and breaks no rule";
  EXPECT_EQ(failures["b"].stage, Stage::kRun);
  EXPECT_THAT(failures["b"].reason,
              HasSubstr("breaks a rule of physics or arithmetic, samples/s x time = samples"));
  EXPECT_THAT(failures["c"].reason, HasSubstr("steps answered = steps asked for"));
}

TEST(Fit, ThrownOutOfTheRaceIsThrownOutOfThis) {
  const TestFolder folder;
  const Plan plan = plan_of(folder / "run", {{}});
  auto trials = timed(plan);
  trials[0].failure = Failure{Stage::kRun, "gone", {}};
  ASSERT_TRUE(fit({.plan = plan, .parities = all_pass(plan), .trials = trials}));
  EXPECT_THAT(plan.directory.read<FitTrial>().value(), IsEmpty());
}

}  // namespace
}  // namespace bakeoff
