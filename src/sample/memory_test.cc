#include "sample/memory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>

#include "base/testing.h"

namespace bakeoff::sample {
namespace {

using ::testing::HasSubstr;

class MemoryTest : public ::testing::Test {
 protected:
  void put(const std::string& file, const std::string& text) {
    ASSERT_TRUE(write_file(root_ / "proc/7" / file, text));
  }
  testing::TestFolder root_;
};

TEST_F(MemoryTest, IsReadFromTheKernelsFiles) {
  put("status", "Name:\tVmRSS:\nVmPeak:\t 9 kB\nVmHWM:\t    2048 kB\nVmRSS:\t  1024 kB\n");
  put("smaps_rollup", "5-7 ---p 0 0 0 [rollup]\nRss: 1000 kB\nPss:    900 kB\nPss_Dirty: 1 kB\n");
  const ProcessMemory seen = sample_memory(7, root_);
  EXPECT_EQ(*seen.rss_bytes, 1024 * 1024);
  EXPECT_EQ(*seen.peak_rss_bytes, 2048 * 1024);
  EXPECT_EQ(*seen.pss_bytes, 900 * 1024);
  EXPECT_EQ(sample_memory(7, root_, false).pss_bytes.reason(), "not asked for");
}

TEST_F(MemoryTest, OfSeveralProcessesIsTheirSum) {
  put("status", "VmHWM:\t 2048 kB\nVmRSS:\t 1024 kB\n");
  const ProcessMemory seen = sample_memory(std::vector<pid_t>{7, 7}, root_, false);
  EXPECT_EQ(*seen.rss_bytes, 2 * 1024 * 1024);
  EXPECT_EQ(*seen.peak_rss_bytes, 4 * 1024 * 1024);
  EXPECT_EQ(seen.pss_bytes.reason(), "not asked for");
  EXPECT_EQ(sample_memory(std::vector<pid_t>{7, 8}, root_).rss_bytes.reason(), "there is no process 8");
}

TEST_F(MemoryTest, AbsenceAndGarbageHaveTheirReason) {
  EXPECT_EQ(sample_memory(7, root_).rss_bytes.reason(), "there is no process 7");
  put("status", "VmHWM:\t-4 kB\nVmRSS:\tmuch\n");
  put("smaps_rollup", "Rss: 1 kB\n");
  const ProcessMemory seen = sample_memory(7, root_);
  EXPECT_THAT(seen.rss_bytes.reason(), HasSubstr("'VmRSS' of status is not as expected: 'much'"));
  EXPECT_THAT(seen.peak_rss_bytes.reason(), HasSubstr("not as expected"));
  EXPECT_EQ(seen.pss_bytes.reason(), "smaps_rollup has no line 'Pss'");
}

TEST_F(MemoryTest, ThisProcessGrowsByWhatItTouchesAndItsPeakStays) {
  constexpr size_t kBytes = size_t{64} << 20;
  const ProcessMemory before = sample_memory(::getpid());
  void* block = ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(block, MAP_FAILED);
  std::memset(block, 1, kBytes);
  const ProcessMemory with = sample_memory(::getpid());
  ASSERT_EQ(::munmap(block, kBytes), 0);
  const ProcessMemory after = sample_memory(::getpid());
  constexpr double kMost = 0.9 * kBytes;
  ASSERT_TRUE(before.rss_bytes) << before.rss_bytes.reason();
  EXPECT_GT(*with.rss_bytes - *before.rss_bytes, kMost);
  EXPECT_LT(*after.rss_bytes, *with.rss_bytes - kMost);
  EXPECT_GE(*after.peak_rss_bytes, *with.rss_bytes - 0.1 * kBytes);
  if (with.pss_bytes) {
    EXPECT_LE(*with.pss_bytes, *with.rss_bytes * 1.01);
  }
}

}  // namespace
}  // namespace bakeoff::sample
