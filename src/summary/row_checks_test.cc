#include "summary/row_checks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

namespace bakeoff {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

// 64 samples in 20 ms are 3,200 a second; 6,400 rows take two seconds.
Row sound() {
  Row row{.contender = {.id = "a"}};
  row.ms_per_step = {20, 19, 21};
  row.samples_per_second = 3200;
  row.gflops = 100;
  row.epoch = {.seconds = 2, .price = 0.1};
  row.usage.joules = 0;
  return row;
}

std::string rule(const Row& row) {
  const auto broken = check_row(row, 64, 6400);
  return broken ? broken->text() : "";
}

TEST(CheckRow, PassesWhatAgreesWithItself) {
  EXPECT_EQ(rule(sound()), "");
  Row open = sound();
  open.ms_per_step.low = -std::numeric_limits<double>::infinity();
  open.ms_per_step.high = std::numeric_limits<double>::infinity();
  EXPECT_EQ(rule(open), "") << "one heat has no interval yet";
  Row bare = sound();
  bare.epoch = {};
  EXPECT_EQ(rule(bare), "");
}

TEST(CheckRow, NamesTheRuleAndBothNumbers) {
  Row row = sound();
  row.samples_per_second = 6400;
  EXPECT_THAT(rule(row), HasSubstr("samples/s x time = samples: 128 samples against 64 samples"));
  row = sound();
  row.epoch.seconds = 1;
  EXPECT_THAT(rule(row), HasSubstr("3200 samples against 6400 samples"));
  row = sound();
  row.ms_per_step = {20, 21, 22};
  EXPECT_THAT(rule(row), HasSubstr("an interval holds its value: 20 ms against [21, 22] ms"));
  row = sound();
  row.ms_per_step.value = std::numeric_limits<double>::quiet_NaN();
  EXPECT_THAT(rule(row), HasSubstr("nan"));
  row = sound();
  row.usage.joules = -3;
  EXPECT_THAT(rule(row), HasSubstr("joules a step: a number that is not negative: -3 against 0"));
  row = sound();
  row.memory.per_sample = std::numeric_limits<double>::infinity();
  EXPECT_THAT(rule(row), HasSubstr("memory a sample"));
}

TEST(TakeOutBroken, LeavesTheOthersRanked) {
  Summary s{.batch = 64};
  s.ranked = {sound(), sound(), sound()};
  s.ranked[1].contender.id = "b";
  s.ranked[1].samples_per_second = 1;
  take_out_broken(s, 6400);
  EXPECT_THAT(s.ranked, SizeIs(2));
  ASSERT_THAT(s.unranked, SizeIs(1));
  EXPECT_EQ(s.unranked[0].contender.id, "b");
  EXPECT_THAT(s.unranked[0].failure->reason, HasSubstr("breaks a rule of physics or arithmetic, samples/s"));
}

}  // namespace
}  // namespace bakeoff
