#include "exports/run_junit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "exports/recorded_testing.h"

namespace bakeoff::exports {
namespace {

using table::JunitOutcome;

TEST(RunJunit, EveryContenderIsACase) {
  const auto suite = junit_suite(sample_recorded());
  std::vector<JunitOutcome> outcomes;
  for (const auto& one : suite.cases) outcomes.push_back(one.outcome);
  EXPECT_THAT(outcomes,
              ::testing::ElementsAre(JunitOutcome::kPassed, JunitOutcome::kFailed, JunitOutcome::kError,
                                     JunitOutcome::kSkipped, JunitOutcome::kSkipped));
  EXPECT_EQ(suite.cases[0].name, kEvil);
  EXPECT_EQ(suite.cases[0].seconds, 8);
  EXPECT_EQ(suite.cases[1].details, "float64 gradients: grad/w: error 0.5, allowed 1e-08\n");
  EXPECT_EQ(suite.cases[2].details, "Traceback");
  EXPECT_THAT(suite.cases[2].message, ::testing::HasSubstr("exit code 1"));
}

TEST(RunJunit, ABrokenRuleIsAFailure) {
  Recorded run = sample_recorded();
  Trial liar = sample_trial("crashed", 1);
  liar.invalid = "loss is not finite";
  run.trials.push_back(liar);
  EXPECT_EQ(junit_suite(run).cases[2].outcome, JunitOutcome::kFailed);
}

TEST(Unfinished, SaysWhatIsMissing) {
  Recorded run = sample_recorded();
  EXPECT_THAT(unfinished(run), ::testing::IsEmpty());
  run.parities.pop_back();
  EXPECT_THAT(unfinished(run), ::testing::ElementsAre("1 of 5 contenders have no proof yet"));
  run.trials.clear();
  EXPECT_EQ(unfinished(run).size(), 2u);
}

}  // namespace
}  // namespace bakeoff::exports
