#include "lab/barrier.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lab/host.h"
#include "sample/clock_probe.h"
#include "sample/process_sampler.h"

namespace bakeoff::lab {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kMs = 1'000'000;

Burst burst(int64_t ms, int64_t late_ms) { return {.ns = ms * kMs, .steps = 10, .late_ns = late_ms * kMs}; }

// Of bursts that lasted a second, for which its threads waited for a processor.
Trial trial(std::vector<Burst> bursts, double waited_s = 0) {
  for (Burst& burst : bursts) burst.used = {{"wall_s", 1}, {"wait_s", waited_s}};
  return {.bursts = std::move(bursts)};
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
  EXPECT_TRUE(answers_early(trial({burst(6, 500), burst(6, 480)}, 0.5)));
  const auto early = answers_early(trial({burst(100, 300), burst(100, 310), burst(100, 0)}));
  ASSERT_TRUE(early);
  EXPECT_EQ(*early,
            "answers before its work is done: 2 of 3 bursts; one claims 100.0 ms and works on for 310.0 ms");
}

TEST(OutstandingWork, ShrinksWithTheStepsAndSpinningDoesNot) {
  const std::vector<Burst> bursts = {burst(100, 300), burst(100, 320), burst(100, 0)};
  EXPECT_TRUE(is_outstanding_work(bursts, 30 * kMs));
  EXPECT_FALSE(is_outstanding_work(bursts, 290 * kMs));
  EXPECT_TRUE(is_outstanding_work({burst(1000, 1000), burst(1000, 1000)}, 1000 * kMs))
      << "no pool spins so long";
}

TEST(BusyAfter, LooksAsLongAsTheProcessWorksAndNoLonger) {
  const pid_t child = ::fork();
  if (child == 0) {
    while (sample::dependent_chain(1000) != 0) {
    }
  }
  ASSERT_GT(child, 0);
  for (int i = 0; i < 500 && sample::cpu_time_ns(child).value() < 5 * kMs; ++i) ::usleep(1000);
  int64_t busy = 0;  // the machine may have others to run
  for (int i = 0; i < 50 && busy == 0; ++i) busy = busy_after(child, 40 * kMs);
  EXPECT_GT(busy, 0);
  ::kill(child, SIGSTOP);
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, WUNTRACED), child);
  EXPECT_EQ(busy_after(child, 40 * kMs), 0) << "frozen";
  ::kill(child, SIGKILL);
  ::waitpid(child, &status, 0);
  EXPECT_EQ(busy_after(child, 40 * kMs), 0) << "gone";
}

// Children that use a processor for ever, all of them the same one.
class Crowd {
 public:
  explicit Crowd(size_t size) {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(allowed_cpus().front(), &one);
    for (size_t i = 0; i < size; ++i) {
      const pid_t child = ::fork();
      if (child == 0) {
        ::sched_setaffinity(0, sizeof one, &one);
        while (sample::dependent_chain(1000) != 0) {
        }
      }
      pids_.push_back(child);
    }
  }
  ~Crowd() {
    for (const pid_t pid : pids_) ::kill(pid, SIGKILL);
    for (const pid_t pid : pids_) ::waitpid(pid, nullptr, 0);
  }
  pid_t first() const { return pids_.front(); }

 private:
  std::vector<pid_t> pids_;
};

TEST(BusyAfter, AProcessThatWaitsForAProcessorIsNotDone) {
  const Crowd crowd(5);
  while (sample::cpu_time_ns(crowd.first()).value() < 5 * kMs) ::usleep(1000);
  const int64_t busy = busy_after(crowd.first(), 400 * kMs);
  EXPECT_GT(busy, 10 * kMs) << "a fifth of a processor for up to two seconds, or less beside others";
  EXPECT_LE(busy, 500 * kMs);
}

}  // namespace
}  // namespace bakeoff::lab
