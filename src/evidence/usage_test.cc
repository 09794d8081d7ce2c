#include "evidence/usage.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace bakeoff {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

Burst burst(int64_t steps, std::map<std::string, double> used) {
  return {.ns = 1, .steps = steps, .used = std::move(used)};
}

TEST(UsageOf, IsPerStepOverTheBurstsThatCount) {
  Trial a{.contender = "a",
          .bursts = {burst(10, {{"wall_s", 9}, {"cpu_s", 9}, {"minor_faults", 9000}}),  // still warm-up
                     burst(10, {{"wall_s", 2}, {"cpu_s", 3}, {"wait_s", 1}, {"minor_faults", 50}})},
          .warmup_bursts = 1};
  Trial b{.contender = "a",
          .bursts = {burst(30, {{"wall_s", 2},
                                {"cpu_s", 3},
                                {"wait_s", 1},
                                {"minor_faults", 30},
                                {"voluntary_switches", 40},
                                {"involuntary_switches", 20},
                                {"energy_j", 60}})}};
  const Usage usage = usage_of({&a, &b});
  EXPECT_DOUBLE_EQ(usage.cores.value(), 1.5);
  EXPECT_DOUBLE_EQ(usage.waiting.value(), 0.25);
  EXPECT_DOUBLE_EQ(usage.faults.value(), 2);
  EXPECT_DOUBLE_EQ(usage.switches.value(), 2) << "of the burst that has them";
  EXPECT_DOUBLE_EQ(usage.joules.value(), 2);
  EXPECT_FALSE(usage.major_faults);
  EXPECT_EQ(usage_of({}), Usage{});
}

TEST(UsageOf, InstructionsArePerStepAndPerCycle) {
  const Trial a{.bursts = {burst(10, {{"wall_s", 1},
                                      {"instructions", 600},
                                      {"cycles", 200},
                                      {"cache_misses", 50},
                                      {"temperature_c", 61}}),
                           burst(10, {{"wall_s", 1}, {"temperature_c", 64}})}};
  const Usage usage = usage_of({&a});
  EXPECT_DOUBLE_EQ(usage.instructions.value(), 60) << "of the burst that has them";
  EXPECT_DOUBLE_EQ(usage.per_cycle.value(), 3);
  EXPECT_DOUBLE_EQ(usage.cache_misses.value(), 5);
  EXPECT_FALSE(usage.branch_misses);
  EXPECT_DOUBLE_EQ(usage.temperature_c.value(), 64);
}

TEST(MemoryOf, IsTheLargestOverTrialsAndASampleIsTheGrowth) {
  Trial a{.bursts = {burst(5, {{"wall_s", 1}, {"rss_bytes", 500e6}}),
                     burst(5, {{"wall_s", 1}, {"rss_bytes", 620e6}})}};
  a.memory = {{"built_rss_bytes", 300e6}, {"pss_bytes", 580e6}};
  Trial b{.bursts = {burst(5, {{"wall_s", 1}, {"rss_bytes", 600e6}})}};
  b.memory = {{"built_rss_bytes", 320e6}, {"pss_bytes", 590e6}};
  MemoryUse memory = memory_of({&a, &b}, 32);
  EXPECT_DOUBLE_EQ(memory.in_bursts.value(), 620e6);
  EXPECT_DOUBLE_EQ(memory.pss.value(), 590e6);
  EXPECT_DOUBLE_EQ(memory.per_sample.value(), 10e6);
  EXPECT_FALSE(memory.allocator_peak);
  b.memory["allocator_peak_bytes"] = 64e6;
  b.memory["on_gpu"] = 1;
  EXPECT_DOUBLE_EQ(memory_of({&b}, 32).per_sample.value(), 2e6) << "of the device's memory";
  a.memory.erase("built_rss_bytes");
  EXPECT_FALSE(memory_of({&a}, 32).per_sample);
  EXPECT_EQ(memory_of({}, 32), MemoryUse{});
}

TEST(GpuUseOf, LeavesEnergyOutWhereItDoesNotGoWithPower) {
  Trial a{.bursts = {burst(10, {{"wall_s", 2}, {"gpu_power_w", 300}, {"gpu_energy_j", 600}})}};
  EXPECT_DOUBLE_EQ(gpu_use_of({&a}).joules.value(), 60);
  EXPECT_THAT(remarks_on({&a}), IsEmpty());
  a.bursts[0].used["gpu_energy_j"] = 60;
  EXPECT_FALSE(gpu_use_of({&a}).joules);
  EXPECT_DOUBLE_EQ(gpu_use_of({&a}).power_w.value(), 300);
  EXPECT_THAT(remarks_on({&a}), ElementsAre("its GPU's energy is left out: energy = mean power x time: 60 J "
                                            "against 600 J"));
}

TEST(RemarksOn, SayWhenTheCgroupsMemoryRanOut) {
  Trial a;
  a.rounds = {{.seen = {{"cgroup memory peak", 4.0 * (1 << 30)}, {"cgroup memory limit", 8.0 * (1 << 30)}}}};
  EXPECT_THAT(remarks_on({&a}), IsEmpty());
  a.rounds[0].seen["cgroup memory peak"] = 7.99 * (1 << 30);
  EXPECT_THAT(remarks_on({&a, &a}), ElementsAre(::testing::HasSubstr("reached its limit of 8.00 GiB")));
}

TEST(EpochCost, IsAtTheSteadyRateAndOfWhatIsStated) {
  // 60,000 samples in batches of 256 at 100 ms: 23.4375 s.
  const recipe::Cost cost{.per_hour = 3.6, .currency = "USD", .grams_per_kwh = 400};
  EpochCost epoch = epoch_cost(100, 60000, 256, {.joules = 9.0}, {}, cost);
  EXPECT_DOUBLE_EQ(epoch.seconds.value(), 23.4375);
  EXPECT_DOUBLE_EQ(epoch.price.value(), 23.4375e-3);
  EXPECT_DOUBLE_EQ(epoch.joules.value(), 9 * 234.375);
  EXPECT_DOUBLE_EQ(epoch.grams_co2.value(), 9 * 234.375 / 3.6e6 * 400);
  EXPECT_DOUBLE_EQ(epoch.samples_per_joule.value(), 256 / 9.0);
  EXPECT_DOUBLE_EQ(epoch.samples_per_unit.value(), 2560 * 1000.0)
      << "2,560 a second, a thousand of them a USD";
  epoch = epoch_cost(100, 60000, 256, {}, {}, cost);
  EXPECT_TRUE(epoch.price);
  EXPECT_FALSE(epoch.grams_co2) << "without energy, whatever the power station";
  EXPECT_FALSE(epoch.samples_per_joule);
  EXPECT_FALSE(epoch_cost(100, 60000, 256, {.joules = 0.0}, {}, cost).samples_per_joule) << "no infinity";
  epoch = epoch_cost(100, 60000, 256, {.joules = 9.0}, {}, {});
  EXPECT_FALSE(epoch.price);
  EXPECT_FALSE(epoch.samples_per_unit);
  epoch = epoch_cost(100, 0, 256, {.joules = 9.0}, {}, cost);
  EXPECT_FALSE(epoch.seconds) << "an older record";
  EXPECT_FALSE(epoch.price);
  EXPECT_TRUE(epoch.samples_per_joule);
  EXPECT_EQ(epoch_cost(0, 60000, 256, {.joules = 9.0}, {}, cost), EpochCost{});
}

TEST(EpochCost, OnAGpuCountsTheBoard) {
  const recipe::Cost cost{.grams_per_kwh = 400};
  EXPECT_DOUBLE_EQ(epoch_cost(100, 0, 256, {.joules = 9.0}, {.joules = 23.0}, cost).samples_per_joule.value(),
                   8);
  EXPECT_DOUBLE_EQ(epoch_cost(100, 0, 256, {}, {.joules = 32.0}, cost).samples_per_joule.value(), 8);
  EXPECT_FALSE(epoch_cost(100, 0, 256, {.joules = 9.0}, {.busy = 0.9}, cost).samples_per_joule)
      << "the processors' alone is not its energy";
}

TEST(EpochCost, OnAGpuWithoutReadingsIsNotThatOfTheProcessors) {
  Trial a{.bursts = {burst(10, {{"wall_s", 2}, {"energy_j", 90}})}};
  const auto per_joule = [&] {
    return epoch_cost(100, 1000, 256, usage_of({&a}), gpu_use_of({&a}), {}).samples_per_joule;
  };
  EXPECT_DOUBLE_EQ(per_joule().value(), 256 / 9.0);
  a.effective["device"] = "cuda:0";
  a.memory["on_gpu"] = 1;
  EXPECT_TRUE(gpu_use_of({&a}).on_gpu);
  EXPECT_FALSE(per_joule()) << "the processors' alone is not its energy";
}

TEST(NeverSampled, IsWhatNoTrialHas) {
  const Trial none{.not_sampled = {{"energy_j", "no sensor"}, {"wait_s", "a counter went backwards"}}};
  const Trial some{.bursts = {burst(1, {{"wait_s", 1}})}};
  EXPECT_THAT(never_sampled({none, some, none}), ElementsAre("energy: no sensor"));
  EXPECT_THAT(never_sampled({}), IsEmpty());
}

}  // namespace
}  // namespace bakeoff
