// What both searches for a batch keep on disk.

#include "records/testing.h"
#include "study/batches/batch_trial.h"
#include "study/batches/largest_trial.h"

namespace bakeoff {
namespace {

TEST(BatchTrial, IsKept) {
  const BatchTrial record{.batch = 64, .trial = {.contender = "torch", .heat = 2, .bursts = {{50, 5}}}};
  EXPECT_EQ(from_json<BatchTrial>(to_json(record), "here").value(), record);
  EXPECT_FALSE(from_json<BatchTrial>("{}", "batches.jsonl:1"));
}

TEST(BatchTrial, IsRefusedWhereItsTrialIsNotPossible) {
  const auto refused =
      from_json<BatchTrial>(R"({"batch": 8, "trial": {"contender": "a", "warmup_bursts": 3}})", "b:7");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().where, "b:7");
  EXPECT_THAT(refused.error().message, ::testing::HasSubstr("0 bursts, 3 of them warm-up"));
}

TEST(LargestTrial, IsKept) {
  testing::expect_kept(LargestTrial{.contender = "torch",
                                    .batch = 64,
                                    .started = "now",
                                    .limit_bytes = 9,
                                    .failure = Failure{Stage::kRun, "out of memory", "tail"},
                                    .peak_bytes = 8,
                                    .on_gpu = true});
}

}  // namespace
}  // namespace bakeoff
