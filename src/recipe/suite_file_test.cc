#include "recipe/suite_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace bakeoff::recipe {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

TEST(SuiteFile, HoldsNameRecipesMinutesBaselineAndWhatReplaces) {
  const auto suite = parse_suite(
      "recipes = [\"../a.toml\", \"b.toml\"]\nminutes = 4.5\nbaseline = \"torch\"\n[every]\nmargin = 0.1\n"
      "[every.race]\nmax_busy = 1\n",
      "/suites/both.toml");
  ASSERT_TRUE(suite) << suite.error().text();
  EXPECT_EQ(suite->name, "both");
  EXPECT_THAT(suite->recipes, ElementsAre("/a.toml", "/suites/b.toml"));
  EXPECT_EQ(suite->minutes, 4.5);
  EXPECT_EQ(suite->baseline, "torch");
  EXPECT_THAT(suite->every, HasSubstr("margin = 0.1"));
}

TEST(SuiteFile, EveryMayBeAnInlineTable) {
  const auto suite = parse_suite("recipes = [\"a.toml\"]\nevery = { margin = 0.5 }\n", "/s.toml");
  ASSERT_TRUE(suite) << suite.error().text();
  EXPECT_EQ(suite->every, "margin = 0.5\n");
}

TEST(SuiteFile, IsKnownByItsRecipes) {
  EXPECT_TRUE(is_suite("recipes = [\"a.toml\"]"));
  EXPECT_FALSE(is_suite("workload = \"mlp_small\""));
  EXPECT_FALSE(is_suite("recipes = ["));
}

TEST(SuiteFile, ErrorsNameLineKeyAndRemedy) {
  const struct {
    const char *text, *message;
  } cases[] = {
      {"name = \"x\"\n", "'recipes' is missing"},
      {"recipes = \"a.toml\"\n", "/s.toml:1: 'recipes' must be a list of files"},
      {"recipes = []\n", "'recipes' must be a list of files"},
      {"recipes = [\"a.toml\", 3]\n", "'recipes' must be a list of files"},
      {"recipes = [\"a.toml\"]\nminutes = 0\n", "/s.toml:2: 'minutes' must be a number above 0"},
      {"recipes = [\"a.toml\"]\nminutes = \"5\"\n", "'minutes' must be a number above 0"},
      {"recipes = [\"a.toml\"]\nminutes = nan\n", "'minutes' must be a number above 0"},
      {"recipes = [\"a.toml\"]\nbaselin = \"torch\"\n", "did you mean 'baseline'?"},
      {"recipes = [\"a.toml\"]\nbaseline = 3\n", "'baseline' must be a text"},
      {"recipes = [\"a.toml\"]\nevery = 3\n", "'every' must be a table"},
      {"recipes = [\n", "not valid TOML"},
  };
  for (const auto& c : cases) {
    SCOPED_TRACE(c.text);
    const auto suite = parse_suite(c.text, "/s.toml");
    ASSERT_FALSE(suite);
    EXPECT_THAT(suite.error().text(), HasSubstr(c.message));
    EXPECT_NE(suite.error().remedy, "");
  }
}

constexpr const char* kRecipe =
    "workload = \"mlp_small\"\nbatch = 32\ncontenders = [{ framework = \"torch\" }]\n"
    "[optimizer]\nkind = \"sgd\"\nlr = 0.1\n[race]\nbursts = 4\n";

TEST(SuiteFile, EveryReplacesKeyByKey) {
  const auto own = parse(kRecipe, "/r.toml");
  ASSERT_TRUE(own) << own.error().text();
  const auto both = with_every(*own,
                               "contenders = [{ framework = \"jax\" }, { framework = \"torch\" }]\n"
                               "baseline = \"jax\"\n[race]\nmax_busy = 1.0\n");
  ASSERT_TRUE(both) << both.error().text();
  EXPECT_THAT(both->contenders, SizeIs(2));
  EXPECT_EQ(both->baseline, "jax");
  EXPECT_EQ(both->training.batch, 32);
  EXPECT_EQ(both->race.bursts, 4) << "a key that [every] does not name";
  EXPECT_EQ(both->race.host.max_busy, 1);
  const auto again = parse_recorded(both->text, both->file);
  ASSERT_TRUE(again) << "the text is that of both";
  EXPECT_THAT(again->contenders, SizeIs(2));
  EXPECT_EQ(with_every(*own, "")->text, own->text);
}

TEST(SuiteFile, WhatBothComeToIsCheckedAsARecipe) {
  const auto own = parse(kRecipe, "/r.toml");
  ASSERT_TRUE(own);
  const auto wrong = with_every(*own, "bacth = 3\n");
  ASSERT_FALSE(wrong);
  EXPECT_THAT(wrong.error().text(), HasSubstr("/r.toml: with the suite's [every]: unknown key 'bacth'"));
}

TEST(Baseline, IsAContenderOfTheRecipe) {
  const std::string text = kRecipe;
  const auto named = parse("baseline = \"torch\"\n" + text, "/r.toml");
  ASSERT_TRUE(named) << named.error().text();
  EXPECT_EQ(named->baseline, "torch");
  const auto wrong = parse("baseline = \"trch\"\n" + text, "/r.toml");
  ASSERT_FALSE(wrong);
  EXPECT_THAT(wrong.error().text(), HasSubstr("/r.toml:1: the baseline 'trch' is no contender"));
  EXPECT_THAT(wrong.error().remedy, HasSubstr("did you mean 'torch'?"));
}

}  // namespace
}  // namespace bakeoff::recipe
