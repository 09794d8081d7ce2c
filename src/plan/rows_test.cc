#include "plan/rows.h"

#include <gtest/gtest.h>

#include "plan/lane.h"
#include "plan/plan.h"
#include "plan/testing.h"

namespace bakeoff {
namespace {

// The second contender, in line 6, is the one that is looked at.
recipe::Recipe of(const std::string& track, const std::string& contender) {
  const auto recipe =
      recipe::parse("workload = \"mlp_small\"\nbatch = 10\ntrack = \"" + track +
                        "\"\ncontenders = [\n  { framework = \"torch\" },\n  { " + contender +
                        " },\n]\n[data]\nsamples = 25\n[optimizer]\nkind = \"sgd\"\nlr = 0.1\n",
                    "r.toml");
  EXPECT_TRUE(recipe) << recipe.error().text();
  return *recipe;
}

TEST(CheckRows, APipelineThatCutsEpochsIntoCallsNeedsTheRowsOfOne) {
  struct Case {
    const char* track;
    const char* contender;
    int64_t batches;
  };
  const Case cases[] = {
      {"as-is", "framework = \"tensorflow\", steps_per_call = 4", 4},
      {"as-is", "framework = \"tensorflow\", input = \"tf_data\", steps_per_call = [1, 4]", 4},
      {"as-is", "framework = \"jax\", steps_per_call = 4", 4},
      // An epoch goes on into the next, and fit() shortens its last call.
      {"equalised", "framework = \"tensorflow\", input = \"tf_data\", steps_per_call = 4", 1},
      {"equalised", "framework = \"tensorflow\", steps_per_call = 4", 1},
      {"equalised", "framework = \"jax\", steps_per_call = 4", 1},
      {"as-is", "framework = \"keras\", steps_per_execution = 4", 1},
      {"as-is", "framework = \"tensorflow\"", 1},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(std::string(c.track) + ": " + c.contender);
    const recipe::Recipe recipe = of(c.track, c.contender);
    EXPECT_EQ(least_batches(recipe, recipe.contenders.front()), 1) << "torch takes one";
    EXPECT_EQ(least_batches(recipe, recipe.contenders.back()), c.batches);
    EXPECT_EQ(least_rows(recipe), 10 * c.batches);
    EXPECT_TRUE(check_rows(recipe, 10 * c.batches));
    EXPECT_FALSE(check_rows(recipe, 10 * c.batches - 1));
  }
}

TEST(CheckRows, ErrorsNameLineKeyAndRemedy) {
  const auto recipe = recipe::parse(
      "workload = \"mlp_small\"\nbatch = 10\ntrack = \"as-is\"\n[[contenders]]\nframework = \"jax\"\n"
      "[[contenders]]\nframework = \"tensorflow\"\nsteps_per_call = [2, 4]\n[optimizer]\nkind = \"sgd\"\n"
      "lr = 0.1\n",
      "r.toml");
  ASSERT_TRUE(recipe) << recipe.error().text();
  EXPECT_EQ(
      check_rows(*recipe, 25).error().text(),
      "r.toml:8: tensorflow[steps_per_call=4]: a call takes 4 batches of 10 rows, but the data has only "
      "25\n  set steps_per_call to at most 2, or bring more data");
  EXPECT_EQ(check_rows(*recipe, 9).error().where, "r.toml:2");
}

TEST(CheckRows, OfAScriptOfOnesOwnNothingIsKnown) {
  recipe::Recipe recipe = of("as-is", "framework = \"jax\", steps_per_call = 4");
  recipe.contenders.back().script = "/own.py";
  EXPECT_TRUE(check_rows(recipe, 10));
}

TEST(MakePlan, EndsBeforeAnythingStartsWhereACallHasTooFewRows) {
  testing::TestFolder folder;
  ::setenv("BAKEOFF_HOME", (folder / "home").c_str(), 1);
  const recipe::Recipe recipe = of("as-is", "framework = \"tensorflow\", steps_per_call = 3");
  const auto plan = make_plan(recipe, folder / "run", {}, [](const std::string&) {});
  ASSERT_FALSE(plan);
  EXPECT_EQ(plan.error().where, "r.toml:6");
  EXPECT_FALSE(fs::exists(folder / "run"));
  // A larger batch that is tried beside the race is that row's reason.
  const recipe::Recipe two = of("as-is", "framework = \"tensorflow\", steps_per_call = 2");
  const auto fits = make_plan(two, folder / "run", {{"tensorflow", {"/usr/bin/python3", "", "some"}}},
                              [](const std::string&) {});
  ASSERT_TRUE(fits) << fits.error().text();
  EXPECT_FALSE(lane_at_batch(*fits, 1, 12, [](const std::string&) {}).failure);
  const Lane larger = lane_at_batch(*fits, 1, 13, [](const std::string&) {});
  ASSERT_TRUE(larger.failure);
  EXPECT_EQ(larger.failure->reason,
            "tensorflow[steps_per_call=2]: a call takes 2 batches of 13 rows, but the data has only 25");
  ::unsetenv("BAKEOFF_HOME");
}

}  // namespace
}  // namespace bakeoff
