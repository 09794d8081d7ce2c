#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "evidence/invariants.h"
#include "plan/fake_lanes_testing.h"
#include "proc/interrupt.h"
#include "race/race.h"
#include "zoo/zoo.h"

namespace bakeoff {
namespace {

using testing::fake_spec;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::TestFolder;

// A race of the fake framework, one honest contender among liars of three kinds: the race itself finds them
// out, stores them as invalid, and runs no second heat with them.
TEST(PlantedLies, AreBrokenInARaceAndTheHonestOneIsNot) {
  proc::clear_interrupt();
  const TestFolder folder;
  Plan plan{.recipe = {}, .directory = RunDirectory::create(folder / "run").value()};
  plan.recipe.race.warmup_steps = 3;
  plan.recipe.race.bursts = 2;
  plan.recipe.race.burst_seconds = 0.03;
  plan.recipe.race.live = 4;
  std::vector<Parity> parities;
  // What the gate sees of all of them: w moves a tenth of its way to 3 in every step.
  std::vector<double> losses;
  for (int k = 0; k < 10; ++k) losses.push_back(0.5 * std::pow(3 * std::pow(0.9, k), 2));
  for (const std::string lie : {"honest", "skip", "half", "twice"}) {
    parities.push_back({.contender = lie, .losses = losses});
    testing::add_fake_lane(plan, lie, {{"step_ms", "2"}});
    if (lie != "honest") plan.lanes.back().entry.worker.options["lie"] = lie;
  }
  ASSERT_TRUE(race(plan, parities, {}, {.time = plan.recipe.budget.time(monotonic_clock().now_ns())}));
  const auto stored = plan.directory.read<Trial>();
  ASSERT_TRUE(stored) << stored.error().text();
  std::map<std::string, std::vector<Trial>> by_id;
  for (const Trial& trial : *stored) {
    ASSERT_FALSE(trial.failure) << trial.contender << ": " << trial.failure->reason;
    by_id[trial.contender].push_back(trial);
  }
  ASSERT_EQ(by_id.size(), 4u);
  for (const Trial& trial : by_id["honest"]) EXPECT_FALSE(trial.invalid) << *trial.invalid;
  EXPECT_GE(by_id["honest"].size(), 2u) << "it goes on alone";
  ASSERT_EQ(by_id["honest"][0].bursts.size(), 2u);
  for (const Burst& burst : by_id["honest"][0].bursts) {
    for (const char* name : {"wall_s", "cpu_s", "minor_faults", "voluntary_switches"})
      EXPECT_TRUE(burst.used.contains(name)) << name;
    EXPECT_GE(burst.used.at("wall_s"), static_cast<double>(burst.ns) / 1e9);
    EXPECT_NE(burst.used.contains("energy_j"), by_id["honest"][0].not_sampled.contains("energy_j"))
        << "a number or its reason";
  }
  EXPECT_NEAR(by_id["honest"][0].bursts[0].losses.at(4), losses[3], 1e-9) << "after the warm-up";
  for (const auto& [lie, rule] : {std::pair{"skip", "equal losses for equal work, here "},
                                  {"half", "equal losses for equal work, here "},
                                  {"twice", "steps answered = steps asked for"}}) {
    ASSERT_EQ(by_id[lie].size(), 1u) << lie << " is out after its first heat";
    ASSERT_TRUE(by_id[lie][0].invalid) << lie;
    EXPECT_THAT(*by_id[lie][0].invalid, HasSubstr(rule));
  }
  EXPECT_EQ(failed_in(*stored), (std::set<std::string>{"skip", "half", "twice"})) << "none of them is ranked";
}

}  // namespace
}  // namespace bakeoff
