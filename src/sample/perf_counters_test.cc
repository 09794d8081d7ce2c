#include "sample/perf_counters.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <map>
#include <set>

#include "base/testing.h"
#include "sample/clock_probe.h"

namespace bakeoff::sample {
namespace {

using ::testing::HasSubstr;

// A kernel whose counters grow by `step` at every reading. Handles are 10 * name + thread.
struct FakeKernel {
  uint64_t step = 1000;
  std::map<size_t, int> refuse = {};  // by name: an error number
  std::map<int, PerfCount> counts = {};
  std::set<int> open = {};
  std::vector<pid_t> threads = {1, 2};
  double running = 1;  // share of the time that a counter is had

  PerfSystem system() {
    return {.open =
                [this](size_t name, pid_t tid) {
                  if (refuse.contains(name)) return -refuse[name];
                  const int handle = static_cast<int>(10 * name) + tid;
                  open.insert(handle);
                  return handle;
                },
            .read =
                [this](int handle, PerfCount& count) {
                  PerfCount& kept = counts[handle];
                  kept.value += step * static_cast<uint64_t>(handle / 10 + 1);
                  kept.enabled_ns += 100;
                  kept.running_ns += static_cast<uint64_t>(100 * running);
                  count = kept;
                  return open.contains(handle);
                },
            .close = [this](int handle) { open.erase(handle); },
            .threads = [this](pid_t) { return threads; }};
  }
};

TEST(PerfCounters, SumOverThreadsWhatWasCountedMeanwhile) {
  FakeKernel kernel;
  {
    const PerfCounters counters = PerfCounters::attach(7, kernel.system());
    const PerfSnapshot before = counters.take();
    const auto used = perf_between(before, counters.take());
    for (size_t name = 0; name < kPerfNames.size(); ++name) {
      ASSERT_TRUE(used[name]) << kPerfNames[name] << used[name].reason();
      EXPECT_DOUBLE_EQ(*used[name], 2 * 1000 * static_cast<double>(name + 1)) << "two threads";
    }
    EXPECT_EQ(kernel.open.size(), 8u) << "and the counters of the self-test are closed";
  }
  EXPECT_TRUE(kernel.open.empty());
}

TEST(PerfCounters, ACounterThatTookTurnsIsScaledUp) {
  FakeKernel kernel;
  kernel.running = 0.25;
  const PerfCounters counters = PerfCounters::attach(7, kernel.system());
  const PerfSnapshot before = counters.take();
  EXPECT_DOUBLE_EQ(*perf_between(before, counters.take())[0], 2 * 4000);
  kernel.running = 0;
  const PerfSnapshot then = counters.take();
  EXPECT_THAT(perf_between(then, counters.take())[0].reason(), HasSubstr("left it no time"));
}

TEST(PerfCounters, OneThatReadsZeroWhileWorkIsDoneIsMissing) {
  FakeKernel kernel;
  kernel.step = 0;
  const PerfCounters counters = PerfCounters::attach(7, kernel.system());
  const PerfSnapshot before = counters.take();
  for (const Reading& reading : perf_between(before, counters.take()))
    EXPECT_EQ(reading.reason(), "the counter reads 0 while work is done");
  EXPECT_TRUE(kernel.open.empty()) << "nothing is attached to";
  kernel.step = 5;
  const PerfCounters sound = PerfCounters::attach(7, kernel.system());
  kernel.step = 0;
  const PerfSnapshot stuck = sound.take();
  const auto used = perf_between(stuck, sound.take());
  EXPECT_EQ(used[0].reason(), "the counter reads 0 while work is done") << "it stopped later";
  EXPECT_EQ(*used[3], 0) << "branches may all be foreseen";
}

TEST(PerfCounters, WhatIsNotThereHasItsReason) {
  FakeKernel kernel;
  kernel.refuse = {{2, ENOENT}};
  const PerfCounters counters = PerfCounters::attach(7, kernel.system());
  PerfSnapshot before = counters.take();
  auto used = perf_between(before, counters.take());
  EXPECT_TRUE(used[0] && used[1] && used[3]);
  EXPECT_THAT(used[2].reason(), HasSubstr("virtual machines"));
  kernel.open.clear();  // the process is gone, and its counters
  EXPECT_THAT(perf_between(before, counters.take())[0].reason(), HasSubstr("cannot be read any more"));
  EXPECT_EQ(perf_between(PerfCounters().take(), PerfCounters().take())[0].reason(), "not read");
  kernel.threads = {};
  before = PerfCounters::attach(7, kernel.system()).take();
  EXPECT_EQ(before.absent[0], "there is no such process");
}

TEST(PerfCounters, CountersThatGoBackwardsAreAbsent) {
  PerfSnapshot before, after;
  before.counts[0] = {{100, 10, 10}};
  after.counts[0] = {{50, 20, 20}};
  EXPECT_EQ(perf_between(before, after)[0].reason(), "the counter went backwards");
  after.counts[0] = {{150, 20, 20}, {5, 5, 5}};
  EXPECT_EQ(perf_between(before, after)[0].reason(), "a counter came or went");
}

TEST(PerfReason, NamesTheLevelAndTheRemedy) {
  const testing::TestFolder root;
  EXPECT_THAT(perf_reason(EACCES, root), HasSubstr("CAP_PERFMON"));
  ASSERT_TRUE(write_file(root / "proc/sys/kernel/perf_event_paranoid", "4\n"));
  EXPECT_THAT(perf_reason(EACCES, root), HasSubstr("perf_event_paranoid is 4; `sysctl"));
  EXPECT_THAT(perf_reason(EPERM, root), HasSubstr("perf_event_paranoid is 4"));
  EXPECT_THAT(perf_reason(ENOSYS, root), HasSubstr("no performance counters"));
  EXPECT_THAT(perf_reason(EMFILE, root), HasSubstr("ulimit -n"));
}

// Where this machine has them they count this process; where it has not, each says why.
TEST(PerfCounters, OfThisMachine) {
  const PerfCounters counters = PerfCounters::attach(::getpid());
  const PerfSnapshot before = counters.take();
  dependent_chain(1'000'000);
  const auto used = perf_between(before, counters.take());
  for (size_t i = 0; i < used.size(); ++i) {
    if (used[i]) {
      EXPECT_GE(*used[i], i < 2 ? 1e6 : 0) << kPerfNames[i];
    } else {
      EXPECT_FALSE(used[i].reason().empty()) << kPerfNames[i];
    }
  }
}

}  // namespace
}  // namespace bakeoff::sample
