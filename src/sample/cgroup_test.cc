#include "sample/cgroup.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/testing.h"

namespace bakeoff::sample {
namespace {

using ::testing::HasSubstr;

class CgroupTest : public ::testing::Test {
 protected:
  void put(const std::string& file, const std::string& text) { ASSERT_TRUE(write_file(root_ / file, text)); }
  testing::TestFolder root_;
};

TEST_F(CgroupTest, Version2WithTheLeastLimitOfItsAncestors) {
  put("proc/self/cgroup", "0::/a/b\n");
  put("sys/fs/cgroup/a/b/memory.current", "1000\n");
  put("sys/fs/cgroup/a/b/memory.peak", "5000\n");
  put("sys/fs/cgroup/a/b/memory.max", "max\n");
  put("sys/fs/cgroup/a/memory.max", "8000\n");
  const CgroupMemory seen = sample_cgroup_memory(root_);
  EXPECT_EQ(*seen.used_bytes, 1000);
  EXPECT_EQ(*seen.peak_bytes, 5000);
  EXPECT_EQ(*seen.limit_bytes, 8000) << "the parent's";
}

TEST_F(CgroupTest, Version1WhoseNoLimitIsALargeNumber) {
  put("proc/self/cgroup", "4:memory:/job\n1:cpu:/\n");
  put("sys/fs/cgroup/memory/job/memory.usage_in_bytes", "1000\n");
  put("sys/fs/cgroup/memory/job/memory.max_usage_in_bytes", "3000\n");
  put("sys/fs/cgroup/memory/job/memory.limit_in_bytes", "9223372036854771712\n");
  CgroupMemory seen = sample_cgroup_memory(root_);
  EXPECT_EQ(*seen.used_bytes, 1000);
  EXPECT_EQ(*seen.peak_bytes, 3000);
  EXPECT_EQ(seen.limit_bytes.reason(), "no limit is set");
  put("sys/fs/cgroup/memory/job/memory.limit_in_bytes", "4096\n");
  EXPECT_EQ(*sample_cgroup_memory(root_).limit_bytes, 4096);
}

TEST_F(CgroupTest, HybridTakesMemoryFromTheHierarchyThatHasIt) {
  put("proc/self/cgroup", "4:memory:/job\n0::/user.slice\n");
  put("sys/fs/cgroup/memory/memory.usage_in_bytes", "7\n");  // a container: the path is the host's
  put("sys/fs/cgroup/unified/user.slice/cpu.stat", "throttled_usec 0\n");
  CgroupMemory seen = sample_cgroup_memory(root_);
  EXPECT_EQ(*seen.used_bytes, 7);
  EXPECT_THAT(seen.peak_bytes.reason(), HasSubstr("memory.peak or memory.max_usage_in_bytes"));
  fs::remove_all(root_ / "sys/fs/cgroup/memory");
  put("proc/self/cgroup", "0::/user.slice\n");
  put("sys/fs/cgroup/unified/user.slice/memory.current", "9\n");
  EXPECT_EQ(*sample_cgroup_memory(root_).used_bytes, 9);
}

TEST_F(CgroupTest, WhatIsLeftOfMemoryIsTheLeastOfAllGroups) {
  EXPECT_FALSE(cgroup_memory_left(root_));
  put("proc/self/cgroup", "0::/a/b\n");
  put("sys/fs/cgroup/a/b/memory.current", "1000\n");
  put("sys/fs/cgroup/a/b/memory.max", "max\n");
  EXPECT_EQ(cgroup_memory_left(root_).reason(), "no limit is set");
  put("sys/fs/cgroup/a/memory.current", "7000\n");
  put("sys/fs/cgroup/a/memory.max", "8000\n");
  EXPECT_EQ(*cgroup_memory_left(root_), 1000) << "its neighbours there count, too";
  put("sys/fs/cgroup/a/memory.stat", "anon 7\ninactive_file 300\nactive_file 200\n");
  EXPECT_EQ(*cgroup_memory_left(root_), 1500);
  put("sys/fs/cgroup/a/b/memory.max", "900\n");
  EXPECT_EQ(*cgroup_memory_left(root_), 0) << "never negative";
}

TEST_F(CgroupTest, TheQuotaIsTheLeastOfAllGroups) {
  EXPECT_FALSE(cgroup_cpu_quota(root_));
  put("proc/self/cgroup", "0::/a/b\n");
  put("sys/fs/cgroup/a/b/cpu.max", "max 100000\n");
  EXPECT_EQ(cgroup_cpu_quota(root_).reason(), "no quota is set");
  put("sys/fs/cgroup/a/cpu.max", "150000 100000\n");
  put("sys/fs/cgroup/cpu.max", "400000 100000\n");
  EXPECT_DOUBLE_EQ(*cgroup_cpu_quota(root_), 1.5) << "the parent's";
  for (const char* garbage : {"", "many 100000", "150000", "150000 0", "-1 100000", "1 2 3"}) {
    put("sys/fs/cgroup/a/cpu.max", garbage);
    EXPECT_DOUBLE_EQ(*cgroup_cpu_quota(root_), 4) << garbage;
  }
  put("proc/self/cgroup", "3:cpu,cpuacct:/job\n");
  put("sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_quota_us", "-1\n");
  put("sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_period_us", "100000\n");
  EXPECT_FALSE(cgroup_cpu_quota(root_));
  put("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "50000\n");
  put("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000\n");
  EXPECT_DOUBLE_EQ(*cgroup_cpu_quota(root_), 0.5);
}

TEST_F(CgroupTest, GarbageAndAbsenceHaveTheirReason) {
  EXPECT_THAT(sample_cgroup_memory(root_).used_bytes.reason(), HasSubstr("/proc/self/cgroup"));
  put("proc/self/cgroup", "0::/\n");
  EXPECT_THAT(sample_cgroup_memory(root_).limit_bytes.reason(), HasSubstr("no cgroup of ours"));
  for (const char* garbage : {"", "many\n", "-3\n", "12 apples\n"}) {
    put("sys/fs/cgroup/memory.current", garbage);
    put("sys/fs/cgroup/memory.max", garbage);
    const CgroupMemory seen = sample_cgroup_memory(root_);
    EXPECT_THAT(seen.used_bytes.reason(), HasSubstr("not as expected")) << garbage;
    EXPECT_THAT(seen.limit_bytes.reason(), HasSubstr("not as expected")) << garbage;
  }
}

}  // namespace
}  // namespace bakeoff::sample
