#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "records/testing.h"
#include "study/scaling/scaling_section.h"
#include "study/section_testing.h"

namespace bakeoff {
namespace {

using testing::cell;
using ::testing::HasSubstr;

Trial taking(double ms, Texts effective = {}) {
  const auto ns = static_cast<int64_t>(std::llround(ms * 1e7));
  Trial trial{.contender = "a", .heat = 1, .bursts = {{ns, 10}, {ns, 10}}};
  trial.effective = std::move(effective);
  return trial;
}

// Two devices: 6 ms of 10 alone, 12 with twice the rows, 4.5 of 6 without communication.
ScalingTrial heat(int number, double times = 1) {
  return {.contender = "a",
          .heat = number,
          .devices = 2,
          .batch = 64,
          .one = taking(10 * times),
          .strong = taking(6 * times, {{"reduced_gradient", "float32 by hook"}, {"backend", "gloo"}}),
          .weak = taking(12 * times),
          .silent = taking(4.5 * times, {{"communication", "off"}})};
}

ScalingRow row_of(const std::vector<ScalingTrial>& trials, double link = 0) {
  const auto rows = scaling_rows(trials, {"other", "a"}, 1000, link);
  EXPECT_EQ(rows.size(), 1u) << "contenders without a record are left out";
  return rows.at(0);
}

TEST(ScalingRows, AreRatiosWithinHeats) {
  const ScalingRow row =
      row_of({heat(1), heat(2, 4), heat(3, 0.5)}, 1e6);  // the host's speed changes in between
  EXPECT_EQ(row.heats, 3);
  EXPECT_NEAR(row.strong->value, 10.0 / 6 / 2, 1e-9);
  EXPECT_NEAR(row.strong->high - row.strong->low, 0, 1e-6) << "all heats have the same ratio";
  EXPECT_NEAR(row.weak->value, 10.0 / 12, 1e-9) << "each device does as much as the one";
  EXPECT_NEAR(row.communication->value, 0.25, 1e-9);
  EXPECT_NEAR(*row.silent_ms, 0.75 * *row.step_ms, 1e-9);
  EXPECT_EQ(row.sent_bytes, 4000.0) << "2 (n - 1) / n times 1000 numbers of 4 bytes";
  EXPECT_EQ(row.link_ms, 4.0);
  EXPECT_EQ(row.note, "");
}

TEST(ScalingRows, HaveIntervalsThatGrowWithTheHeatsNoise) {
  ScalingTrial slower = heat(2);
  slower.one = taking(11);
  const ScalingRow row = row_of({heat(1), slower});
  EXPECT_LT(row.strong->low, 10.0 / 12);
  EXPECT_GT(row.strong->high, 11.0 / 12);
  EXPECT_TRUE(std::isinf(row_of({heat(1)}).strong->high)) << "one heat has no interval";
}

TEST(ScalingRows, SayWhatIsMissingAndWhy) {
  ScalingTrial trial = heat(1);
  trial.weak = Trial{.contender = "a", .failure = Failure{Stage::kBuild, "the data has 100 rows", {}}};
  trial.silent = taking(6);
  const ScalingRow row = row_of({trial, trial});
  EXPECT_TRUE(row.strong);
  EXPECT_FALSE(row.weak);
  EXPECT_FALSE(row.communication) << "it trained on as usual";
  EXPECT_EQ(row.note, "64 rows on each device: " + trial.weak->failure->text() +
                          "; without communication: its worker cannot leave it out");
  trial.strong->failure = Failure{Stage::kRun, "rank 1: killed", {}};
  EXPECT_TRUE(has_failed(trial));
  EXPECT_FALSE(row_of({trial}).step_ms);
}

TEST(ScalingRows, NeverClaimLessThanNoCommunication) {
  ScalingTrial trial = heat(1);
  trial.silent = taking(6.6, {{"communication", "off"}});
  EXPECT_EQ(row_of({trial, trial}).communication->value, 0);
}

TEST(ScalingRows, CountWhatIsSentInTheGradientsDtype) {
  EXPECT_EQ(least_sent(100, "float32", 1), 0.0);
  EXPECT_EQ(least_sent(100, "bfloat16", 4), 300.0);
  EXPECT_FALSE(least_sent(100, "unknown", 2));
}

TEST(ScalingSection, IsReadByPeopleAndPrograms) {
  const auto section = scaling_section(scaling_rows({heat(1), heat(2)}, {"a"}, 1000, 0));
  testing::expect_whole(section, 1);
  EXPECT_EQ(cell(section, "strong", 0).text, "0.833");
  EXPECT_EQ(cell(section, "communication", 0).text, "25%");
  EXPECT_THAT(section.sentences.at(0), HasSubstr("where 2 devices share 64 rows"));
  EXPECT_NEAR(section.json[0]["weak_efficiency"]["value"].get<double>(), 10.0 / 12, 1e-9);
  EXPECT_EQ(testing::csv(section, "a", "scaling_heats"), "2");
}

TEST(ScalingTrial, IsKept) {
  const ScalingTrial record = heat(2);
  EXPECT_EQ(from_json<ScalingTrial>(to_json(record), "here").value(), record);
  const auto refused = from_json<ScalingTrial>(
      R"({"contender": "a", "one": {"contender": "a", "warmup_bursts": 3}})", "scaling.jsonl:7");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().where, "scaling.jsonl:7");
}

}  // namespace
}  // namespace bakeoff
