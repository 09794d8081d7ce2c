#include "report/progress.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "table/text.h"

namespace bakeoff::report {

using namespace table;
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

ProgressState race() {
  ProgressState s;
  s.stage = "race";
  s.heat = 4;
  s.elapsed_s = 95;
  s.left_s = 205;
  s.leader = "tensorflow[mode=function]";
  s.leader_ms = 75.6;
  s.survivors = 5;
  s.contenders = 12;
  s.failed = 2;
  s.detail = "torch[compile=none]";
  return s;
}

TEST(ProgressText, SaysEverything) {
  EXPECT_EQ(progress_text(race()),
            "race heat 4 · 1:35, at most 3:25 left · leader tensorflow[mode=function] 75.6 ms · "
            "5 of 12 in the race, 2 failed · torch[compile=none]");
}

TEST(ProgressText, LeavesOutWhatIsNotKnown) {
  ProgressState s;
  s.stage = "parity";
  s.done = 3;
  s.total = 12;
  s.elapsed_s = 3723;
  EXPECT_EQ(progress_text(s), "parity · 3/12 · 1:02:03");
}

TEST(ProgressLine, DropsTheLeastImportantFirst) {
  EXPECT_THAT(progress_line(race(), 160), HasSubstr("torch[compile=none]"));
  EXPECT_THAT(progress_line(race(), 110), Not(HasSubstr("torch[compile=none]")));
  EXPECT_THAT(progress_line(race(), 110), HasSubstr("leader"));
  EXPECT_THAT(progress_line(race(), 40), HasSubstr("race heat 4"));
}

TEST(ProgressLine, NeverExceedsTheWidth) {
  ProgressState nasty = race();
  nasty.detail = "模型\x1b[31m\nüü";
  for (const ProgressState& state : {race(), nasty, ProgressState{}}) {
    for (int width = 1; width < 200; ++width) {
      EXPECT_LE(display_width(progress_line(state, width, false, width)), width);
      EXPECT_LE(display_width(clean(progress_line(state, width, true, width))), width);
      EXPECT_THAT(progress_line(state, width), Not(HasSubstr("\n")));
    }
  }
}

TEST(ProgressLine, ColourChangesNothingElse) {
  EXPECT_EQ(clean(progress_line(race(), 100, true)), progress_line(race(), 100, false));
  EXPECT_NE(progress_line(race(), 100, true), progress_line(race(), 100, false));
}

TEST(ProgressLine, ShowsTheShareDone) {
  ProgressState s;
  s.stage = "parity";
  s.total = 4;
  s.done = 2;
  EXPECT_THAT(progress_line(s, 80), HasSubstr("▕██████      ▏"));
  s.done = 9;
  EXPECT_THAT(progress_line(s, 80), HasSubstr("▕████████████▏"));
}

TEST(WorthALine, OnNewsOrAfterHalfAMinute) {
  const ProgressState last = race();
  ProgressState now = last;
  now.elapsed_s += 29;
  EXPECT_FALSE(worth_a_line(last, now));
  now.elapsed_s += 1;
  EXPECT_TRUE(worth_a_line(last, now));
  now = last;
  now.leader = "jax";
  EXPECT_TRUE(worth_a_line(last, now));
  now = last;
  now.heat = 5;
  EXPECT_TRUE(worth_a_line(last, now));
}

}  // namespace
}  // namespace bakeoff::report
