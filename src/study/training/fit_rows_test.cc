#include "study/training/fit_rows.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace bakeoff {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

// Two epochs of 10 steps each; the first one slower by `first_s`.
FitTrial trained(const std::string& id, double step_s, double loss, double first_s = 0, int seed = 1) {
  FitTrial trial{.contender = id, .seed = seed, .start_up_ns = 2'000'000'000};
  int64_t ns = 0;
  for (int epoch = 0; epoch < 2; ++epoch) {
    const double s = 10 * step_s + (epoch == 0 ? first_s : 0);
    trial.stretches.push_back({.ns = std::llround(s * 1e9), .steps = 10});
    trial.rounds.emplace_back();
    ns += trial.stretches.back().ns;
  }
  trial.on_trained = TargetLook{20, ns, loss, 0.9};
  trial.on_held = TargetLook{20, ns, loss + 0.1, 0.8};
  return trial;
}

const recipe::Fit kAsked = {.epochs = 2};
const FitScale kScale = {.rows = 105, .batch = 10, .untrained_loss = 2};

std::vector<RankedContender> contenders(const std::vector<std::string>& ids) {
  std::vector<RankedContender> all;
  for (const std::string& id : ids) all.push_back({id, "float32", 100});
  return all;
}

FitRow row_of(const FitTrial& trial) {
  return fit_rows({trial}, contenders({trial.contender}), kAsked, kScale).at(0);
}

TEST(FitRows, AreSecondsLossAndAccuracyOfTheEpochsAskedFor) {
  const FitRow row = row_of(trained("a", 0.1, 0.2, 0.5));
  EXPECT_EQ(row.seeds, 1);
  EXPECT_NEAR(row.seconds.median, 2.5, 1e-9);
  EXPECT_EQ(row.seconds.least, row.seconds.most);
  EXPECT_NEAR(row.epoch_s, 1.25, 1e-9) << "the median of 1.5 and 1";
  EXPECT_NEAR(row.start_up_s, 2, 1e-9);
  EXPECT_NEAR(row.over_steps.value(), 1.25, 1e-9) << "20 steps of 100 ms are 2 s";
  EXPECT_NEAR(row.loss->median, 0.2, 1e-12);
  EXPECT_NEAR(row.held_loss->median, 0.3, 1e-12);
  EXPECT_NEAR(row.accuracy->median, 0.8, 1e-12) << "of the rows that nobody trained on";
  EXPECT_FALSE(row.wait_s) << "the loop does not tell";
  EXPECT_EQ(row.note, "");
}

TEST(FitRows, ATrainingThatEndedEarlyIsMeasuredOverItsEpochs) {
  FitTrial trial = trained("a", 0.1, 0.2);
  trial.stopped = 2;
  const FitRow row =
      fit_rows({trial}, contenders({"a"}), {.epochs = 9, .patience = 1, .min_delta = 0.1}, kScale).at(0);
  EXPECT_NEAR(row.seconds.median, 2, 1e-9);
  EXPECT_NEAR(row.epochs->median, 2, 1e-9);
  EXPECT_NEAR(row.over_steps.value(), 1, 1e-9);
  EXPECT_EQ(row.note, "ended early: its held-out loss had not fallen by 0.1 for 1 epoch");
  EXPECT_FALSE(row_of(trained("a", 0.1, 0.2)).epochs) << "none may end early";
}

TEST(FitRows, StretchesThatArePartsOfAnEpochAreAddedUp) {
  FitTrial trial = trained("a", 0.1, 0.2);
  trial.stretches = {{.ns = 1'600'000'000, .steps = 8}, {.ns = 1'000'000'000, .steps = 2}};
  EXPECT_NEAR(row_of(trial).epoch_s, 2.6, 1e-9) << "not the median of 2 and 5";
  trial.stretches.push_back({.ns = 1'000'000'000, .steps = 8});
  EXPECT_NEAR(row_of(trial).epoch_s, 2.6, 1e-9) << "a part alone is no epoch";
}

TEST(FitRows, WithoutHeldOutRowsAccuracyIsOfTheOthers) {
  FitTrial trial = trained("a", 0.1, 0.2);
  trial.on_held.reset();
  EXPECT_FALSE(row_of(trial).held_loss);
  EXPECT_NEAR(row_of(trial).accuracy->median, 0.9, 1e-12);
  trial.on_trained->accuracy = 0;
  EXPECT_FALSE(row_of(trial).accuracy) << "a workload without classes";
}

TEST(FitRows, MoreStepsThanAskedForAreNotCharged) {
  FitTrial trial = trained("a", 0.1, 0.2);
  trial.stretches = {{.ns = 2'500'000'000, .steps = 25, .wait = BatchWait{400'000'000, 24, 100'000'000, 1}}};
  trial.on_trained->steps = 25;
  trial.on_trained->ns = 2'500'000'000;
  const FitRow row = row_of(trial);
  EXPECT_NEAR(row.seconds.median, 2, 1e-9) << "20 of 25 steps";
  EXPECT_NEAR(row.wait_s.value(), 0.4, 1e-9) << "20 of 25, the first batch of an epoch counted in";
  EXPECT_THAT(row.note, HasSubstr("it did 25 steps"));
  EXPECT_THAT(row.note, HasSubstr("those of 20"));
}

TEST(FitRows, SeedsAreAMedianWithItsRange) {
  const auto rows =
      fit_rows({trained("a", 0.1, 0.2, 0, 1), trained("a", 0.3, 0.1, 0, 2), trained("a", 0.2, 0.15, 0, 3)},
               contenders({"a", "b"}), kAsked, kScale);
  ASSERT_THAT(rows, SizeIs(1)) << "nothing is known of b";
  EXPECT_EQ(rows[0].seeds, 3);
  EXPECT_NEAR(rows[0].seconds.least, 2, 1e-9);
  EXPECT_NEAR(rows[0].seconds.median, 4, 1e-9);
  EXPECT_NEAR(rows[0].seconds.most, 6, 1e-9);
  EXPECT_NEAR(rows[0].loss->median, 0.15, 1e-12);
}

TEST(FitRows, AFailureIsARowWithItsReason) {
  FitTrial dead{.contender = "a", .seed = 1, .failure = Failure{Stage::kRun, "exit code 1", ""}};
  const FitRow row = row_of(dead);
  EXPECT_EQ(row.seeds, 0);
  EXPECT_EQ(row.note, "run: exit code 1");
  EXPECT_FALSE(row.loss);
}

TEST(FitRows, DisturbancesAreSaid) {
  FitTrial trial = trained("a", 0.1, 0.2);
  trial.rounds[1].busy = "other processes used 40% of the processors' time (limit 10%)";
  EXPECT_THAT(row_of(trial).note, HasSubstr("1 of 2 stretches of training were disturbed: other processes"));
}

TEST(EqualWork, EndsWithAboutTheSameLoss) {
  const auto notes = [](const std::vector<double>& losses, bool as_is = false) {
    std::vector<FitTrial> trials;
    std::vector<std::string> ids;
    for (size_t i = 0; i < losses.size(); ++i) {
      ids.emplace_back(1, static_cast<char>('a' + i));
      trials.push_back(trained(ids.back(), 0.1, losses[i]));
    }
    FitScale scale = kScale;
    scale.as_is = as_is;
    std::string outliers;
    for (const FitRow& row : fit_rows(trials, contenders(ids), kAsked, scale)) {
      EXPECT_EQ(row.outlier, !row.note.empty());
      if (row.outlier) outliers += row.contender;
    }
    return outliers;
  };
  EXPECT_EQ(notes({0.50, 0.52, 0.54}), "");
  EXPECT_EQ(notes({0.50, 0.52, 0.80}), "c");
  EXPECT_EQ(notes({0.50, 0.80}), "ab") << "of two neither is the odd one";
  EXPECT_EQ(notes({0.50, 0.545}), "");
  EXPECT_EQ(notes({0.50, 0.61, 0.50}), "b") << "22% away";
  EXPECT_EQ(notes({0.50, 0.61, 0.50}, true), "") << "as-is: own shuffles and defaults";
  EXPECT_EQ(notes({0.50, 0.64, 0.50}, true), "b");
  EXPECT_EQ(notes({0.001, 0.015, 0.001}), "") << "within 1% of the untrained loss of 2";
  EXPECT_EQ(notes({0.5}), "");
}

TEST(EqualWork, IsOfOnePrecision) {
  std::vector<RankedContender> all = contenders({"a", "b"});
  all[1].group = "bfloat16";
  for (const FitRow& row : fit_rows({trained("a", 1, 0.5), trained("b", 1, 0.9)}, all, kAsked, kScale))
    EXPECT_FALSE(row.outlier);
}

TEST(EqualWork, ALossThatIsNoneIsSaid) {
  const auto rows =
      fit_rows({trained("a", 1, 1e308), trained("b", 1, 0.9)}, contenders({"a", "b"}), kAsked, kScale);
  EXPECT_FALSE(rows.at(0).loss);
  EXPECT_THAT(rows.at(0).note, HasSubstr("NaN or infinite"));
  EXPECT_FALSE(rows.at(1).outlier);
}

}  // namespace
}  // namespace bakeoff
