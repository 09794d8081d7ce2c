#include "report/progress.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

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
            "race heat 4 · 1:35, 3:25 of the budget left · leader tensorflow[mode=function] 75.6 ms · "
            "5 of 12 in the race, 2 failed · torch[compile=none]");
}

TEST(ProgressText, LeavesOutWhatIsNotKnown) {
  ProgressState s;
  s.stage = "parity";
  s.done = 3;
  s.total = 12;
  s.elapsed_s = 3723;
  EXPECT_EQ(progress_text(s), "proofs · 3/12 · 1:02:03");
}

TEST(ProgressText, SaysWhatIsExpectedWhereThatIsLessThanTheBudget) {
  ProgressState s = race();
  s.rest_s = 61;
  EXPECT_THAT(progress_text(s), HasSubstr("1:35, about 1:01 to go, 3:25 of the budget left"));
  s.rest_s = 206;
  EXPECT_THAT(progress_text(s), HasSubstr("1:35, 3:25 of the budget left"));
  s.rest_s = 0;
  EXPECT_THAT(progress_text(s), Not(HasSubstr("0:00")));
  s.left_s.reset();
  s.rest_s = 9;
  EXPECT_THAT(progress_text(s), HasSubstr("1:35, about 0:09 to go · "));
}

TEST(ProgressText, SaysWhatRunsPastTheBudget) {
  ProgressState s = race();
  s.left_s = 0;
  EXPECT_THAT(progress_text(s), HasSubstr("1:35, past the budget: this heat is finished · "));
  s.heat_left_s = 61;
  EXPECT_THAT(progress_text(s), HasSubstr("past the budget: this heat ends in about 1:01"));
  s.heat = 0;
  s.stage = "parity";
  EXPECT_THAT(progress_text(s), HasSubstr("proofs · 1:35, past the budget"));
  EXPECT_THAT(progress_text(s), Not(HasSubstr("in the race")));
}

TEST(ProgressText, SaysWhoIsNotProvenYet) {
  ProgressState s = race();
  s.unproven = 3;
  s.failed = 0;
  EXPECT_THAT(progress_text(s), HasSubstr("5 of 12 in the race, 3 not proven yet · "));
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

TEST(StandingLine, SaysWhoLeadsByHowMuchHowSurelyAndForHowLong) {
  const Standing standing = {.next = "keras[backend=jax]",
                             .ratio = 1.031,
                             .low = 0.98,
                             .high = 1.09,
                             .slower = 0.934,
                             .to_go_s = 371};
  EXPECT_EQ(standing_line(race(), standing, 0),
            "heat 4 · tensorflow[mode=function] 75.6 ms · then keras[backend=jax] · 1.031 [0.980, 1.090] · "
            "93% sure · about 6 min to go, the budget has 3:25 · 5 of 12 in the race");
  const std::string narrow = standing_line(race(), standing, 80);
  EXPECT_LE(display_width(narrow), 80);
  for (const char* part : {"heat 4 · tensorflow[mode=function] 75.6 ms", "1.031 [0.980, 1.090]"})
    EXPECT_THAT(narrow, HasSubstr(part));
  EXPECT_EQ(clean(standing_line(race(), standing, 80, true)), narrow);
}

TEST(StandingLine, SaysWhatIsNotKnownYetAndWhenItIsDecided) {
  const double inf = std::numeric_limits<double>::infinity();
  const Standing first = {.next = "jax", .ratio = 1.2, .low = 0, .high = inf};
  EXPECT_THAT(standing_line(race(), first, 0),
              HasSubstr("then jax · 1.200 · how sure, how long: not known yet"));
  EXPECT_THAT(standing_line(race(), {.next = "jax", .slower = 0.4}, 0), HasSubstr("· 40% sure ·"));
  EXPECT_THAT(standing_line(race(), {.next = "jax", .to_go_s = 9.0 * 3600, .to_go_at_least = true}, 0),
              HasSubstr("more than 9 h to go"));
  EXPECT_THAT(standing_line(race(), {.next = "jax", .to_go_s = 34}, 0), HasSubstr("about 40 s to go"));
  EXPECT_THAT(standing_line(race(), {}, 0), HasSubstr("others have not run yet"));
  EXPECT_THAT(standing_line(race(), {.busy = 1, .judged = 9}, 0), HasSubstr("· host busy in 1 of 9 rounds"));
  EXPECT_THAT(standing_line(race(), {.busy = 7, .judged = 9, .refused = true}, 0),
              HasSubstr("· no verdict: host busy in 7 of 9 rounds"));
  EXPECT_EQ(standing_line(race(), {.decided = true}, 0),
            "heat 4 · tensorflow[mode=function] 75.6 ms · decided · 5 of 12 in the race");
  for (int width = 1; width < 120; ++width)
    EXPECT_LE(display_width(standing_line(race(), first, width)), width);
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
