#include "calibrate/calibrate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <cmath>

#include "base/clock.h"
#include "base/files.h"
#include "calibrate/calibrate_work.h"
#include "plan/lane.h"
#include "plan/testing.h"
#include "proc/interrupt.h"
#include "records/controls.h"
#include "tensor/rng.h"
#include "worker/grants.h"

namespace bakeoff {
namespace {

using ::testing::HasSubstr;
using testing::TestFolder;

const Watch kNobody = [](const Happening&) {};

class FakeClock : public Clock {
 public:
  int64_t now_ns() const override { return now; }
  int64_t now = 0;
};

// A machine that exists in arithmetic only: a block takes four seconds, and `sd` says how far identical
// workers are apart under the controls.
struct Simulated {
  std::function<double(const Controls&)> sd;
  std::function<void(int)> at_block = [](int) {};
  FakeClock clock = {};
  tensor::Rng random{5};
  int blocks = 0;

  Result<std::vector<Trial>> block(const Controls& controls, int number) {
    ++blocks;
    at_block(number);
    clock.now += 4 * kSecond;
    if (controls.allocator == "jemalloc") return Error{.message = "worker failed in stage import"};
    const double heat = 0.1 * random.normal();
    std::vector<Trial> trials;
    for (const char* id : {"a", "a again"}) {
      const double ms = std::exp(3 + heat + sd(controls) / std::sqrt(2.0) * random.normal());
      Trial trial{.contender = id, .heat = number};
      trial.start_ns = kSecond;
      trial.alone = true;
      for (int i = 0; i < 4; ++i) {
        const double burst = ms * std::exp(0.001 * random.normal());
        trial.bursts.push_back({static_cast<int64_t>(burst * 1e7), 10});
      }
      trials.push_back(trial);
    }
    return trials;
  }

  Result<Profile> calibrate(const CalibrateOptions& options, const Machine& machine) {
    return bakeoff::calibrate(
        options, machine, [this](const Controls& c, int n, const Happening&) { return block(c, n); }, clock,
        kNobody);
  }
};

const Machine kTwo{.cpus = {0, 1}, .root = "/nowhere", .refusal = {}};

const Measured& entry(const Profile& profile, const std::string& name) {
  for (const Measured& m : profile.entries) {
    if (m.name == name) return m;
  }
  ADD_FAILURE() << name;
  return profile.entries.front();
}

double like_baseline(const Controls& c) {
  if (c.threads == 1) return 0.0063;
  return c.allocator == "tuned" ? 0.014 : 0.071;
}

TEST(Calibrate, KeepsTheControlThatLowersTheNoiseAndNoOther) {
  for (const bool quick : {false, true}) {
    SCOPED_TRACE(quick);
    Simulated machine{.sd = like_baseline};
    const auto profile = machine.calibrate({.minutes = quick ? 2.0 : 10.0, .quick = quick}, kTwo);
    ASSERT_TRUE(profile) << profile.error().text();
    EXPECT_TRUE(profile->complete);
    EXPECT_EQ(profile->kept, (Controls{.allocator = "tuned", .threads = 2})) << to_json(*profile);
    EXPECT_TRUE(entry(*profile, "tuned glibc malloc").kept);
    EXPECT_LE(entry(*profile, "tuned glibc malloc").p, quick ? 0.05 : 0.05 / 5);
    EXPECT_THAT(entry(*profile, "no address randomisation").why,
                HasSubstr(quick ? "left out by --quick" : "no better than chance"));
    EXPECT_THAT(entry(*profile, "one thread, pinned").why, HasSubstr("shown only"));
    EXPECT_NEAR(entry(*profile, "one thread, pinned").spread().sd, 0.0063, 0.004);
    EXPECT_THAT(entry(*profile, "tcmalloc").why,
                HasSubstr("not tried: allocator 'tcmalloc' is not installed"));
    EXPECT_LE(static_cast<double>(machine.clock.now) / 1e9, profile->minutes * 60 + 1e-6);
    EXPECT_LE(profile->minutes * 60, (quick ? 120 : 600) + 4) << "the block under way is finished";
    EXPECT_GE(profile->minutes * 60, quick ? 80 : 400) << "the time is used";
    ASSERT_TRUE(profile->processes_sd);
    EXPECT_NEAR(*profile->processes_sd, 0.014 / std::sqrt(2.0), 0.008);
    EXPECT_GT(profile->start_s, 0.9);
  }
}

TEST(Calibrate, RarelyKeepsAControlThatDoesNothing) {
  int kept = 0;
  constexpr int kRounds = 200;
  for (int round = 0; round < kRounds; ++round) {
    Simulated machine{.sd = [](const Controls&) { return 0.03; }};
    machine.random = tensor::Rng(static_cast<uint64_t>(round));
    const auto profile = machine.calibrate({.minutes = 10, .seed = static_cast<uint64_t>(round)}, kTwo);
    ASSERT_TRUE(profile);
    kept += profile->kept == Controls{.threads = 2} ? 0 : 1;
  }
  EXPECT_LE(kept, kRounds * 8 / 100) << "5% asked for, and three sigmas";
}

TEST(Calibrate, ControlsThatHelpAreTriedTogether) {
  Simulated machine{.sd = [](const Controls& c) {
    return 0.08 * (c.randomise_addresses ? 1 : 0.2) * (c.cooldown_s > 0 ? 0.2 : 1);
  }};
  const auto profile = machine.calibrate({.minutes = 10}, kTwo);
  ASSERT_TRUE(profile);
  EXPECT_FALSE(profile->kept.randomise_addresses);
  EXPECT_GT(profile->kept.cooldown_s, 0);
  EXPECT_EQ(profile->kept.allocator, "default");
  EXPECT_TRUE(entry(*profile, "these together").kept);
}

TEST(Calibrate, AControlUnderWhichWorkersFailIsOutAndTheRestGoesOn) {
  const TestFolder root;
  ASSERT_TRUE(write_file(root / "usr/lib/libjemalloc.so.2", "ELF"));
  Simulated machine{.sd = like_baseline};
  const auto profile =
      machine.calibrate({.minutes = 10}, {.cpus = {0, 1}, .root = root.path(), .refusal = {}});
  ASSERT_TRUE(profile);
  EXPECT_THAT(entry(*profile, "jemalloc").why, HasSubstr("its workers fail (worker failed in stage import)"));
  EXPECT_EQ(profile->kept.allocator, "tuned");
  Simulated broken{.sd = like_baseline};
  const auto none = calibrate(
      {}, kTwo, [](const Controls&, int, const Happening&) { return Error{.message = "no torch"}; },
      broken.clock, kNobody);
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().message, "no torch");
}

TEST(Calibrate, AfterCtrlCWhatWasMeasuredIsThere) {
  proc::install_interrupt_handlers();
  Simulated machine{.sd = like_baseline};
  machine.at_block = [](int number) {
    if (number == 15) ::raise(SIGINT);
  };
  const auto profile = machine.calibrate({.minutes = 10}, kTwo);
  proc::clear_interrupt();
  ASSERT_TRUE(profile);
  EXPECT_FALSE(profile->complete);
  EXPECT_EQ(machine.blocks, 15);
  EXPECT_EQ(profile->entries[0].d.size() + profile->entries[1].d.size(), 14u)
      << "the block cut short is void";
  EXPECT_EQ(profile->kept.allocator, "tuned") << "seven blocks each decide";
  EXPECT_TRUE(profile_from_json(to_json(*profile), "p"));
}

TEST(Candidates, OfOneCpuHaveNoPinnedThread) {
  const Machine one{.cpus = {3}, .root = "/nowhere", .refusal = {}};
  const Controls base = baseline(one);
  EXPECT_EQ(base.threads, 1);
  EXPECT_EQ(other_candidates(base, one, false).back().why_not, "there is one CPU only");
  EXPECT_EQ(other_candidates(baseline(kTwo), kTwo, false).back().why_not, "");
  Simulated machine{.sd = [](const Controls& c) { return c.allocator == "tuned" ? 0.01 : 0.05; }};
  const auto profile = machine.calibrate({.minutes = 5}, one);
  ASSERT_TRUE(profile);
  EXPECT_EQ(profile->kept, (Controls{.allocator = "tuned", .threads = 1}));
  EXPECT_EQ(entry(*profile, "one thread, pinned").why, "not tried: there is one CPU only");
}

TEST(Candidates, WhatTheContainerRefusesIsNotTried) {
  Machine machine = kTwo;
  machine.refusal = [](const WorkerSpec& spec) -> std::optional<std::string> {
    if (!spec.cpus.empty()) return "Operation not permitted";
    if (!spec.randomise_addresses) return "no personality";
    return std::nullopt;
  };
  EXPECT_EQ(baseline(machine).pin, "none");
  const auto others = other_candidates(baseline(machine), machine, false);
  EXPECT_EQ(others.front().why_not, "no personality");
  EXPECT_EQ(others.back().why_not, "Operation not permitted");
  EXPECT_EQ(others[1].why_not, "");
}

TEST(ReadyFrameworks, AreThoseWhoseEnvironmentIsThere) {
  const Interpreters some = {{"torch", {"", "never created", ""}}, {"jax", {"/usr/bin/python3", "", ""}}};
  EXPECT_EQ(ready_frameworks(some), std::vector<std::string>{"jax"});
  EXPECT_TRUE(ready_frameworks({}).empty());
}

TEST(CalibrationWork, ChoosesOrSaysWhyNot) {
  const TestFolder home;
  const Progress silent = [](const std::string&) {};
  const auto kernel = CalibrationWork::create("", home.path(), {}, silent);
  ASSERT_TRUE(kernel) << kernel.error().text();
  EXPECT_EQ(kernel->framework(), "kernel");
  const auto unknown = CalibrationWork::create("pytorch", home.path(), {}, silent);
  ASSERT_FALSE(unknown);
  EXPECT_THAT(unknown.error().remedy, HasSubstr("torch"));
  const auto absent =
      CalibrationWork::create("torch", home.path(), {{"torch", {"", "never created", ""}}}, silent);
  ASSERT_FALSE(absent);
  EXPECT_THAT(absent.error().message, HasSubstr("never created"));
}

}  // namespace
}  // namespace bakeoff
