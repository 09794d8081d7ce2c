#include "evidence/input_wait.h"

#include <gtest/gtest.h>

namespace bakeoff {
namespace {

Trial trial_with(std::vector<Burst> bursts) {
  Trial trial;
  trial.bursts = std::move(bursts);
  return trial;
}

TEST(InputWait, KeepsTheFirstBatchOfAnEpochApart) {
  const Trial a =
      trial_with({{.ns = 80'000'000, .steps = 10, .wait = BatchWait{9'000'000, 9, 5'000'000, 1}}});
  const Trial b = trial_with({{.ns = 20'000'000, .steps = 10, .wait = BatchWait{11'000'000, 11, 0, 0}}});
  const InputWait wait = input_wait_of({&a, &b}, 30);
  EXPECT_DOUBLE_EQ(*wait.share, 0.25);
  EXPECT_DOUBLE_EQ(*wait.batch_ms, 1);
  EXPECT_DOUBLE_EQ(*wait.first_ms, 5);
  EXPECT_DOUBLE_EQ(*wait.epoch_ms, 34);
}

TEST(InputWait, IsEmptyWhereTheStepTakesItsBatchItself) {
  const Trial none = trial_with({{.ns = 80'000'000, .steps = 10}});
  EXPECT_EQ(input_wait_of({&none}, 30), InputWait{});
}

// Bursts within one epoch say nothing about its beginning.
TEST(InputWait, CountsAnUnseenFirstBatchAsAnother) {
  const Trial inside = trial_with({{.ns = 10'000'000, .steps = 5, .wait = BatchWait{1'000'000, 5, 0, 0}}});
  const InputWait wait = input_wait_of({&inside}, 10);
  EXPECT_FALSE(wait.first_ms);
  EXPECT_DOUBLE_EQ(*wait.epoch_ms, 2);
  const Trial only = trial_with({{.ns = 10'000'000, .steps = 1, .wait = BatchWait{0, 0, 3'000'000, 1}}});
  EXPECT_DOUBLE_EQ(*input_wait_of({&only}, 2).epoch_ms, 6);
  EXPECT_FALSE(input_wait_of({&only}, 0).epoch_ms);
}

}  // namespace
}  // namespace bakeoff
