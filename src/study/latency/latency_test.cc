// Requests served by workers of the fake framework.

#include "study/latency/latency.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "plan/fake_lanes_testing.h"
#include "records/records.h"
#include "study/latency/latency_summary.h"

namespace bakeoff {
namespace {

using testing::all_pass;
using testing::fake_spec;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using testing::TestFolder;

using Options = std::map<std::string, std::string>;

Plan plan_of(const fs::path& folder, const std::vector<std::pair<std::string, Options>>& lanes,
             const recipe::Latency& latency) {
  Plan plan{.recipe = {}, .directory = RunDirectory::create(folder).value()};
  plan.recipe.race.warmup_steps = 2;
  plan.recipe.training.scenario = ir::Scenario::kPredict;
  plan.recipe.latency = latency;
  for (const auto& [id, options] : lanes) testing::add_fake_lane(plan, id, options);
  return plan;
}

TEST(FastestStep, IsThatOfBurstsWithTheProcessorsToThemselves) {
  const auto trial = [](double ms, double waited, double others) {
    Trial made{.contender = "a",
               .bursts = {{static_cast<int64_t>(ms * 1e8), 100}, {static_cast<int64_t>(ms * 2e8), 100}}};
    for (Burst& burst : made.bursts) burst.used = {{"wait_s", waited}, {"wall_s", 1}};
    made.rounds = {{.seen = {{"others", others}}}};
    return made;
  };
  EXPECT_DOUBLE_EQ(fastest_step_ms({trial(8, 0.05, 0.05), trial(7, 0, 0)}, "a"), 7);
  EXPECT_DOUBLE_EQ(fastest_step_ms({trial(8, 0.05, 0.05), trial(7, 0.2, 0), trial(6, 0, 0.2)}, "a"), 8);
  EXPECT_DOUBLE_EQ(fastest_step_ms({trial(8, 0, 0), trial(0.9, 0, 0)}, "a"), 1.8)
      << "bursts of 90 and 180 ms";
  EXPECT_DOUBLE_EQ(fastest_step_ms({trial(8, 0, 0), trial(0.4, 0, 0)}, "a"), 8) << "bursts of 40 and 80 ms";
  EXPECT_EQ(fastest_step_ms({trial(8, 0.5, 0)}, "a"), 0);
  EXPECT_EQ(fastest_step_ms({trial(8, 0, 0)}, "b"), 0);
  Trial unknown = trial(8, 0, 0);
  unknown.bursts[0].used.clear();
  EXPECT_EQ(fastest_step_ms({unknown}, "a"), 0);
}

TEST(MeasureLatencies, DoesNothingUnasked) {
  const TestFolder folder;
  const Plan plan = plan_of(folder / "run", {{"a", {}}}, {});
  ASSERT_TRUE(measure_latencies({.plan = plan, .parities = all_pass(plan), .trials = {}}));
  EXPECT_THAT(plan.directory.read<LatencyTrial>().value(), IsEmpty());
}

// Asked before the process of a contender starts, and before each of its modes.
TEST(MeasureLatencies, EndsWhereTheTimeIsSpentAndGoesOnLater) {
  const TestFolder folder;
  const Plan plan =
      plan_of(folder / "run", {{"a", {}}}, {.arrivals_per_second = {100}, .requests = 5, .processes = 2});
  int asked = 0;
  ASSERT_TRUE(measure_latencies(
      {.plan = plan, .parities = all_pass(plan), .trials = {}, .over = [&] { return ++asked > 2; }}));
  EXPECT_THAT(plan.directory.read<LatencyTrial>().value(), SizeIs(1)) << "single stream of the first process";
  ASSERT_TRUE(measure_latencies({.plan = plan, .parities = all_pass(plan), .trials = {}}));
  EXPECT_THAT(plan.directory.read<LatencyTrial>().value(), SizeIs(4));
}

TEST(MeasureLatencies, RecordsEveryModeOfEveryProcessAndGoesOnWhereItStood) {
  const TestFolder folder;
  const Plan plan = plan_of(folder / "run", {{"slow", {{"step_ms", "2"}}}, {"quick", {}}},
                            {.arrivals_per_second = {100, 200}, .requests = 25, .processes = 2});
  ASSERT_TRUE(measure_latencies({.plan = plan, .parities = all_pass(plan), .trials = {}}));
  const auto trials = plan.directory.read<LatencyTrial>().value();
  ASSERT_THAT(trials, SizeIs(2 * 2 * 3));
  std::map<std::pair<int, double>, std::vector<int64_t>> arrivals;
  for (const LatencyTrial& trial : trials) {
    EXPECT_EQ(trial.failure, std::nullopt);
    EXPECT_THAT(trial.end_ns, SizeIs(25));
    EXPECT_THAT(trial.arrival_ns, SizeIs(trial.single_stream() ? 0 : 25));
    EXPECT_THAT(check_latency(trial), IsEmpty());
    if (trial.contender != "slow") continue;
    for (size_t i = 0; i < 25; ++i) EXPECT_GE(trial.end_ns[i] - trial.start_ns[i], 2'000'000);
    arrivals[{trial.round, trial.rate}] = trial.arrival_ns;
  }
  for (const LatencyTrial& trial : trials) {
    EXPECT_EQ(trial.arrival_ns, (arrivals[{trial.round, trial.rate}])) << "the same for both contenders";
  }
  EXPECT_NE((arrivals[{1, 100}]), (arrivals[{2, 100}]));
  ASSERT_TRUE(measure_latencies({.plan = plan, .parities = all_pass(plan), .trials = {}}));
  EXPECT_THAT(plan.directory.read<LatencyTrial>().value(), SizeIs(12)) << "all of it was there";
}

TEST(MeasureLatencies, AnOverloadedQueueIsCutOffAndCalledGrowing) {
  const TestFolder folder;
  const recipe::Latency latency = {.arrivals_per_second = {500}, .requests = 400, .processes = 1};
  const Plan plan = plan_of(folder / "run", {{"slow", {{"step_ms", "10"}}}}, latency);
  ASSERT_TRUE(measure_latencies({.plan = plan, .parities = all_pass(plan), .trials = {}}));
  const auto trials = plan.directory.read<LatencyTrial>().value();
  const auto rows = latency_rows(trials, {"slow"}, latency, 0.99);
  ASSERT_THAT(rows, SizeIs(2));
  EXPECT_LT(trials[1].end_ns.size(), 400u) << "4 s of work that arrived within one";
  EXPECT_EQ(rows[1].state, LatencyState::kGrowing);
  EXPECT_THAT(rows[1].percentiles, IsEmpty());
  EXPECT_GT(rows[1].growth_per_s, 300);
  EXPECT_EQ(rows[0].state, LatencyState::kSteady) << "single stream cannot be overloaded";
}

TEST(MeasureLatencies, WhoeverFailsHasThatInEveryModeAndIsNotStartedAgain) {
  const TestFolder folder;
  const Plan plan =
      plan_of(folder / "run", {{"crash", {{"crash_step", "15"}, {"crash_how", "exit"}}}, {"fine", {}}},
              {.arrivals_per_second = {1000}, .requests = 20, .processes = 2});
  ASSERT_TRUE(measure_latencies({.plan = plan, .parities = all_pass(plan), .trials = {}}));
  int crashed = 0, fine = 0;
  const auto records = plan.directory.read<LatencyTrial>().value();
  for (const LatencyTrial& trial : records) {
    fine += trial.contender == "fine" && !trial.failure;
    if (trial.contender != "crash") continue;
    ++crashed;
    ASSERT_TRUE(trial.failure);
    EXPECT_THAT(trial.failure->reason, HasSubstr("exit code 1"));
    EXPECT_EQ(trial.round, 1);
  }
  EXPECT_EQ(crashed, 2);
  EXPECT_EQ(fine, 4);
}

TEST(MeasureLatencies, ThoseThatFailedInTheGateOrTheRaceAreLeftOut) {
  const TestFolder folder;
  const Plan plan = plan_of(folder / "run", {{"unproven", {}}, {"out", {}}, {"fine", {}}},
                            {.arrivals_per_second = {1000}, .requests = 20, .processes = 1});
  std::vector<Parity> parities = all_pass(plan);
  parities[0].diverges_at = "output";
  const std::vector<Trial> trials = {
      {.contender = "out", .failure = Failure{Stage::kRun, "exit code 1", ""}}};
  ASSERT_TRUE(measure_latencies({.plan = plan, .parities = parities, .trials = trials}));
  const auto records = plan.directory.read<LatencyTrial>().value();
  for (const LatencyTrial& trial : records) EXPECT_EQ(trial.contender, "fine");
}

}  // namespace
}  // namespace bakeoff
