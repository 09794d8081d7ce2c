#include "race/usage_marks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/files.h"
#include "base/testing.h"
#include "sample/clock_probe.h"

namespace bakeoff {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using testing::TestFolder;

UsageMark mark(double s, double cpu, double wait, double faults, double switches) {
  const auto ns = static_cast<int64_t>(s * 1e9);
  UsageMark m{.ns = ns, .read_ns = ns, .cpu_s = cpu};
  m.process.wait_s = wait;
  m.process.minor_faults = faults;
  m.process.major_faults = 0.0;
  m.process.voluntary_switches = switches;
  m.process.involuntary_switches = 2 * switches;
  m.energy.absent = "no sensor";
  for (std::string& why : m.perf.absent) why = "no counter here";
  return m;
}

TEST(UsageBetween, IsTheDifferenceAndWhatIsAbsentHasItsReason) {
  Texts absent;
  auto used = usage_between(mark(1, 10, 1, 100, 5), mark(2, 11.5, 1.25, 350, 9), absent);
  EXPECT_DOUBLE_EQ(used.at("wall_s"), 1);
  EXPECT_DOUBLE_EQ(used.at("cpu_s"), 1.5);
  EXPECT_DOUBLE_EQ(used.at("wait_s"), 0.25);
  EXPECT_DOUBLE_EQ(used.at("minor_faults"), 250);
  EXPECT_DOUBLE_EQ(used.at("major_faults"), 0);
  EXPECT_DOUBLE_EQ(used.at("voluntary_switches"), 4);
  EXPECT_DOUBLE_EQ(used.at("involuntary_switches"), 8);
  EXPECT_FALSE(used.contains("energy_j")) << "never a zero";
  EXPECT_EQ(absent.at("energy_j"), "no sensor");
  EXPECT_EQ(absent.at("instructions"), "no counter here");
  absent.clear();
  used = usage_between(mark(1, 10, 1, 100, 5), mark(2, 11, 0.5, 100, 5), absent);
  EXPECT_FALSE(used.contains("wait_s")) << "a thread ended and took its count along";
  EXPECT_EQ(absent.at("wait_s"), "a counter went backwards");
}

TEST(UsageBetween, TimeOfAReadingThatWasHeldUpCounts) {
  const UsageMark before = mark(1, 10, 0, 0, 0);
  UsageMark after = mark(2, 11.5, 0, 0, 0);
  after.read_ns += 500'000'000;  // the worker's threads went on while this process waited for a processor
  Texts absent;
  EXPECT_DOUBLE_EQ(usage_between(before, after, absent).at("wall_s"), 1.5);
}

TEST(MarkUsage, SeesThisProcessAtWork) {
  const UsageMark before = mark_usage(::getpid());
  const int64_t enough = sample::cpu_time_ns(::getpid()).value() + 20'000'000;
  while (sample::cpu_time_ns(::getpid()).value() < enough) sample::dependent_chain(1000);
  Texts absent;
  const auto used = usage_between(before, mark_usage(::getpid()), absent);
  EXPECT_GE(used.at("cpu_s"), 0.02);
  EXPECT_GT(used.at("wall_s"), 0);
  EXPECT_TRUE(used.contains("minor_faults"));
}

TEST(TreeCpu, CountsChildrenThatWorkAndThoseThatEnded) {
  const double before = tree_cpu_s(::getpid());
  const pid_t child = ::fork();
  if (child == 0) {
    while (sample::dependent_chain(1000) != 0) {
    }
  }
  ASSERT_GT(child, 0);
  while (sample::cpu_time_ns(child).value() < 200'000'000) ::usleep(1000);
  EXPECT_GE(tree_cpu_s(::getpid()) - before, 0.15) << "of a child at work; ticks are of 10 ms";
  EXPECT_GE(*mark_usage(::getpid()).cpu_s - before, 0.15) << "ranks and loaders work for the contender";
  ::kill(child, SIGKILL);
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_GE(tree_cpu_s(::getpid()) - before, 0.15) << "of one that was waited for";
}

TEST(TreeCpu, WaitsForNoPipe) {
  const TestFolder folder;
  const fs::path proc = folder / "proc" / std::to_string(::getpid());
  ASSERT_TRUE(write_file(proc / "stat", "7 (a) S 1 2 3 4 5 6 7 8 9 10 1 2 300 400 5\n"));
  const double ticks = static_cast<double>(::sysconf(_SC_CLK_TCK));
  const double with_ended = tree_cpu_s(::getpid(), folder / ".");
  EXPECT_GE(with_ended, 700 / ticks) << "of those that ended";
  fs::remove(proc / "stat");
  ASSERT_EQ(::mkfifo((proc / "stat").c_str(), 0600), 0);
  const double own = tree_cpu_s(::getpid(), folder / ".");
  EXPECT_GT(own, 0) << "that of the kernel's clock";
  EXPECT_LT(own, with_ended);
}

TEST(MarkUsage, WaitsForNoPipe) {
  const TestFolder folder;
  const fs::path proc = folder / "proc" / std::to_string(::getpid());
  fs::create_directories(proc / "task/7");
  for (const char* file : {"stat", "task/7/status", "task/7/schedstat"})
    ASSERT_EQ(::mkfifo((proc / file).c_str(), 0600), 0) << file;
  const UsageMark seen = mark_usage(::getpid(), folder / ".");
  EXPECT_TRUE(seen.cpu_s);
  for (const sample::Reading& reading :
       {seen.process.minor_faults, seen.process.voluntary_switches, seen.process.wait_s})
    EXPECT_THAT(reading.reason(), ::testing::HasSubstr("there is no"));
}

TEST(MarkUsage, ReadsEnergyBelowItsRoot) {
  const TestFolder folder;
  const fs::path zone = folder / "sys/class/powercap/intel-rapl:0";
  ASSERT_TRUE(write_file(zone / "name", "package-0\n"));
  ASSERT_TRUE(write_file(zone / "energy_uj", "1000000\n"));
  const UsageMark before = mark_usage(::getpid(), folder / ".");
  ASSERT_TRUE(write_file(zone / "energy_uj", "3500000\n"));
  Texts absent;
  EXPECT_DOUBLE_EQ(usage_between(before, mark_usage(::getpid(), folder / "."), absent).at("energy_j"), 2.5);
  EXPECT_TRUE(absent.contains("minor_faults")) << "there is no process below that root";
}

}  // namespace
}  // namespace bakeoff
