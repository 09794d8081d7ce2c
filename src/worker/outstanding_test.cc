#include "worker/outstanding.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/testing.h"
#include "sample/clock_probe.h"
#include "sample/machine_limits.h"
#include "sample/process_sampler.h"

namespace bakeoff {
namespace {

constexpr int64_t kMs = 1'000'000;

TEST(BusyAfter, LooksAsLongAsTheProcessWorksAndNoLonger) {
  const pid_t child = ::fork();
  if (child == 0) {
    while (sample::dependent_chain(1000) != 0) {
    }
  }
  ASSERT_GT(child, 0);
  // The machine may have others to run.
  EXPECT_TRUE(testing::soon([&] { return busy_after(child, 40 * kMs) > 0; }));
  ::kill(child, SIGSTOP);
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, WUNTRACED), child);
  // The kernel tells of the stop before it takes the processor away, and counts what was used until then.
  EXPECT_TRUE(testing::soon([&] { return busy_after(child, 40 * kMs) == 0; })) << "frozen";
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
    CPU_SET(sample::allowed_cpus().front(), &one);
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
  ASSERT_TRUE(testing::soon([&] { return sample::cpu_time_ns(crowd.first()).value() > 5 * kMs; }));
  EXPECT_GT(busy_after(crowd.first(), 400 * kMs), 10 * kMs)
      << "a fifth of a processor for up to two seconds, or less beside others";
}

}  // namespace
}  // namespace bakeoff
