#include "machine/doctor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>

#include "base/testing.h"

namespace bakeoff {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

const Finding& about(const std::vector<Finding>& findings, const std::string& topic) {
  static const Finding none{Level::kProblem, "none", "no such topic"};
  for (const Finding& finding : findings) {
    if (finding.topic == topic) return finding;
  }
  return none;
}

class DoctorTest : public ::testing::Test {
 protected:
  void put(const std::string& path, const std::string& text) { ASSERT_TRUE(write_file(root_ / path, text)); }
  Finding host(const std::string& topic, int cpus = 4) { return about(check_host(root_, cpus), topic); }

  void python(const std::string& script) {
    const fs::path path = folder_ / "python";
    ASSERT_TRUE(write_file(path, "#!/bin/sh\n" + script));
    fs::permissions(path, fs::perms::owner_all);
    environment_ = {.name = "torch", .python = path, .state = EnvironmentState::kReady};
  }

  const testing::TestFolder folder_;
  const fs::path root_ = folder_ / "root";
  Environment environment_;
};

TEST_F(DoctorTest, AGoodMachineIsFine) {
  for (const char* cpu : {"cpu0", "cpu1"}) {
    put(std::string("sys/devices/system/cpu/") + cpu + "/cpufreq/scaling_governor", "performance\n");
  }
  put("sys/devices/system/cpu/cpufreq/boost", "0\n");
  put("sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n");
  put("proc/loadavg", "0.10 0.50 0.60 1/200 3000\n");
  put("proc/meminfo", "MemTotal: 24000000 kB\nMemAvailable: 20971520 kB\n");
  put("proc/self/cgroup", "0::/\n");
  put("sys/fs/cgroup/cpu.max", "max 100000\n");
  for (const Finding& finding : check_host(root_, 2)) {
    EXPECT_EQ(finding.level, Level::kOk) << finding.topic << ": " << finding.text;
    EXPECT_THAT(finding.remedy, IsEmpty());
  }
  EXPECT_EQ(host("memory").text, "20.0 GiB available");
}

TEST_F(DoctorTest, WhatDistortsIsAWarningWithARemedy) {
  put("sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "powersave\n");
  put("sys/devices/system/cpu/cpu1/cpufreq/scaling_governor", "performance\n");
  put("proc/loadavg", "3.10 0.50 0.60 1/200 3000\n");
  put("proc/meminfo", "MemAvailable: 1048576 kB\n");
  put("proc/self/cgroup", "0::/slice/job\n");
  put("sys/fs/cgroup/slice/job/cpu.max", "max 100000\n");
  put("sys/fs/cgroup/slice/cpu.max", "150000 100000\n");
  put("sys/fs/cgroup/cpu.max", "max 100000\n");
  for (const char* topic : {"frequency governor", "load", "memory", "CPUs"}) {
    EXPECT_EQ(host(topic).level, Level::kWarning) << topic;
    EXPECT_FALSE(host(topic).remedy.empty()) << topic;
  }
  EXPECT_THAT(host("frequency governor").text, HasSubstr("performance on 1, powersave on 1 CPUs"));
  EXPECT_THAT(host("CPUs").text, HasSubstr("a quota of 1.5"));
  EXPECT_EQ(host("CPUs", 1).level, Level::kOk);
  EXPECT_EQ(host("load", 32).level, Level::kOk);
  put("proc/meminfo", "MemAvailable: 20971520 kB\n");
  EXPECT_EQ(host("memory").level, Level::kOk);
  put("sys/fs/cgroup/slice/memory.max", "2147483648\n");
  put("sys/fs/cgroup/slice/memory.current", "1073741824\n");
  EXPECT_THAT(host("memory").text, HasSubstr("1.0 GiB available")) << "to our cgroup";
}

TEST_F(DoctorTest, TheOldCgroupsAndHugePages) {
  put("proc/self/cgroup", "1:cpu:/job\n");
  put("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "100000\n");
  put("sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
  EXPECT_THAT(host("CPUs").text, HasSubstr("a quota of 1.0"));
  put("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n");
  EXPECT_EQ(host("CPUs").level, Level::kOk);
  put("sys/kernel/mm/transparent_hugepage/enabled", "always madvise [never]\n");
  EXPECT_EQ(host("transparent huge pages").level, Level::kNote);
}

TEST_F(DoctorTest, WhatAVirtualMachineHidesIsANote) {
  for (const Finding& finding : check_host(root_, 2)) EXPECT_LE(finding.level, Level::kNote) << finding.topic;
}

TEST_F(DoctorTest, WaitsForNoPipe) {
  for (const char* file :
       {"proc/loadavg", "proc/meminfo", "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor",
        "sys/devices/system/cpu/cpufreq/boost", "sys/kernel/mm/transparent_hugepage/enabled"}) {
    fs::create_directories((root_ / file).parent_path());
    ASSERT_EQ(::mkfifo((root_ / file).c_str(), 0600), 0) << file;
  }
  EXPECT_EQ(host("load").text, "not visible: loadavg: it is not a regular file");
  EXPECT_EQ(host("turbo").text, "not visible");
  EXPECT_EQ(host("transparent huge pages").text, "not visible");
  EXPECT_EQ(host("memory").text, "not visible");
}

TEST_F(DoctorTest, VariablesThatWorkersWouldInheritAreListed) {
  const auto none = check_variables([](const char*) -> const char* { return nullptr; });
  ASSERT_EQ(none.size(), 1u);
  EXPECT_EQ(none[0].level, Level::kOk);
  const auto two = check_variables([](const char* name) -> const char* {
    return std::strcmp(name, "LD_PRELOAD") == 0        ? "libjemalloc.so"
           : std::strcmp(name, "OMP_NUM_THREADS") == 0 ? "1"
                                                       : "";
  });
  ASSERT_EQ(two.size(), 2u);
  EXPECT_THAT(two[0].text, HasSubstr("LD_PRELOAD=libjemalloc.so"));
  EXPECT_THAT(two[1].remedy, HasSubstr("unset OMP_NUM_THREADS"));
}

TEST_F(DoctorTest, ProbesReadWhatTheChildSays) {
  python("echo noise; printf 'bakeoff:version.torch\\t2.13.0\\nbakeoff:done\\tyes\\n'");
  const auto probed = probe_environment(environment_, folder_, testing::kNet);
  ASSERT_TRUE(probed) << probed.error().text();
  EXPECT_EQ(probed->at("version.torch"), "2.13.0");
}

TEST_F(DoctorTest, AnImportThatFailsHangsOrStopsHalfwayIsReported) {
  python("echo 'Traceback'; echo 'ImportError: libtorch.so: no such file'; exit 1");
  EXPECT_EQ(probe_environment(environment_, folder_, testing::kNet).error().message,
            "importing it failed: exit code 1: ImportError: libtorch.so: no such file");
  python("printf 'bakeoff:version.torch\\t2\\n'");
  EXPECT_FALSE(probe_environment(environment_, folder_, testing::kNet));
  python("exec sleep 60");
  EXPECT_THAT(probe_environment(environment_, folder_, 1).error().message, HasSubstr("timed out after 1 s"));
}

TEST_F(DoctorTest, AnInterpreterWithoutKerasIsAWarning) {
  python(R"(case "$*" in
    *importlib.metadata*) echo bakeoff:torch==2.9; echo bakeoff:numpy==2; echo bakeoff:safetensors==1 ;;
    *) printf 'bakeoff:missing.keras\tNo module named keras\nbakeoff:done\tyes\n' ;;
  esac)");
  const EnvironmentStore store{.home = folder_ / "home",
                               .config = {.interpreters = {{"torch", folder_ / "python"}}}};
  const Finding torch = about(doctor(store, {.root = root_}, [](const std::string&) {}), "environment torch");
  EXPECT_EQ(torch.level, Level::kWarning);
  EXPECT_THAT(torch.text,
              HasSubstr("torch 2.9, numpy 2 (" + (folder_ / "python").string() + "); keras cannot be"));
  EXPECT_THAT(torch.remedy, HasSubstr("-m pip install keras"));
}

TEST_F(DoctorTest, TheWholeOfItOnAnEmptyHome) {
  const EnvironmentStore store{.home = folder_ / "home"};
  const auto findings = doctor(store, {.root = root_}, [](const std::string&) {});
  const Finding torch = about(findings, "environment torch");
  EXPECT_EQ(torch.level, Level::kProblem);
  EXPECT_EQ(torch.remedy, "run 'bakeoff env create torch'");
  EXPECT_EQ(about(findings, "MNIST").level, Level::kNote);
  EXPECT_THAT(about(findings, "disk").text, HasSubstr("free for " + store.home.string()));
  EXPECT_TRUE(has_problem(findings));
  for (const Finding& finding : findings) {
    EXPECT_EQ(finding.remedy.empty(), finding.level == Level::kOk) << finding.topic << ": " << finding.text;
  }
}

}  // namespace
}  // namespace bakeoff
