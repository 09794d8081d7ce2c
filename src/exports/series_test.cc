#include "exports/series.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "exports/recorded_testing.h"

namespace bakeoff::exports {
namespace {

const Series* find(const Tracked& one, const std::string& tag) {
  for (const Series& series : one.series)
    if (series.tag == tag) return &series;
  return nullptr;
}

TEST(Series, TimesAreThoseOfTheRecords) {
  EXPECT_EQ(seconds_since_1970("2026-11-21T08:00:00Z"), 1795248000);
  EXPECT_EQ(seconds_since_1970("2026-11-21T08:00:00Z or so"), 0);
  EXPECT_EQ(seconds_since_1970(""), 0);
}

TEST(Series, OverHeatsStepsAndEpochs) {
  Recorded run = sample_recorded();
  const Experiment experiment = experiment_of(run);
  ASSERT_EQ(experiment.contenders.size(), 5u);
  const Tracked& best = experiment.contenders[0];
  const Series* race = find(best, "race/seconds_per_step");
  ASSERT_NE(race, nullptr);
  EXPECT_EQ(race->over, "heat");
  ASSERT_EQ(race->points.size(), 2u);
  EXPECT_EQ(race->points[1].step, 2);
  EXPECT_EQ(race->points[1].wall_s, 1795248010);
  EXPECT_NEAR(race->points[1].value, 0.1, 1e-12);
  const Series* loss = find(best, "fit/seed1/loss");
  ASSERT_NE(loss, nullptr);
  EXPECT_EQ(loss->points.back().step, 20);
  EXPECT_EQ(find(best, "parity/loss")->points.size(), 2u) << "a loss that is no number is no point";
  EXPECT_EQ(best.settings.at("framework_version"), "2.13.0+cpu");
  EXPECT_EQ(best.numbers.count("ms_per_step_low"), 0u) << "an end that is not bounded is no number";
  EXPECT_TRUE(experiment.contenders[1].failed);
  EXPECT_THAT(experiment.contenders[1].reason, ::testing::HasSubstr("gradients differ"));
  EXPECT_EQ(find(experiment.contenders[3], "race/seconds_per_step"), nullptr);
}

TEST(Series, ATrialThatFailedIsNoPoint) {
  Recorded run = sample_recorded();
  run.trials[0].failure = Failure{Stage::kRun, "exit code 1", ""};
  run.trials[1].invalid = "loss is not finite";
  EXPECT_EQ(find(experiment_of(run).contenders[0], "race/seconds_per_step"), nullptr);
}

TEST(Series, JsonIsValidWhateverTheNames) {
  const auto json = to_json(experiment_of(sample_recorded()));
  EXPECT_NO_THROW(json.dump());
  EXPECT_EQ(json["contenders"].size(), 5u);
  EXPECT_EQ(json["contenders"][0]["series"][0]["points"][0].size(), 3u);
}

}  // namespace
}  // namespace bakeoff::exports
