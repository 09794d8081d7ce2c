#include "records/machine_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <limits>

#include "base/files.h"
#include "machine/machine_facts.h"
#include "worker/testing.h"

namespace bakeoff {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::TestFolder;

MachineReport report() {
  MachineReport m{.bakeoff_version = "0.1.0", .measured = "2026-11-21T12:00:00Z"};
  m.host = {"box", "Linux 6.1", "EPYC", "Debian", 2, int64_t{8} << 30, {}};
  m.facts = {{"microcode", "0x1"}, {"processor flags", "avx2 fma sse2"}, {"swappiness", "60"}};
  m.limits.cpus = 2;
  m.limits.peaks = {{.dtype = "f32",
                     .isa = "avx2",
                     .ops = {100e9, 200e9},
                     .lanes = 8,
                     .units = 2,
                     .units_from = "model",
                     .clock_hz = 3.1e9}};
  m.limits.levels = {{.name = "DRAM", .touched = {1e9, 5e8}, .read = {12e9, 20e9}}};
  m.limits.gemms = {
      {.library = "OpenBLAS", .path = "/l.so", .dtype = "f32", .ops = {90e9, 170e9}, .size = 2048}};
  m.limits.gpus = {{.name = "G", .gemm = {{"bf16", 1e15}}, .memory = 3e12}};
  m.limits.page_fault_s = 2.5e-7;
  m.limits.absent = {{"bf16 peak", "no AVX512_BF16"}};
  return m;
}

TEST(MachineReport, ParseOfItsTextIsItself) {
  MachineReport m = report();
  m.disturbed = "the hypervisor took 9%";
  const auto back = machine_from_json(to_json(m), "f.json");
  ASSERT_TRUE(back) << back.error().text();
  EXPECT_EQ(*back, m);
}

TEST(MachineReport, DamagedTextIsAnErrorThatNamesFileAndRemedy) {
  const std::string good = to_json(report());
  std::string negative = good;
  negative.replace(negative.find("12000000000.0"), 13, "-1");
  std::string wrong_type = good;
  wrong_type.replace(wrong_type.find("\"measured\": \""), 13, "\"measured\": 7, \"x\": \"");
  for (const std::string& text :
       {std::string(), std::string("{"), std::string("[1]"), std::string("{\"limits\": 3}"),
        std::string("\xff\xfe\x00garbage", 10), good.substr(0, good.size() / 2), negative, wrong_type}) {
    const auto back = machine_from_json(text, "f.json");
    ASSERT_FALSE(back) << text;
    EXPECT_EQ(back.error().where, "f.json");
    EXPECT_THAT(back.error().remedy, HasSubstr("bakeoff machine"));
  }
}

TEST(MachineReport, SpeaksForItsOwnMachineOnly) {
  const MachineReport m = report();
  EXPECT_EQ(stale(m, m.host), "");
  Host other = m.host;
  other.cpu = "Xeon";
  EXPECT_THAT(stale(m, other), HasSubstr("another processor: 'EPYC', here 'Xeon'"));
  other = m.host;
  other.kernel = "Linux 6.2";
  EXPECT_THAT(stale(m, other), HasSubstr("another kernel"));
  other = m.host;
  other.cpus = 1;
  EXPECT_THAT(stale(m, other), HasSubstr("another number of CPUs"));
}

TEST(MachineReport, ARunKeepsItAndIgnoresThatOfAnotherMachine) {
  const TestFolder folder;
  const MachineReport m = report();
  std::string note;
  ASSERT_TRUE(keep_machine(folder.path(), m.host, folder / "run"));
  EXPECT_FALSE(machine_of_run(folder / "run", m.host, note)) << "there is none";
  EXPECT_EQ(note, "");
  ASSERT_TRUE(write_file(machine_file(folder.path(), m.host), to_json(m)));
  ASSERT_TRUE(keep_machine(folder.path(), m.host, folder / "run"));
  EXPECT_EQ(machine_of_run(folder / "run", m.host, note), m);
  Host other = m.host;
  other.name = "elsewhere";
  EXPECT_FALSE(machine_of_run(folder / "run", other, note));
  EXPECT_THAT(note, HasSubstr("another host: 'box', here 'elsewhere'"));
  ASSERT_TRUE(write_file(folder / "run" / "machine.json", "garbage"));
  EXPECT_FALSE(machine_of_run(folder / "run", m.host, note));
  EXPECT_THAT(note, HasSubstr("not the record of a machine"));
}

TEST(MachineReport, AnUndisturbedRecordStaysWhereANewOneWasDisturbed) {
  const TestFolder folder;
  const fs::path file = folder / "m.json";
  MachineReport kept = report(), fresh = report();
  fresh.disturbed = "other processes used 22% of the processors' time (limit 10%)";
  EXPECT_FALSE(better_kept(file, fresh)) << "there is none";
  ASSERT_TRUE(write_file(file, to_json(kept)));
  EXPECT_EQ(better_kept(file, fresh), kept);
  EXPECT_FALSE(better_kept(file, report())) << "the new one is as good, and newer";
  MachineReport elsewhere = fresh;
  elsewhere.host.kernel = "Linux 6.2";
  EXPECT_FALSE(better_kept(file, elsewhere)) << "it does not speak for this machine";
  ASSERT_TRUE(write_file(file, to_json(fresh)));
  EXPECT_FALSE(better_kept(file, fresh)) << "it was disturbed, too";
}

TEST(MachineFile, AHostNameCannotLeaveTheFolder) {
  EXPECT_EQ(machine_file("/h", {.name = "../../etc/x"}).parent_path(), "/h/machine");
  EXPECT_EQ(machine_file("/h", {}).filename(), "machine.json");
}

TEST(ReadFacts, FromAFakeRootAndWhatIsMissingSaysSo) {
  const TestFolder root;
  ASSERT_TRUE(write_file(
      root / "proc" / "cpuinfo",
      "processor\t: 0\nmodel\t\t: 1\nmodel name\t: EPYC 9\nmicrocode\t: 0xa0\nflags\t\t: sse2 avx2 "
      "hypervisor\n\nprocessor\t: 1\nmodel name\t: other\n"));
  ASSERT_TRUE(
      write_file(root / "sys" / "kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n"));
  ASSERT_TRUE(
      write_file(root / "sys" / "devices/system/cpu/vulnerabilities/spectre_v2", "Mitigation: Retpolines\n"));
  ASSERT_TRUE(write_file(root / "proc" / "cmdline", std::string("quiet\x01\x1b[31m\xff\n")));
  ASSERT_TRUE(write_file(root / "proc" / "self/cgroup", "0::/job\n"));
  ASSERT_TRUE(write_file(root / "sys" / "fs/cgroup/job/memory.max", "8589934592\n"));
  ASSERT_TRUE(write_file(root / "sys" / "fs/cgroup/job/cpu.max", "150000 100000\n"));
  const auto variable = [](const char* name) -> const char* {
    return std::string_view(name) == "LD_PRELOAD" ? "libjemalloc.so" : nullptr;
  };
  const Texts facts = read_facts(root.path(), variable);
  EXPECT_EQ(facts.at("processor"), "EPYC 9");
  EXPECT_EQ(facts.at("processor model"), "1");
  EXPECT_EQ(facts.at("microcode"), "0xa0");
  EXPECT_EQ(facts.at("processor flags"), "avx2 hypervisor sse2");
  EXPECT_EQ(facts.at("hypervisor"), "yes");
  EXPECT_EQ(facts.at("transparent huge pages"), "always [madvise] never");
  EXPECT_EQ(facts.at("mitigations: spectre v2"), "Mitigation: Retpolines");
  EXPECT_EQ(facts.at("frequency governor"), "not visible");
  EXPECT_EQ(facts.at("cgroup memory limit, ours and above"), "8192 MiB");
  EXPECT_EQ(facts.at("cgroup CPU quota, ours and above"), "1.50 processors");
  EXPECT_THAT(facts.at("allocator"), HasSubstr("libjemalloc.so"));
  EXPECT_EQ(facts.at("variable XLA_FLAGS"), "not set");
  EXPECT_EQ(facts.at("kernel command line").find('\x1b'), std::string::npos) << "nothing that moves a cursor";
  const Texts nothing = read_facts(root / "missing", [](const char*) { return nullptr; });
  EXPECT_EQ(nothing.at("microcode"), "not visible");
  EXPECT_EQ(nothing.at("hypervisor"), "not visible");
  EXPECT_EQ(nothing.at("cgroup CPU quota, ours and above"), "no quota is set");
}

TEST(ReadFacts, WaitForNoPipe) {
  const TestFolder root;
  for (const char* file :
       {"proc/cpuinfo", "proc/cmdline", "sys/devices/system/cpu/vulnerabilities/meltdown"}) {
    fs::create_directories((root.path() / file).parent_path());
    ASSERT_EQ(::mkfifo((root.path() / file).c_str(), 0600), 0) << file;
  }
  const Texts facts = read_facts(root.path(), [](const char*) { return nullptr; });
  EXPECT_EQ(facts.at("processor"), "not visible");
  EXPECT_EQ(facts.at("kernel command line"), "not visible");
  EXPECT_FALSE(facts.contains("mitigations: meltdown"));
}

TEST(FindGemms, InTheSystemAndInEnvironmentsOnceEach) {
  const TestFolder root;
  const EnvironmentStore store{.home = root / "home"};
  ASSERT_TRUE(write_file(root / "usr" / "lib64/libopenblas.so.0", "x"));
  ASSERT_TRUE(write_file(root / "usr" / "lib64/libdnnl.so.3", "x"));
  for (const char* name : {"torch", "jax"}) {
    ASSERT_TRUE(write_file(environment_folder(store, name) / "lib/python3.11/site-packages/numpy.libs/"
                                                             "libscipy_openblas64_-1.so",
                           "x"));
  }
  ASSERT_TRUE(write_file(
      environment_folder(store, "torch") / "lib/python3.11/site-packages/torch/lib/libtorch_cpu.so", "x"));
  std::vector<std::string> names;
  for (const auto& library : find_gemms(root.path(), store)) names.push_back(library.name);
  EXPECT_THAT(names, ::testing::ElementsAre("oneDNN", "OpenBLAS", "OpenBLAS of numpy", "MKL of torch"));
}

TEST(Diff, NamesWhatChangedAndWhatOfItMatters) {
  const MachineReport before = report();
  EXPECT_THAT(diff(before, before), IsEmpty());
  MachineReport after = before;
  after.facts["microcode"] = "0x2";
  after.facts["processor flags"] = "avx2 avx512f fma";
  after.facts["swappiness"] = "10";
  after.facts["GPU driver"] = "550";
  after.limits.peaks[0].ops = {102e9, 150e9};
  const auto changes = diff(before, after);
  const auto has = [&](const MachineChange& wanted) {
    return std::count(changes.begin(), changes.end(), wanted);
  };
  EXPECT_EQ(changes.size(), 5u) << "2% of a rate is noise";
  EXPECT_TRUE(has({"microcode", "0x1", "0x2", "it changes mitigations and frequencies"}));
  EXPECT_TRUE(has({"processor flags", "sse2", "avx512f", "libraries choose their kernels by these flags"}));
  EXPECT_TRUE(has({"GPU driver", "absent", "550", "kernels and clocks of the device"}));
  EXPECT_TRUE(has({"limit: peak f32 avx2, all cores", "200 Gop/s", "150 Gop/s (-25%)",
                   "measured: the machine is faster or slower"}));
  EXPECT_EQ(changes.back(), (MachineChange{"swappiness", "60", "10", ""}))
      << "what is not known to matter comes last";
}

TEST(Diff, WhatIsGoneIsAbsent) {
  MachineReport before = report(), after = report();
  after.limits.gemms.clear();
  const auto changes = diff(before, after);
  ASSERT_EQ(changes.size(), 2u);
  EXPECT_EQ(changes[0].after, "absent");
}

}  // namespace
}  // namespace bakeoff
