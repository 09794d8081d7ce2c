#include "evidence/barrier.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace bakeoff {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kMs = 1'000'000;

Burst burst(int64_t ms, int64_t late_ms) { return {.ns = ms * kMs, .steps = 10, .late_ns = late_ms * kMs}; }

// Of bursts that lasted a second, for which its threads waited for a processor, while others had `others` of all.
Trial trial(std::vector<Burst> bursts, double waited_s = 0, double others = 0) {
  for (Burst& burst : bursts) burst.used = {{"wall_s", 1}, {"wait_s", waited_s}};
  return {.bursts = std::move(bursts), .rounds = {{.seen = {{"others", others}}}}};
}

TEST(IsLate, NeedsATenthOfTheBurstAndTwentyMilliseconds) {
  EXPECT_FALSE(is_late(burst(500, 0), false));
  EXPECT_FALSE(is_late(burst(500, 50), false));
  EXPECT_TRUE(is_late(burst(500, 51), false));
  EXPECT_FALSE(is_late(burst(30, 20), false)) << "a preemption";
  EXPECT_TRUE(is_late(burst(30, 21), false));
}

TEST(IsLate, NeedsAHundredMillisecondsBesideOthers) {
  EXPECT_FALSE(is_late(burst(6, 46), true)) << "as an honest worker was on a machine with a load of eight";
  EXPECT_TRUE(is_late(burst(6, 101), true));
  EXPECT_FALSE(is_late(burst(5000, 500), true));
}

TEST(AnswersEarly, IsWhatMostBurstsDo) {
  EXPECT_EQ(answers_early({}), std::nullopt);
  EXPECT_EQ(answers_early(trial({burst(10, 300)})), std::nullopt) << "one burst is an accident";
  EXPECT_EQ(answers_early(trial({burst(100, 300), burst(100, 300), burst(100, 0), burst(100, 0)})),
            std::nullopt);
  EXPECT_EQ(answers_early(trial({burst(6, 46), burst(6, 30)}, 0.5)), std::nullopt)
      << "others had the processors";
  EXPECT_EQ(answers_early({.bursts = {burst(6, 46), burst(6, 30)}}), std::nullopt) << "perhaps they had";
  EXPECT_TRUE(answers_early(trial({burst(6, 46), burst(6, 30)})));
  EXPECT_TRUE(answers_early(trial({burst(6, 500), burst(6, 480)}, 0.5))) << "it waited for its own threads";
  EXPECT_TRUE(answers_early(trial({burst(6, 500), burst(6, 480)}, 0.3, 0.9)));
  EXPECT_EQ(answers_early(trial({burst(6, 500), burst(6, 480)}, 0.5, 0.9)), std::nullopt)
      << "as long as it waited";
  Trial unknown = trial({burst(6, 500), burst(6, 480)}, 0.5);
  unknown.rounds[0].seen.clear();
  EXPECT_EQ(answers_early(unknown), std::nullopt) << "who had them is not known";
  const auto early = answers_early(trial({burst(100, 300), burst(100, 310), burst(100, 0)}));
  ASSERT_TRUE(early);
  EXPECT_EQ(
      *early,
      "answers before its work is done in 2 of 3 bursts: one reported 100.0 ms and worked 310.0 ms more");
}

TEST(OutstandingWork, ShrinksWithTheStepsAndSpinningDoesNot) {
  const std::vector<Burst> bursts = {burst(100, 300), burst(100, 320), burst(100, 0)};
  EXPECT_TRUE(is_outstanding_work(bursts, 30 * kMs));
  EXPECT_FALSE(is_outstanding_work(bursts, 290 * kMs));
  EXPECT_TRUE(is_outstanding_work({burst(1000, 1000), burst(1000, 1000)}, 1000 * kMs))
      << "no pool spins so long";
}

}  // namespace
}  // namespace bakeoff
