#include "tune/tune.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "emit/all/frameworks.h"
#include "tune/why.h"

namespace bakeoff::tune {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kRecipe = R"(
name = "tuned"
workload = "mnist_cnn"
batch = 32
contenders = [
  # two of one framework: the first counts
  { framework = "torch" },
  { framework = "torch", channels_last = true },
  { framework = "keras", backend = "jax" },
]
[data]
kind = "synthetic"
samples = 100
[optimizer]
kind = "sgd"
lr = 0.1
[race]
threads = 2
)";

recipe::Recipe recipe_of() {
  auto parsed = recipe::parse(kRecipe, "tuned.toml");
  EXPECT_TRUE(parsed.has_value());
  return std::move(*parsed);
}

// Races with known step times: each change multiplies it.
struct Known : run::Races {
  std::map<std::string, double> factors = {};  // by words(change)
  std::vector<std::vector<std::string>> races = {};
  bool fail_keras = false;

  Result<Summary> race(const recipe::Recipe& recipe, const std::filesystem::path&) override {
    Summary summary;
    races.emplace_back();
    for (const recipe::Contender& c : recipe.contenders) {
      races.back().push_back(c.id);
      Row row;
      row.contender.id = c.id;
      row.contender.framework = c.framework;
      double ms = c.framework == "native" ? 5 : c.framework == "torch" ? 10 : 20;
      for (const auto& [words, factor] : factors) {
        const std::string setting = words.substr(0, words.find('='));
        const std::string value = words.substr(words.find('=') + 1);
        for (const auto* all : {&c.settings, &c.controls})
          if (const auto found = all->find(setting); found != all->end() && found->second == value)
            ms *= factor;
      }
      row.ms_per_step = {ms, ms, ms};
      if (fail_keras && c.framework == "keras") {
        row.failure = Failure{.reason = "not installed"};
        summary.unranked.push_back(row);
      } else {
        summary.ranked.push_back(row);
      }
    }
    std::ranges::stable_sort(summary.ranked, {}, [](const Row& r) { return r.ms_per_step.value; });
    int place = 0;
    for (Row& row : summary.ranked) {
      const double ratio = row.ms_per_step.value / summary.ranked[0].ms_per_step.value;
      row.ratio = {ratio, ratio * 0.99, ratio * 1.01};
      row.rank_best = ++place;
      const double over = row.ms_per_step.value / 5;
      if (std::ranges::count(summary.ranked, "native", [](const Row& r) { return r.contender.framework; }) >
          0)
        row.over_native = Estimate{over, over * 0.99, over * 1.01};
      row.verdict = place == 1 ? RowVerdict::kLeader : ratio < 1.02 ? RowVerdict::kSame : RowVerdict::kSlower;
    }
    return summary;
  }
};

const std::filesystem::path kFolder = "races";
const Machine kMachine = {.processors = 2, .gpu = false, .allocators = {"tuned"}};

TEST(Changes, AreThoseOfTheFrameworkAndOfTheMachine) {
  const recipe::Recipe recipe = recipe_of();
  std::vector<std::string> all;
  for (const Change& change : changes(recipe.contenders[0], ir::Scenario::kTrain, kMachine))
    all.push_back(words(change));
  EXPECT_THAT(all, Contains("channels_last=true"));
  EXPECT_THAT(all, Contains("compile=max-autotune"));
  EXPECT_THAT(all, Contains("allocator=tuned"));
  EXPECT_THAT(all, Contains("threads=1"));
  EXPECT_THAT(all, Not(Contains("threads=2")));
  EXPECT_THAT(all, Not(Contains("compile=cuda_graphs")));
}

TEST(Changes, OfPrecisionAreContendersOfTheirOwn) {
  const recipe::Recipe both = with_half_precision(recipe_of());
  std::vector<std::string> ids;
  for (const recipe::Contender& c : both.contenders) ids.push_back(c.id);
  EXPECT_THAT(ids, Contains("torch[precision=bfloat16]"));
  EXPECT_EQ(with_half_precision(both).contenders.size(), both.contenders.size());
  Known known;
  const auto found = tune(both, kMachine, 10, known, kFolder, kSilent);
  ASSERT_TRUE(found.has_value());
  std::vector<std::string> bases;
  for (const Tuned& tuned : found->tuned) bases.push_back(tuned.base.id);
  EXPECT_THAT(bases, Contains("torch"));
  EXPECT_THAT(bases, Contains("torch[precision=bfloat16]"));
}

TEST(Changes, OfEveryFrameworkAreAllowedValues) {
  for (const emit::Framework* framework : emit::frameworks())
    for (const emit::Setting& setting : framework->settings)
      for (const auto* values : {&setting.tuned, &setting.tuned_on_gpus})
        for (const std::string& value : *values) {
          const bool allowed = setting.values.empty() ? std::stoll(value) >= setting.least
                                                      : std::ranges::count(setting.values, value) == 1;
          EXPECT_TRUE(allowed) << framework->name << " " << setting.name << " " << value;
        }
}

TEST(Tune, FindsTheBestOfEachFrameworkAndRacesThem) {
  Known known;
  known.factors = {{"channels_last=true", 0.5}, {"allocator=tuned", 0.8}, {"threads=1", 1.5}};
  const auto found = tune(recipe_of(), kMachine, 10, known, kFolder, kSilent);
  ASSERT_TRUE(found.has_value());
  ASSERT_EQ(found->tuned.size(), 2u) << "one torch, one Keras";
  const Tuned& torch = found->tuned[0];
  EXPECT_THAT(torch.best.id, HasSubstr("channels_last"));
  EXPECT_THAT(torch.best.id, HasSubstr("allocator=tuned"));
  EXPECT_THAT(torch.best.id, Not(HasSubstr("threads")));
  EXPECT_NEAR(torch.gain.value, 2.5, 1e-6);
  EXPECT_EQ(words(torch.alone[0].change), "channels_last=true");
  EXPECT_NEAR(*torch.alone[0].gain, 2, 1e-6);
  EXPECT_EQ(torch.alone[0].verdict, "faster");
  EXPECT_EQ(known.races.back().size(), 3u) << "best against best, and the limit";
  EXPECT_THAT(to_text(*found, 80), HasSubstr("2.50"));
}

TEST(Tune, TheLimitIsRacedAndNotTuned) {
  Known known;
  const auto found = tune(recipe_of(), kMachine, 10, known, kFolder, kSilent);
  ASSERT_TRUE(found.has_value());
  EXPECT_THAT(known.races.back(), Contains("native"));
  EXPECT_EQ(winner(found->best)->contender.id, "torch") << "of the frameworks";
  EXPECT_THAT(
      to_text(*found, 200),
      HasSubstr(
          "The limit: PyTorch is the best setting found, and plain C++ needs 0.50 times as long on this "
          "machine ["));
  EXPECT_THAT(to_text(*found, 200), HasSubstr("]. No setting of a framework reached it."));
  EXPECT_THAT(to_json(*found), HasSubstr("\"winner_over_native\""));
  const auto text = best_recipe(kRecipe, *found);
  ASSERT_TRUE(text.has_value());
  EXPECT_THAT(*text, Not(HasSubstr("native"))) << "what the recipe did not name is not in its best";
  known.races.clear();
  ASSERT_TRUE(tune(recipe_of(), kMachine, 4, known, kFolder, kSilent).has_value());
  EXPECT_THAT(known.races.back(), Not(Contains("native"))) << "no time for it";
}

TEST(Tune, ALimitThatTheRecipeNamesStaysInIt) {
  auto recipe = recipe_of();
  recipe.contenders.push_back(
      recipe::emitted_contender(ir::Scenario::kTrain, *emit::find_framework("native"), {}, {}));
  Known known;
  const auto found = tune(recipe, kMachine, 1, known, kFolder, kSilent);
  ASSERT_TRUE(found.has_value());
  ASSERT_EQ(found->tuned.size(), 3u);
  EXPECT_THAT(found->tuned[2].untried, HasSubstr("is not tuned"));
  EXPECT_THAT(known.races.back(), Contains("native"));
}

TEST(Tune, SaysHowManySettingsWereTimed) {
  Tuned tuned;
  tuned.base.id = "torch";
  const auto text = [&](size_t timed, size_t all) {
    tuned.alone.assign(all, {.verdict = "was proven equal, but not raced"});
    for (size_t i = 0; i < timed; ++i) tuned.alone[i] = {.gain = 0.9, .verdict = "slower"};
    return to_text({.tuned = {tuned}}, 200);
  };
  EXPECT_THAT(text(8, 8), HasSubstr("torch: nothing gains; as the recipe states it"));
  EXPECT_THAT(text(0, 8), HasSubstr("torch: not known: none of its 8 settings was timed; as the recipe"));
  EXPECT_THAT(text(4, 8),
              HasSubstr("torch: of 4 settings timed nothing gains, 4 were not timed; as the recipe"));
  EXPECT_THAT(text(1, 2),
              HasSubstr("torch: of 1 setting timed nothing gains, 1 was not timed; as the recipe"));
}

TEST(Tune, WhatTheTimeDoesNotHoldRacesAsTheRecipeStatesIt) {
  Known known;
  known.factors = {{"channels_last=true", 0.5}};
  std::vector<std::string> said;
  const auto found = tune(recipe_of(), kMachine, 0.6, known, kFolder,
                          [&](const std::string& line) { said.push_back(line); });
  ASSERT_TRUE(found.has_value());
  ASSERT_FALSE(said.empty());
  EXPECT_EQ(said[0], "in 0.6 min 1 of 2 frameworks can be searched, all of them in about 1 min (--minutes)");
  EXPECT_EQ(found->tuned[0].untried, "");
  EXPECT_EQ(found->tuned[1].untried, said[0]);
  EXPECT_EQ(found->tuned[1].failure, "");
  EXPECT_THAT(known.races.back(), Contains("keras[backend=jax]")) << "the best of each race each other";
  EXPECT_THAT(to_text(*found, 200), HasSubstr("Keras on JAX: as the recipe states it: in 0.6 min"));
}

TEST(Tune, StaysWithTheRecipeWhereNothingGains) {
  Known known;
  known.factors = {{"channels_last=true", 1.2}};
  const auto found = tune(recipe_of(), kMachine, 10, known, kFolder, kSilent);
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->tuned[0].best, found->tuned[0].base);
  EXPECT_THAT(to_text(*found, 80), HasSubstr("nothing gains"));
}

TEST(Tune, OneFrameworkThatFailsIsARow) {
  Known known;
  known.fail_keras = true;
  const auto found = tune(recipe_of(), kMachine, 10, known, kFolder, kSilent);
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->tuned[1].failure, "not installed");
  EXPECT_EQ(known.races.back().size(), 2u) << "torch and the limit";
}

TEST(Why, SharesTheGapOutOverSettings) {
  Known known;
  known.factors = {{"jit_compile=true", 0.8}, {"steps_per_execution=8", 0.9}};
  const recipe::Recipe recipe = recipe_of();
  const auto raced = known.race(recipe, kFolder);
  ASSERT_TRUE(raced.has_value());
  // torch 10 ms, Keras 20 ms: the next that is slower than the leader is Keras.
  recipe::Recipe two = recipe;
  std::erase_if(two.contenders, [](const recipe::Contender& c) { return c.id == "torch[channels_last]"; });
  const auto summary = known.race(two, kFolder);
  const auto found = why(two, *summary, kMachine, known, kFolder);
  ASSERT_TRUE(found.has_value() && found->has_value());
  EXPECT_EQ((*found)->leader, "torch");
  EXPECT_NEAR((*found)->gap, 2, 1e-9);
  EXPECT_EQ((*found)->parts[0].change, "jit_compile=true");
  EXPECT_NEAR((*found)->parts[0].gain, 1.25, 1e-9);
  const std::string text = sentence(**found);
  EXPECT_THAT(text, HasSubstr("jit_compile=true would gain 1.25 (32% of the gap)"));
  EXPECT_THAT(text, HasSubstr("53% of it is in no setting that was tried"));
}

TEST(Why, TheLimitIsNoLeader) {
  Known known;
  known.factors = {{"jit_compile=true", 0.8}};
  recipe::Recipe recipe = recipe_of();
  recipe.contenders.push_back(
      recipe::emitted_contender(ir::Scenario::kTrain, *emit::find_framework("native"), {}, {}));
  const auto raced = known.race(recipe, kFolder);
  const auto found = why(recipe, *raced, kMachine, known, kFolder);
  ASSERT_TRUE(found.has_value() && found->has_value());
  EXPECT_EQ((*found)->leader, "torch");
  EXPECT_EQ((*found)->contender, "keras[backend=jax]");
}

TEST(Why, NothingIsSaidOfATie) {
  Known known;
  recipe::Recipe recipe = recipe_of();
  recipe.contenders.resize(2);
  const auto summary = known.race(recipe, kFolder);
  const auto found = why(recipe, *summary, kMachine, known, kFolder);
  ASSERT_TRUE(found.has_value());
  EXPECT_FALSE(found->has_value());
  EXPECT_EQ(known.races.size(), 1u) << "no race for nothing";
}

TEST(Tune, TheBestRecipeIsARecipe) {
  Known known;
  known.factors = {{"channels_last=true", 0.5}, {"threads=1", 0.9}};
  const auto found = tune(recipe_of(), kMachine, 10, known, kFolder, kSilent);
  ASSERT_TRUE(found.has_value());
  const auto text = best_recipe(kRecipe, *found);
  ASSERT_TRUE(text.has_value());
  const auto best = recipe::parse(*text, "best.toml");
  ASSERT_TRUE(best.has_value()) << *text;
  ASSERT_EQ(best->contenders.size(), 2u);
  EXPECT_EQ(best->contenders[0].id, found->tuned[0].best.id);
  EXPECT_EQ(best->contenders[1].id, found->tuned[1].best.id);
  EXPECT_EQ(best->race.threads, 2);
}

}  // namespace
}  // namespace bakeoff::tune
