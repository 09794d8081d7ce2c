#include "records/controls.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "base/files.h"
#include "proc/child.h"
#include "worker/grants.h"
#include "worker/testing.h"

namespace bakeoff {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::TestFolder;

const Machine kTwo{.cpus = {0, 1}, .root = "/nowhere", .refusal = {}};

TEST(Controls, SurviveTheirTexts) {
  const Controls controls{.allocator = "tuned",
                          .threads = 3,
                          .pin = "0,2",
                          .huge_pages = "off",
                          .randomise_addresses = false,
                          .cooldown_s = 0.05,
                          .device = "cuda"};
  EXPECT_EQ(controls_from(to_texts(controls)), controls);
  EXPECT_EQ(controls_from({}, controls), controls);
  EXPECT_EQ(controls_from({{"threads", "many"}}, controls).threads, 3);
  EXPECT_EQ(describe({}), "none");
  EXPECT_THAT(describe(controls),
              HasSubstr("keeps freed pages, pinned to CPU 0,2, no transparent huge pages"));
}

TEST(Controls, OfAContenderStandBeforeThoseOfTheRace) {
  recipe::Recipe recipe;
  recipe.race.allocator = "tuned";
  EXPECT_EQ(control_set(recipe, {}, 2), (Controls{.allocator = "tuned", .threads = 2}));
  EXPECT_EQ(control_set(recipe, {{"allocator", "default"}, {"threads", "1"}}, 2), (Controls{.threads = 1}));
  recipe.race.threads = 7;
  EXPECT_EQ(control_set(recipe, {}, 2).threads, 7);
}

TEST(Apply, FillsInWhatTheWorkerIsStartedWith) {
  WorkerSpec spec;
  ASSERT_TRUE(apply({.threads = 1}, kTwo, spec));
  EXPECT_THAT(spec.cpus, ElementsAre(0));
  EXPECT_EQ(spec.environment.at("OMP_NUM_THREADS"), "1");
  EXPECT_FALSE(spec.environment.contains("MALLOC_TRIM_THRESHOLD_"));
  ASSERT_TRUE(apply({.allocator = "tuned", .threads = 8, .huge_pages = "off", .randomise_addresses = false},
                    kTwo, spec));
  EXPECT_THAT(spec.cpus, ElementsAre(0, 1)) << "more threads than CPUs";
  EXPECT_EQ(spec.environment.at("MALLOC_TRIM_THRESHOLD_"), "4294967296");
  EXPECT_FALSE(spec.huge_pages);
  EXPECT_FALSE(spec.randomise_addresses);
  ASSERT_TRUE(apply({.threads = 2, .pin = "1"}, kTwo, spec));
  EXPECT_THAT(spec.cpus, ElementsAre(1));
  ASSERT_TRUE(apply({.threads = 2, .pin = "none", .huge_pages = "malloc"}, kTwo, spec));
  EXPECT_THAT(spec.cpus, IsEmpty());
  EXPECT_EQ(spec.environment.at("GLIBC_TUNABLES"), "glibc.malloc.hugetlb=1");
}

TEST(Apply, HidesGpusFromWhoeverIsToComputeOnTheCpu) {
  WorkerSpec spec;
  ASSERT_TRUE(apply({.device = "cuda"}, kTwo, spec));
  EXPECT_EQ(spec.device, "cuda");
  EXPECT_FALSE(spec.environment.contains("CUDA_VISIBLE_DEVICES"));
  ASSERT_TRUE(apply({.device = "cpu"}, kTwo, spec));
  EXPECT_EQ(spec.device, "cpu");
  EXPECT_EQ(spec.environment.at("CUDA_VISIBLE_DEVICES"), "");
  recipe::Recipe recipe;
  recipe.race.device = "cuda";
  EXPECT_EQ(control_set(recipe, {}, 2).device, "cuda");
  EXPECT_EQ(control_set(recipe, {{"device", "cpu"}}, 2).device, "cpu");
}

TEST(Apply, RefusesWhatIsNotThere) {
  WorkerSpec spec;
  const Status cpu = apply({.threads = 1, .pin = "0,5"}, kTwo, spec);
  ASSERT_FALSE(cpu);
  EXPECT_THAT(cpu.error().message, HasSubstr("may not run on CPU 5"));
  EXPECT_THAT(cpu.error().remedy, HasSubstr("0,1"));
  const Status library = apply({.allocator = "jemalloc"}, kTwo, spec);
  ASSERT_FALSE(library);
  EXPECT_THAT(library.error().message, HasSubstr("'jemalloc' is not installed"));
  EXPECT_EQ(library.error().remedy, "apt-get install libjemalloc2");
}

TEST(AllocatorLibrary, IsFoundWhereTheSystemHasIt) {
  const TestFolder root;
  const fs::path library = root / "usr/lib/x86_64-linux-gnu/libmimalloc.so.2.0";
  ASSERT_TRUE(write_file(library, "ELF"));
  EXPECT_EQ(allocator_library("mimalloc", root.path()).value(), library);
  EXPECT_FALSE(allocator_library("tcmalloc", root.path()));
  EXPECT_FALSE(allocator_library("malloc", root.path()));
  WorkerSpec spec;
  ASSERT_TRUE(apply({.allocator = "mimalloc"}, {.cpus = {0}, .root = root.path(), .refusal = {}}, spec));
  EXPECT_THAT(spec.environment.at("LD_PRELOAD"), HasSubstr(library.string()));
}

// A container that forbids everything.
Machine forbidding() {
  Machine machine = kTwo;
  machine.refusal = [](const WorkerSpec& spec) -> std::optional<std::string> {
    if (!spec.cpus.empty()) return "cannot run on processors 0,1: Operation not permitted";
    if (!spec.randomise_addresses) return "personality: Operation not permitted";
    if (!spec.huge_pages) return "prctl: Operation not permitted";
    return std::nullopt;
  };
  return machine;
}

TEST(Granted, FallsBackAndSaysSoWhereTheContainerRefuses) {
  const Controls wanted{
      .allocator = "tuned", .threads = 2, .huge_pages = "off", .randomise_addresses = false};
  std::vector<std::string> notes;
  const auto given = granted(wanted, {}, forbidding(), notes);
  ASSERT_TRUE(given) << given.error().text();
  EXPECT_EQ(*given, (Controls{.allocator = "tuned", .threads = 2, .pin = "none"}));
  ASSERT_EQ(notes.size(), 3u);
  EXPECT_THAT(notes[0], HasSubstr("Pinning to CPUs is refused here (cannot run on processors"));
  notes.clear();
  EXPECT_EQ(granted(wanted, {}, kTwo, notes).value(), wanted);
  EXPECT_THAT(notes, IsEmpty());
}

TEST(Granted, WhatTheRecipeStatesIsNotDroppedInSilence) {
  std::vector<std::string> notes;
  const auto pinned = granted({.threads = 2, .pin = "0"}, {"pin"}, forbidding(), notes);
  ASSERT_FALSE(pinned);
  EXPECT_THAT(pinned.error().message, HasSubstr("race.pin is not possible here"));
  EXPECT_THAT(pinned.error().remedy, HasSubstr("remove 'pin'"));
  EXPECT_FALSE(granted({.randomise_addresses = false}, {"randomise_addresses"}, forbidding(), notes));
}

TEST(ThisMachine, TriesForReal) {
  const Machine machine = this_machine();
  ASSERT_FALSE(machine.cpus.empty());
  EXPECT_EQ(machine.refusal({.cpus = {machine.cpus.front()}}), std::nullopt);
  const auto why = machine.refusal({.cpus = {1000}});
  ASSERT_TRUE(why) << "nobody has a thousand CPUs here";
  EXPECT_THAT(*why, HasSubstr("cannot run on processors 1000"));
}

TEST(Observe, ReadsWhatAProcessHas) {
  const TestFolder proc;
  ASSERT_TRUE(
      write_file(proc / "7/maps", "7f00-7f01 r-xp 0 0 0 /usr/lib/x86_64-linux-gnu/libjemalloc.so.2\n"));
  ASSERT_TRUE(write_file(proc / "7/environ", std::string("A=1\0LD_PRELOAD=x\0", 17)));
  ASSERT_TRUE(write_file(proc / "7/status", "Name:\tpython\nTHP_enabled:\t0\nCpus_allowed_list:\t0,2-3\n"));
  ASSERT_TRUE(write_file(proc / "7/personality", "00040000\n"));
  EXPECT_EQ(observe(7, proc.path()), (Texts{{"allocator", "jemalloc"},
                                            {"cpus", "0,2-3"},
                                            {"huge pages", "off"},
                                            {"address randomisation", "off"}}));
  ASSERT_TRUE(write_file(proc / "8/status", "garbage"));
  ASSERT_TRUE(write_file(proc / "8/personality", "garbage?"));
  EXPECT_EQ(observe(8, proc.path()), Texts{}) << "absent, not a guess";
  EXPECT_EQ(observe(9, proc.path()), Texts{});
}

TEST(Observe, WaitsForNoPipe) {
  const TestFolder proc;
  ASSERT_TRUE(write_file(proc / "7/status", "Cpus_allowed_list:\t0\n"));
  for (const char* file : {"7/maps", "7/environ", "7/personality"})
    ASSERT_EQ(::mkfifo((proc.path() / file).c_str(), 0600), 0) << file;
  EXPECT_EQ(observe(7, proc.path()), (Texts{{"cpus", "0"}}));
}

// A real process, started as a worker would be.
TEST(Observe, SeesTheControlsOfALivingProcess) {
  const Machine machine = this_machine();
  Controls controls{.allocator = "tuned", .threads = 1, .huge_pages = "off"};
  controls.randomise_addresses = machine.refusal({.randomise_addresses = false}).has_value();
  WorkerSpec spec;
  ASSERT_TRUE(apply(controls, machine, spec));
  auto child = proc::Child::start({.argv = {"sleep", "60"},
                                   .env = spec.environment,
                                   .cpus = spec.cpus,
                                   .control = false,
                                   .randomise_addresses = spec.randomise_addresses,
                                   .huge_pages = spec.huge_pages});
  ASSERT_TRUE(child) << child.error().text();
  const Texts seen = observe(child->pid());
  EXPECT_EQ(seen.at("allocator"), "tuned");
  EXPECT_EQ(seen.at("cpus"), std::to_string(machine.cpus.front()));
  if (seen.contains("huge pages")) {
    EXPECT_EQ(seen.at("huge pages"), "off");
  }
  if (seen.contains("address randomisation")) {
    EXPECT_EQ(seen.at("address randomisation"), controls.randomise_addresses ? "on" : "off");
  }
}

TEST(Taken, NamesThreadsThatHaveMoreThanTheyWereGranted) {
  const TestFolder proc;
  const auto put = [&](const std::string& name, const std::string& text) {
    ASSERT_TRUE(make_folder((proc / name).parent_path()));
    ASSERT_TRUE(write_file(proc / name, text));
  };
  const auto stat = [](int nice) {
    return fmt::format("1 (a) b) S 1 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 {} 9 0 100\n", nice);
  };
  put("self/stat", stat(0));
  put("7/task/7/status", "Cpus_allowed_list:\t2-3\n");
  put("7/task/7/stat", stat(0));
  put("7/task/8/status", "Cpus_allowed_list:\t3\n");
  put("7/task/8/stat", stat(5));
  EXPECT_EQ(taken(7, {.cpus = {2, 3}}, proc.path()), "");
  EXPECT_EQ(taken(7, {}, proc.path()), "") << "no CPUs are stated";
  EXPECT_EQ(taken(9, {.cpus = {2}}, proc.path()), "") << "it is gone";
  put("7/task/9/status", "Cpus_allowed_list:\t0-3\n");
  EXPECT_EQ(taken(7, {.cpus = {2, 3}}, proc.path()),
            "a thread of it may run on CPUs 0-3, it was granted 2,3");
  put("7/task/9/status", "Cpus_allowed_list:\t2\n");
  put("7/task/9/stat", stat(-5));
  EXPECT_EQ(taken(7, {.cpus = {2, 3}}, proc.path()), "a thread of it has priority -5, it was started with 0");
}

}  // namespace
}  // namespace bakeoff
