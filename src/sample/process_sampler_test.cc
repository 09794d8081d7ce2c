#include "sample/process_sampler.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <map>

#include "base/testing.h"
#include "sample/clock_probe.h"

namespace bakeoff::sample {
namespace {

using ::testing::HasSubstr;

class ProcessSamplerTest : public ::testing::Test {
 protected:
  void thread(const std::string& id, const std::string& status, const std::string& schedstat) {
    ASSERT_TRUE(write_file(root_ / "proc/7/task" / id / "status", status));
    if (schedstat.empty()) return;
    ASSERT_TRUE(write_file(root_ / "proc/7/task" / id / "schedstat", schedstat));
  }
  testing::TestFolder root_;
};

TEST_F(ProcessSamplerTest, SumsOverThreads) {
  thread("7", "nonvoluntary_ctxt_switches:\t3\n", "100 2000000000 1\n");
  thread("8", "nonvoluntary_ctxt_switches:\t4\n", "100 500000000 1\n");
  const ProcessSnapshot seen = sample_process(7, root_);
  EXPECT_EQ(*seen.involuntary_switches, 7);
  EXPECT_DOUBLE_EQ(*seen.wait_s, 2.5);
}

TEST_F(ProcessSamplerTest, CpuOfEveryProcessIsRead) {
  const auto ticks = [&](const char* pid, int parent, int user, int system, int ended) {
    const std::string stat =
        fmt::format("{} (a) b) S {} 2 3 4 5 6 41 900 5 901 {} {} {} 0\n", pid, parent, user, system, ended);
    EXPECT_TRUE(write_file(root_ / "proc" / pid / "stat", stat));
  };
  ticks("7", 1, 100, 20, 3), ticks("8", 7, 1000, 0, 0);
  ASSERT_TRUE(write_file(root_ / "proc/stat", "cpu 1 2 3\n"));
  const std::map<pid_t, ProcessCpu> expected = {{7, {120, 3, 1}}, {8, {1000, 0, 7}}};
  EXPECT_EQ(cpu_by_process(root_), expected);
  EXPECT_TRUE(cpu_by_process(root_ / "nowhere").empty());
}

TEST(CpuOfOthers, IsWhatEachUsedBetweenTwoLooks) {
  const double tick_s = 1.0 / static_cast<double>(::sysconf(_SC_CLK_TCK));
  const std::map<pid_t, ProcessCpu> before = {
      {1, {5, 0, 0}}, {7, {100, 0, 1}}, {8, {40, 0, 7}}, {9, {900, 0, 1}}};
  std::map<pid_t, ProcessCpu> after = before;
  after[7].own_ticks += 30;
  EXPECT_DOUBLE_EQ(cpu_of_others_s(before, after, {9}), 30 * tick_s);
  EXPECT_DOUBLE_EQ(cpu_of_others_s(before, after, {7, 8}), 0);
  after.erase(8);  // it ended after 12 more, and its parent waited for it
  after[7].of_ended_ticks += 52;
  EXPECT_DOUBLE_EQ(cpu_of_others_s(before, after, {9}), 42 * tick_s);
  after.erase(7);  // so did that one, and nobody knows what it used
  EXPECT_DOUBLE_EQ(cpu_of_others_s(before, after, {9}), 0) << "what is gone is no less work of others";
  after[10] = {25, 0, 1};
  EXPECT_DOUBLE_EQ(cpu_of_others_s(before, after, {9}), 25 * tick_s);
}

TEST_F(ProcessSamplerTest, OneThreadsGarbageLeavesNoSum) {
  for (const char* garbage : {"7", "8", "9"}) {  // whichever comes first in the folder
    for (const char* id : {"7", "8", "9"}) {
      const bool good = std::string(id) != garbage;
      thread(id, good ? "voluntary_ctxt_switches:\t30\nnonvoluntary_ctxt_switches:\t3\n" : "Name:\tx\n",
             good ? "100 2000000000 1\n" : "garbage\n");
    }
    const ProcessSnapshot seen = sample_process(7, root_);
    EXPECT_THAT(seen.involuntary_switches.reason(), HasSubstr("no line 'nonvoluntary")) << garbage;
    EXPECT_THAT(seen.voluntary_switches.reason(), HasSubstr("no line 'voluntary")) << garbage;
    EXPECT_THAT(seen.wait_s.reason(), HasSubstr("schedstat is not as expected")) << garbage;
  }
  fs::remove(root_ / "proc/7/task/9/schedstat");
  thread("8", "voluntary_ctxt_switches:\t1\nnonvoluntary_ctxt_switches:\t1\n", "1 500000000 1\n");
  EXPECT_DOUBLE_EQ(*sample_process(7, root_).wait_s, 2.5) << "a thread that ended is left out";
}

TEST_F(ProcessSamplerTest, PageFaultsAreThoseOfTheProcessWhateverItsName) {
  EXPECT_EQ(sample_process(7, root_).minor_faults.reason(), "there is no process 7");
  ASSERT_TRUE(write_file(root_ / "proc/7/stat", "7 (a) b (c) S 1 2 3 4 5 6 41 900 5 901 8 9\n"));
  thread("7", "voluntary_ctxt_switches:\t30\nnonvoluntary_ctxt_switches:\t3\n", "1 2 3\n");
  thread("8", "voluntary_ctxt_switches:\t12\nnonvoluntary_ctxt_switches:\t4\n", "1 2 3\n");
  const ProcessSnapshot seen = sample_process(7, root_);
  EXPECT_EQ(*seen.minor_faults, 41);
  EXPECT_EQ(*seen.major_faults, 5);
  EXPECT_EQ(*seen.voluntary_switches, 42);
  for (const char* garbage : {"", "7 (a", "7 (a) S 1 2", "7 (a) S 1 2 3 4 5 6 x 900 5 901\n"}) {
    ASSERT_TRUE(write_file(root_ / "proc/7/stat", garbage));
    EXPECT_THAT(sample_process(7, root_).minor_faults.reason(), HasSubstr("is not as expected")) << garbage;
  }
}

TEST(ProcessSampler, SeesThePagesThatAProcessTouches) {
  const auto faults = [] { return *sample_process(::getpid()).minor_faults; };
  const double before = faults();
  constexpr size_t kPages = 512;
  void* memory = ::mmap(nullptr, kPages * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  ASSERT_EQ(::madvise(memory, kPages * 4096, MADV_NOHUGEPAGE), 0);
  for (size_t page = 0; page < kPages; ++page) static_cast<volatile char*>(memory)[page * 4096] = 1;
  EXPECT_GE(faults() - before, kPages);
  ::munmap(memory, kPages * 4096);
}

TEST_F(ProcessSamplerTest, AbsentWithItsReason) {
  EXPECT_EQ(sample_process(7, root_).wait_s.reason(), "there is no process 7");
  thread("7", "nonvoluntary_ctxt_switches:\t3\n", "");
  const ProcessSnapshot seen = sample_process(7, root_);
  EXPECT_EQ(*seen.involuntary_switches, 3);
  EXPECT_EQ(seen.wait_s.reason(), "there is no readable schedstat");
  thread("7", "Name:\tx\n", "garbage\n");
  const ProcessSnapshot odd = sample_process(7, root_);
  EXPECT_THAT(odd.involuntary_switches.reason(), HasSubstr("no line 'nonvoluntary_ctxt_switches'"));
  EXPECT_THAT(odd.wait_s.reason(), HasSubstr("schedstat is not as expected"));
}

TEST(WantsProcessor, WhoeverRunsAndNobodyElse) {
  EXPECT_TRUE(wants_processor(::getpid()));
  const pid_t child = ::fork();
  if (child == 0) {
    ::prctl(PR_SET_NAME, "a) R b");
    ::raise(SIGSTOP);
  }
  ASSERT_GT(child, 0);
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, WUNTRACED), child);
  EXPECT_FALSE(wants_processor(child)) << "stopped";
  ::kill(child, SIGKILL);
  ::waitpid(child, &status, 0);
  EXPECT_FALSE(wants_processor(child)) << "gone";
}

TEST(CpuTime, GrowsWithWorkAloneAndEndsWithTheProcess) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::raise(SIGSTOP);
    while (dependent_chain(1000) != 0) {
    }
  }
  ASSERT_GT(child, 0);
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, WUNTRACED), child);
  const int64_t stopped = cpu_time_ns(child).value();
  ::usleep(20'000);
  EXPECT_EQ(cpu_time_ns(child).value(), stopped) << "a frozen process uses none";
  ::kill(child, SIGCONT);
  EXPECT_TRUE(testing::soon([&] { return cpu_time_ns(child).value() >= stopped + 5'000'000; }));
  ::kill(child, SIGKILL);
  ::waitpid(child, &status, 0);
  EXPECT_FALSE(cpu_time_ns(child));
  EXPECT_FALSE(cpu_time_ns(0)) << "not ourselves";
}

}  // namespace
}  // namespace bakeoff::sample
