#include "sample/host_sampler.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files.h"
#include "base/testing.h"

namespace bakeoff::sample {
namespace {

using ::testing::HasSubstr;
using testing::SetClock;

// A machine of two processors, made of files.
class HostSamplerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    stat(100, 10, 100, 10);
    write("proc/uptime", "1000.00 1\n");
    write("proc/loadavg", "0.50 0.40 0.30 1/90 4711\n");
    write("proc/self/cgroup", "0::/\n");
    write("sys/fs/cgroup/cpu.stat", "throttled_usec 1000000\n");
    for (const char* resource : {"cpu", "memory", "io"}) pressure(resource, 2'000'000);
  }

  void write(const std::string& file, const std::string& text) {
    ASSERT_TRUE(write_file(root_ / file, text));
  }
  void stat(int64_t busy0, int64_t steal0, int64_t busy1, int64_t steal1, int running = 2) {
    write("proc/stat",
          fmt::format("cpu 9 9 9 9 9 9 9 9\ncpu0 {} 0 0 5 0 0 0 {} 0 0\ncpu1 {} 0 0 5 0 0 0 {} 0 0\n"
                      "procs_running {}\n",
                      busy0, steal0, busy1, steal1, running));
  }
  void pressure(const std::string& resource, int64_t us) {
    write("proc/pressure/" + resource, fmt::format("some avg10=0 avg60=0 avg300=0 total={}\n", us));
  }
  HostSnapshot take(std::vector<int> cpus = {}) {
    return HostSampler({.root = root_,
                        .cpus = std::move(cpus),
                        .clock = &clock_,
                        .ticks_per_s = 100,
                        .probe_clock = false})
        .take();
  }

  testing::TestFolder root_;
  SetClock clock_;
};

TEST_F(HostSamplerTest, SharesOfWhatHappenedBetween) {
  const HostSnapshot before = take();
  clock_.ns = 2'000'000'000;
  stat(250, 30, 150, 10, 5);
  pressure("cpu", 3'000'000);
  pressure("memory", 2'200'000);
  write("proc/uptime", "1002.00 1\n");
  write("proc/loadavg", "3.50 0.40 0.30 1/90 4711\n");
  write("sys/fs/cgroup/cpu.stat", "throttled_usec 1500000\n");
  const HostChange seen = change(before, take(), 1.2);
  EXPECT_DOUBLE_EQ(seen.wall_s, 2);
  EXPECT_DOUBLE_EQ(*seen.steal, 0.2 / 4);
  EXPECT_NEAR(*seen.others, (2.0 - 1.2) / 4, 1e-12);
  EXPECT_DOUBLE_EQ(*seen.throttled, 0.125) << "half a second of two processors' two";
  EXPECT_DOUBLE_EQ(*seen.cpu_pressure, 0.5);
  EXPECT_NEAR(*seen.memory_pressure, 0.1, 1e-12);
  EXPECT_DOUBLE_EQ(*seen.io_pressure, 0);
  EXPECT_EQ(*seen.run_queue, 4);
  EXPECT_EQ(*seen.load, 3.5);
  EXPECT_DOUBLE_EQ(*seen.slept_s, 0);
  EXPECT_DOUBLE_EQ(*change(before, take(), 2.1).others, 0) << "more than the coarse ticks saw";
  EXPECT_THAT(change(before, take(), 9).others.reason(),
              HasSubstr("/proc/stat does not count here: we used 9.00 s of the processors, it says 2.00 s"));
}

TEST_F(HostSamplerTest, OnlyTheProcessorsInUseCount) {
  const HostSnapshot before = take({1});
  clock_.ns = 1'000'000'000;
  stat(200, 60, 120, 15);
  const HostChange seen = change(before, take({1}), 0);
  EXPECT_DOUBLE_EQ(*seen.others, 0.2);
  EXPECT_DOUBLE_EQ(*seen.steal, 0.05);
  const HostSnapshot none = take({7});
  EXPECT_THAT(none.busy_s.reason(), HasSubstr("does not name the processors in use"));
}

TEST_F(HostSamplerTest, PressureIsThatOfOurGroupWhereItIsKept) {
  write("proc/self/cgroup", "0::/docker/abc\n");
  write("sys/fs/cgroup/io.pressure", "some avg10=0 avg60=0 avg300=0 total=500000\n");
  EXPECT_DOUBLE_EQ(*take().io_pressure_s, 0.5) << "the container's own top";
  EXPECT_DOUBLE_EQ(*take().memory_pressure_s, 2) << "the machine's";
  write("sys/fs/cgroup/docker/abc/io.pressure", "some avg10=0 avg60=0 avg300=0 total=100000\n");
  EXPECT_DOUBLE_EQ(*take().io_pressure_s, 0.1);
  write("sys/fs/cgroup/docker/abc/io.pressure", "garbage\n");
  EXPECT_DOUBLE_EQ(*take().io_pressure_s, 0.5) << "the next group that tells";
}

TEST_F(HostSamplerTest, PipesInTheKernelsPlaceAreNotWaitedFor) {
  for (const char* file : {"proc/stat", "proc/loadavg", "proc/pressure/cpu", "sys/fs/cgroup/cpu.stat",
                           "sys/fs/cgroup/cpu.pressure", "sys/fs/cgroup/memory.max"}) {
    fs::remove(root_ / file);
    ASSERT_EQ(::mkfifo((root_ / file).c_str(), 0600), 0) << file;
  }
  const HostSnapshot snapshot = take();
  EXPECT_THAT(snapshot.busy_s.reason(), HasSubstr("no readable /proc/stat (stat: it is not a regular file)"));
  EXPECT_THAT(snapshot.cpu_pressure_s.reason(), HasSubstr("no readable /proc/pressure/cpu"));
  EXPECT_FALSE(snapshot.throttled_s);
  EXPECT_FALSE(snapshot.cgroup_memory.limit_bytes);
  EXPECT_TRUE(snapshot.io_pressure_s);
}

TEST_F(HostSamplerTest, WhatIsAbsentHasItsReasonAndIsNoZero) {
  fs::remove_all(root_ / "proc/pressure");
  fs::remove(root_ / "sys/fs/cgroup/cpu.stat");
  write("proc/loadavg", "\n");
  const HostSnapshot snapshot = take();
  EXPECT_TRUE(snapshot.steal_s);
  for (const Reading& r : {snapshot.cpu_pressure_s, snapshot.memory_pressure_s, snapshot.io_pressure_s}) {
    EXPECT_FALSE(r);
    EXPECT_THAT(r.reason(), HasSubstr("no readable /proc/pressure/"));
  }
  EXPECT_THAT(snapshot.throttled_s.reason(), HasSubstr("no cgroup of ours has a cpu.stat"));
  EXPECT_THAT(snapshot.load.reason(), HasSubstr("/proc/loadavg is not as expected"));
  EXPECT_EQ(snapshot.clock_ghz.reason(), "not asked for");
  clock_.ns = 1'000'000'000;
  const HostChange seen = change(snapshot, take(), 0);
  EXPECT_TRUE(seen.steal);
  EXPECT_THAT(seen.cpu_pressure.reason(), HasSubstr("no readable /proc/pressure/cpu"));
  EXPECT_EQ(seen.clock_change.reason(), "not asked for");
  fs::remove_all(root_ / "proc");
  const HostSnapshot nothing = take();
  for (const Reading& r : {nothing.busy_s, nothing.steal_s, nothing.run_queue})
    EXPECT_THAT(r.reason(), HasSubstr("no readable /proc/stat"));
  EXPECT_THAT(nothing.throttled_s.reason(), HasSubstr("/proc/self/cgroup"));
}

TEST_F(HostSamplerTest, CountersThatWrapOrGoBackwardsAreAbsentForOnce) {
  const HostSnapshot before = take();
  clock_.ns = 1'000'000'000;
  stat(90, 10, 100, 5);
  pressure("io", 1);
  const HostChange seen = change(before, take(), 0);
  EXPECT_EQ(seen.steal.reason(), "the counter went backwards");
  EXPECT_EQ(seen.others.reason(), "the counter went backwards");
  EXPECT_EQ(seen.io_pressure.reason(), "the counter went backwards");
  EXPECT_DOUBLE_EQ(*seen.memory_pressure, 0);
  write("proc/stat", "cpu0 300 0 0 5 0 0 0 20 0 0\nprocs_running 1\n");
  EXPECT_EQ(change(before, take(), 0).others.reason(), "a processor came or went meanwhile");
}

TEST_F(HostSamplerTest, TooShortToJudgeByIsSaid) {
  const HostSnapshot before = take();
  clock_.ns = 100'000'000;
  stat(100, 12, 100, 10);
  EXPECT_THAT(change(before, take(), 0).steal.reason(), HasSubstr("0.10 s are too short"));
  clock_.ns = -5;
  EXPECT_THAT(change(before, take(), 0).others.reason(), HasSubstr("0.00 s are too short"));
}

TEST_F(HostSamplerTest, SleepShowsAsUptimeWithoutMonotonicTime) {
  const HostSnapshot before = take();
  clock_.ns = 1'000'000'000;
  write("proc/uptime", "1061.00 1\n");
  EXPECT_DOUBLE_EQ(*change(before, take(), 0).slept_s, 60);
}

TEST_F(HostSamplerTest, ClockChangeIsTheFasterOverTheSlower) {
  HostSnapshot a = take(), b = take();
  a.clock_ghz = 3.0;
  b.clock_ghz = 2.5;
  EXPECT_NEAR(*change(a, b, 0).clock_change, 0.2, 1e-12);
  EXPECT_NEAR(*change(b, a, 0).clock_change, 0.2, 1e-12);
}

TEST_F(HostSamplerTest, CgroupsOfVersionOneAndOfContainers) {
  write("proc/self/cgroup", "3:cpu,cpuacct:/docker/abc\n0::/\n");
  write("sys/fs/cgroup/cpu,cpuacct/docker/abc/cpu.stat", "throttled_time 7000000000\n");
  EXPECT_EQ(*take().throttled_s, 7);
  fs::remove_all(root_ / "sys/fs/cgroup/cpu,cpuacct/docker");
  write("sys/fs/cgroup/cpu,cpuacct/cpu.stat", "throttled_time 3000000000\n");
  EXPECT_EQ(*take().throttled_s, 3) << "the container's own root";
}

TEST(HostSampler, ThisMachineIsRead) {
  const HostSampler sampler;
  const HostSnapshot before = sampler.take();
  EXPECT_TRUE(before.busy_s) << before.busy_s.reason();
  EXPECT_GT(before.cpus, 0u);
  EXPECT_TRUE(before.load) << before.load.reason();
  EXPECT_TRUE(before.clock_ghz) << before.clock_ghz.reason();
  const HostSnapshot after = sampler.take();
  EXPECT_GT(after.ns, before.ns);
  EXPECT_GE(*after.busy_s, *before.busy_s);
}

}  // namespace
}  // namespace bakeoff::sample
