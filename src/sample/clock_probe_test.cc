#include "sample/clock_probe.h"

#include <gtest/gtest.h>

namespace bakeoff::sample {
namespace {

// Advances by `step` at every look; by `interrupted` at look number `at`.
class SteppingClock : public Clock {
 public:
  SteppingClock(int64_t step, int at, int64_t interrupted)
      : step_(step), at_(at), interrupted_(interrupted) {}
  int64_t now_ns() const override { return now_ += ++looks_ == at_ ? interrupted_ : step_; }

 private:
  int64_t step_;
  int at_;
  int64_t interrupted_;
  mutable int64_t now_ = 0;
  mutable int looks_ = 0;
};

TEST(ClockProbe, IsCyclesOverTheFastestRound) {
  EXPECT_DOUBLE_EQ(*clock_probe(SteppingClock(1000, 0, 0), 3, 500), 2.0);
  EXPECT_DOUBLE_EQ(*clock_probe(SteppingClock(1000, 4, 90'000), 3, 500), 2.0) << "one was interrupted";
}

TEST(ClockProbe, AClockThatStandsStillOrGoesBackGivesAReason) {
  for (const int64_t step : {0, -7}) {
    const Reading reading = clock_probe(SteppingClock(step, 0, 0), 3, 500);
    EXPECT_FALSE(reading);
    EXPECT_EQ(reading.reason(), "the clock did not advance during the probe");
  }
  EXPECT_DOUBLE_EQ(*clock_probe(SteppingClock(1000, 2, -50'000), 3, 500), 2.0) << "one jump back";
}

TEST(ClockProbe, TheWorkIsDone) {
  EXPECT_EQ(dependent_chain(0), 1u);
  EXPECT_EQ(dependent_chain(1), 6364136223846793005u + 1442695040888963407u);
  EXPECT_NE(dependent_chain(250'000), dependent_chain(249'999));
  // A number of GHz, on whatever runs this: no machine is a thousand times off.
  const Reading here = clock_probe();
  ASSERT_TRUE(here);
  EXPECT_GT(*here, 0.01);
  EXPECT_LT(*here, 20);
}

}  // namespace
}  // namespace bakeoff::sample
