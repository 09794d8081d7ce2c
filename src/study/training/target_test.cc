#include "study/training/target.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "data/inputs.h"
#include "ir/text.h"
#include "plan/fake_lanes_testing.h"
#include "plan/lane.h"
#include "plan/rows.h"
#include "plan/testing.h"
#include "records/records.h"
#include "referee/init.h"
#include "study/training/target_rows.h"
#include "study/training/training_setup.h"

namespace bakeoff {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;
using testing::TestFolder;

// Two numbers a row; class 1 where the first is the larger.
ir::Workload sides() {
  return ir::parse(
             "workload sides(x: f32[N,2], y: i32[N]) {\n"
             "  logits = linear(x; weight=fc.weight[2,2], bias=fc.bias[2])\n"
             "  loss = softmax_cross_entropy(logits, y) reduction=mean\n}\n",
             "sides.ir")
      .value();
}

Status write_sides(int64_t rows, const fs::path& file) {
  tensor::Rng rng(9);
  tensor::Tensor x = tensor::zeros({rows, 2});
  tensor::IntTensor y{{rows}, {}};
  for (int64_t i = 0; i < rows; ++i) {
    const double a = rng.uniform(-1, 1), b = rng.uniform(-1, 1);
    x.data[static_cast<size_t>(2 * i)] = a;
    x.data[static_cast<size_t>(2 * i + 1)] = b;
    y.data.push_back(a > b);
  }
  TRY(auto raw_x, tensor::encode(x, tensor::DType::kF32));
  TRY(auto raw_y, tensor::encode(y, tensor::DType::kI32));
  return tensor::write_safetensors(file, {{"x", std::move(raw_x)}, {"y", std::move(raw_y)}});
}

HeldOut held_out(const fs::path& file, int64_t rows) {
  HeldOut held{.workload = sides(), .has_classes = true};
  for (int64_t at = 0; at < rows; at += 40)
    held.batches.push_back(read_inputs(held.workload, file, 1, at, std::min<int64_t>(40, rows - at)).value());
  return held;
}

referee::Weights weights_of(std::vector<double> w, std::vector<double> b) {
  return {tensor::Tensor{{2, 2}, std::move(w)}, tensor::Tensor{{2}, std::move(b)}};
}

TEST(LookAt, CountsWhatIsRightAndWeighsBatchesByTheirRows) {
  const TestFolder folder;
  ASSERT_TRUE(write_sides(100, folder / "data"));
  const HeldOut held = held_out(folder / "data", 100);  // 40, 40 and 20 rows
  const auto right = look_at(held, weights_of({-50, 50, 50, -50}, {0, 0}));
  ASSERT_TRUE(right) << right.error().text();
  EXPECT_EQ(right->accuracy, 1);
  EXPECT_LT(right->loss, 0.2);
  EXPECT_EQ(look_at(held, weights_of({50, -50, -50, 50}, {0, 0}))->accuracy, 0);
  EXPECT_NEAR(look_at(held, weights_of({0, 0, 0, 0}, {0, 0}))->loss, std::log(2), 1e-12);
  const auto one = look_at(held, weights_of({0, 0, 0, 0}, {0, 1}));
  const auto all = read_inputs(held.workload, folder / "data", 1, 0, 100).value();
  const auto whole =
      referee::evaluate(held.workload, weights_of({0, 0, 0, 0}, {0, 1}), all, {.train = false});
  EXPECT_NEAR(one->loss, whole->loss, 1e-12) << "cut into batches, and as one";
}

TEST(HasClasses, OnlyWhereLabelsAreAnInput) {
  EXPECT_TRUE(has_classes(sides()));
  const auto mse = ir::parse(
      "workload m(x: f32[N,2], y: f32[N,2]) {\n  h = linear(x; weight=w[2,2])\n"
      "  loss = mse(h, y) reduction=mean\n}\n",
      "m.ir");
  ASSERT_TRUE(mse) << mse.error().text();
  EXPECT_FALSE(has_classes(*mse));
}

TEST(CheckTarget, RefusesWhatCannotBe) {
  recipe::Recipe recipe{.workload = sides()};
  recipe.training.batch = 10;
  EXPECT_TRUE(check_target(recipe, 20)) << "no target";
  recipe.target = {.accuracy = 0.9, .rows = 100};
  EXPECT_TRUE(check_target(recipe, 110));
  EXPECT_THAT(check_target(recipe, 109).error().message,
              HasSubstr("100 rows are to be held out, but only 99 can be"));
  recipe.training.track = ir::Track::kAsIs;
  recipe.contenders = {{.framework = "jax", .settings = {{"steps_per_call", "3"}}, .id = "jax"}};
  EXPECT_THAT(check_target(recipe, 129).error().message,
              HasSubstr("100 rows are to be held out, but only 99 can be"))
      << "one call is left to train on";
  recipe.data.kind = "mnist";
  EXPECT_TRUE(check_target(recipe, 109)) << "of its test pictures";
  recipe.target.rows = 10001;
  EXPECT_FALSE(check_target(recipe, 60000));
  recipe.target.rows = 1;
  recipe.workload.nodes.back().op = ir::Op::kMse;
  EXPECT_THAT(check_target(recipe, 60000).error().message, HasSubstr("has no classes"));
  recipe.target = {.loss = 0.1, .rows = 1};
  EXPECT_TRUE(check_target(recipe, 60000));
}

TEST(Meets, AtLeastAnAccuracyAtMostALoss) {
  EXPECT_TRUE(meets({.accuracy = 0.9}, {.loss = 5, .accuracy = 0.9}));
  EXPECT_FALSE(meets({.accuracy = 0.9}, {.loss = 0, .accuracy = 0.89}));
  EXPECT_TRUE(meets({.loss = 0.1}, {.loss = 0.1}));
  EXPECT_FALSE(meets({.loss = 0.1}, {.loss = NAN}));
}

TEST(WriteShuffled, KeepsRowsTogetherAndLeavesTheHeldOutOnesAlone) {
  const TestFolder folder;
  ASSERT_TRUE(write_sides(60, folder / "data"));
  ASSERT_TRUE(write_shuffled(sides(), folder / "data", 50, 3, folder / "a"));
  ASSERT_TRUE(write_shuffled(sides(), folder / "data", 50, 3, folder / "b"));
  ASSERT_TRUE(write_shuffled(sides(), folder / "data", 50, 4, folder / "c"));
  EXPECT_EQ(read_file(folder / "a").value(), read_file(folder / "b").value());
  EXPECT_NE(read_file(folder / "a").value(), read_file(folder / "c").value());
  const auto before = tensor::SafetensorsFile::open(folder / "data").value();
  const auto after = tensor::SafetensorsFile::open(folder / "a").value();
  const auto x = after.read("x").value();
  const auto y = after.read_ints("y").value();
  ASSERT_EQ(x.shape, (tensor::Shape{50, 2}));
  for (size_t i = 0; i < 50; ++i) EXPECT_EQ(y.data[i], x.data[2 * i] > x.data[2 * i + 1]) << "row " << i;
  auto first = before.read_rows("x", 0, 50).value().data, shuffled = x.data;
  EXPECT_NE(first, shuffled);
  std::sort(first.begin(), first.end());
  std::sort(shuffled.begin(), shuffled.end());
  EXPECT_EQ(first, shuffled) << "all of the first 50 and nothing else";
}

ir::Training sgd(double lr) {
  ir::Training training;
  training.batch = 10;
  training.optimizer.kind = ir::OptimizerKind::kSgd;
  training.optimizer.lr = lr;
  return training;
}

TEST(TrainReferee, LooksUntilTheTarget) {
  const TestFolder folder;
  ASSERT_TRUE(write_sides(400, folder / "data"));
  const HeldOut held = held_out(folder / "data", 100);
  const recipe::Target target = {.accuracy = 0.9, .every = 4, .epochs = 20};
  const auto weights = referee::initial_weights(held.workload, 2);
  const auto trial = train_referee(held, sgd(0.5), target, weights, folder / "data", 400);
  ASSERT_TRUE(trial) << trial.error().text();
  ASSERT_TRUE(trial->reached);
  EXPECT_EQ(trial->looks.back().steps, 4 * static_cast<int64_t>(trial->looks.size()));
  EXPECT_GE(trial->looks.back().accuracy, 0.9);
  for (size_t i = 0; i + 1 < trial->looks.size(); ++i) EXPECT_LT(trial->looks[i].accuracy, 0.9);
}

TEST(TrainReferee, EndsWithTheLastEpochOrALossThatIsNone) {
  const TestFolder folder;
  ASSERT_TRUE(write_sides(100, folder / "data"));
  const HeldOut held = held_out(folder / "data", 100);
  const auto weights = referee::initial_weights(held.workload, 2);
  const recipe::Target never = {.accuracy = 1, .every = 4, .epochs = 1.5};
  const auto trial = train_referee(held, sgd(0), never, weights, folder / "data", 100).value();
  EXPECT_FALSE(trial.reached);
  EXPECT_THAT(trial.looks, SizeIs(4)) << "after 4, 8 and 12 steps, and after the last, 15";
  EXPECT_EQ(trial.looks.back().steps, 15);
  const auto lost = train_referee(held, sgd(1e308), never, weights, folder / "data", 100).value();
  EXPECT_FALSE(lost.reached);
  EXPECT_THAT(lost.looks, SizeIs(1));
}

// Looked at every `every` steps.
TargetTrial trained(const std::string& id, int seed, int64_t steps, bool reached = true, int64_t every = 10) {
  TargetTrial trial{.contender = id, .seed = seed, .start_up_ns = 2'000'000'000, .reached = reached};
  for (int64_t at = every; at < steps + every; at += every) {
    const int64_t here = std::min(at, steps);
    trial.looks.push_back({.steps = here, .ns = here * 10'000'000, .loss = 0.1, .accuracy = 0.97});
  }
  return trial;
}

// Five seeds of the referee, and of "a" with so many steps each.
std::vector<TargetTrial> five(const std::vector<int64_t>& referee, const std::vector<int64_t>& a) {
  std::vector<TargetTrial> trials;
  for (size_t i = 0; i < referee.size(); ++i) {
    trials.push_back(trained(TargetTrial::kReferee, static_cast<int>(i) + 1, referee[i]));
    trials.push_back(trained("a", static_cast<int>(i) + 1, a[i]));
  }
  return trials;
}

const recipe::Target kAsked = {.accuracy = 0.97};

TEST(TargetRows, AreGeometricMeansOverSeeds) {
  const auto rows = target_rows(five({100, 400}, {100, 400}), {"a"}, kAsked, 1000, 10, 0.05);
  ASSERT_THAT(rows, SizeIs(2));
  EXPECT_TRUE(rows[0].is_referee());
  EXPECT_FALSE(rows[0].seconds);
  const TargetRow& a = rows[1];
  EXPECT_EQ(a.reached, 2);
  EXPECT_NEAR(a.steps->value, 200, 1e-9);
  EXPECT_NEAR(a.epochs->value, 2, 1e-9) << "100 steps an epoch";
  EXPECT_NEAR(a.seconds->value, 2, 1e-9);
  EXPECT_NEAR(a.start_up_s, 2, 1e-9);
  // Logs are log 200 +- log 2; their mean's standard error is log 2, and t of one degree 12.706 at 95%.
  EXPECT_NEAR(a.steps->interval.high, 200 * std::pow(2, 12.706), 200 * std::pow(2, 12.706) * 1e-3);
}

TEST(TargetRows, OneSeedHasNoInterval) {
  const auto rows = target_rows({trained("a", 1, 100)}, {"a"}, kAsked, 1000, 10, 0.05);
  EXPECT_NEAR(rows.at(0).steps->value, 100, 1e-9);
  EXPECT_FALSE(rows.at(0).steps->interval.bounded());
  EXPECT_EQ(rows.at(0).convergence, Convergence::kNotCompared) << "there is no referee";
}

TEST(TargetRows, WithoutReachingItThereIsNoMean) {
  auto trials = five({100, 100}, {100, 100});
  trials.back().reached = false;
  const TargetRow a = target_rows(trials, {"a"}, kAsked, 1000, 10, 0.05).at(1);
  EXPECT_EQ(a.reached, 1);
  EXPECT_FALSE(a.steps);
  EXPECT_THAT(a.note, HasSubstr("1 of 2 trainings did not reach it within 5 epochs"));
}

TEST(Convergence, WorseBeyondChanceNeedsEverySeedToSaySo) {
  const std::vector<int64_t> referee = {100, 120, 90, 110, 100, 130};
  const auto judged = [&](const std::vector<int64_t>& a) {
    return target_rows(five(referee, a), {"a"}, kAsked, 1000, 10, 0.05).at(1);
  };
  const TargetRow same = judged(referee);
  EXPECT_EQ(same.convergence, Convergence::kWithinChance);
  EXPECT_EQ(same.p, 1);
  EXPECT_NEAR(same.ratio, 1, 1e-12);
  EXPECT_EQ(judged({110, 110, 100, 100, 110, 120}).convergence, Convergence::kWithinChance)
      << "now more, now less";
  const TargetRow worse = judged({150, 180, 140, 160, 150, 200});
  EXPECT_EQ(worse.convergence, Convergence::kWorse);
  EXPECT_NEAR(worse.p, 1 / 64.0, 1e-12);
  EXPECT_NEAR(worse.ratio, 1.5, 0.05);
  EXPECT_EQ(judged({50, 60, 40, 60, 50, 60}).convergence, Convergence::kWithinChance)
      << "faster is not worse";
}

TEST(Convergence, WhoeverDoesNotArriveIsLate) {
  std::vector<TargetTrial> trials;
  for (int seed = 1; seed <= 6; ++seed) {
    trials.push_back(trained(TargetTrial::kReferee, seed, 100));
    trials.push_back(trained("a", seed, 150, false));
    trials.push_back(trained("b", seed, 100));
  }
  const auto rows = target_rows(trials, {"a", "b"}, kAsked, 1000, 10, 0.05);
  EXPECT_EQ(rows.at(1).convergence, Convergence::kWorse) << "1/64 is below half of 5%";
  EXPECT_EQ(rows.at(2).convergence, Convergence::kWithinChance);
}

TEST(Convergence, WhoeverEndsEarlyWithoutANumberIsLateToo) {
  std::vector<TargetTrial> trials;
  for (int seed = 1; seed <= 6; ++seed) {
    trials.push_back(trained(TargetTrial::kReferee, seed, 100));
    trials.push_back(trained("a", seed, 10, false));
    trials.back().looks.back().loss = NAN;
  }
  const TargetRow a = target_rows(trials, {"a"}, kAsked, 1000, 10, 0.05).at(1);
  EXPECT_EQ(a.convergence, Convergence::kWorse);
  EXPECT_NEAR(a.ratio, 10, 1e-9) << "twice 5 epochs of 100 steps, over 100";
}

TEST(Convergence, RarerLooksAreNoSlowerConvergence) {
  // The same trainings, seen every 20 steps and every 64.
  const std::vector<int64_t> referee = {100, 140, 80, 120, 60, 200};
  const auto judged = [&](const std::vector<int64_t>& steps) {
    std::vector<TargetTrial> trials;
    for (int seed = 1; seed <= 6; ++seed) {
      const auto i = static_cast<size_t>(seed) - 1;
      trials.push_back(trained(TargetTrial::kReferee, seed, referee[i], true, 20));
      trials.push_back(trained("a", seed, steps[i], true, 64));
    }
    return target_rows(trials, {"a"}, kAsked, 1000, 10, 0.05).at(1);
  };
  const TargetRow same = judged({128, 192, 128, 128, 64, 256});
  EXPECT_EQ(same.convergence, Convergence::kWithinChance);
  EXPECT_NEAR(same.ratio, 1, 1e-12);
  EXPECT_NEAR(judged({64, 128, 64, 64, 64, 192}).ratio, std::pow(16, -1 / 6.0), 1e-9)
      << "a look earlier counts in full as well: 1/2, 2/3, 1/2, 1/2, 1, 3/4";
  EXPECT_EQ(judged({192, 256, 192, 192, 128, 320}).convergence, Convergence::kWorse);
}

TEST(Convergence, SaysWhenThereAreTooFewSeedsToShowAnything) {
  const TargetRow a =
      target_rows(five({100, 100, 100}, {200, 200, 200}), {"a"}, kAsked, 1000, 10, 0.05).at(1);
  EXPECT_EQ(a.convergence, Convergence::kWithinChance);
  EXPECT_THAT(a.note, HasSubstr("3 seeds cannot show a worse convergence: the least p is 0.12"));
}

TEST(TrainToTarget, WhoeverClaimsMoreStepsThanItWasAskedForIsAFailure) {
  const TestFolder folder;
  Plan plan{.recipe = {}, .directory = RunDirectory::create(folder / "run").value()};
  plan.recipe.workload = sides();
  plan.recipe.training.batch = 10;
  plan.recipe.target = {.accuracy = 0.9, .seeds = 1, .rows = 10, .every = 5, .epochs = 2, .referee = false};
  plan.gate.folder = folder.path();
  plan.gate.data = folder / "data";
  plan.gate.rows = 60;
  ASSERT_TRUE(write_sides(60, plan.gate.data));
  std::vector<Parity> parities;
  for (const std::string id : {"honest", "twice"}) {
    testing::add_fake_lane(plan, id);
    if (id == "twice") plan.lanes.back().entry.worker.options = {{"lie", "twice"}};
    parities.push_back({.contender = id});
  }
  const Status done = train_to_target({.plan = plan, .parities = parities, .trials = {}});
  ASSERT_TRUE(done) << done.error().text();
  const auto records = plan.directory.read<TargetTrial>().value();
  ASSERT_THAT(records, SizeIs(2));
  for (const TargetTrial& trial : records) {
    ASSERT_TRUE(trial.failure);
    if (trial.contender == "twice") {
      EXPECT_THAT(trial.failure->reason, HasSubstr("breaks a rule of physics or arithmetic, steps answered"));
    } else {
      EXPECT_EQ(trial.failure->stage, Stage::kState) << "it has no such parameters, and breaks no rule";
    }
  }
}

TEST(TargetRows, AFailureIsARowWithItsReason) {
  TargetTrial dead{.contender = "a", .seed = 1, .failure = Failure{Stage::kRun, "exit code 1", ""}};
  const auto rows = target_rows({dead}, {"a", "b"}, kAsked, 1000, 10, 0.05);
  ASSERT_THAT(rows, SizeIs(1));
  EXPECT_EQ(rows[0].seeds, 0);
  EXPECT_EQ(rows[0].note, "run: exit code 1");
}

TEST(TargetNotes, SaySeedsThatWereLeftOutAndWhatWasDisturbed) {
  recipe::Recipe recipe;
  recipe.target = {.accuracy = 0.97, .seeds = 2};
  auto trials = five({100, 100}, {100, 100});
  EXPECT_THAT(target_notes(trials, recipe), SizeIs(0));
  EXPECT_THAT(target_notes({}, recipe), SizeIs(0));
  recipe.target.seeds = 7;
  trials[1].rounds = {{}, {}};
  trials[1].rounds[1].busy = "other processes";
  const auto notes = target_notes(trials, recipe);
  ASSERT_THAT(notes, SizeIs(2));
  EXPECT_THAT(notes[0], HasSubstr("2 of 7 seeds were trained"));
  EXPECT_THAT(notes[1], HasSubstr("1 of 2 stretches of training were disturbed: other processes"));
}

}  // namespace
}  // namespace bakeoff
