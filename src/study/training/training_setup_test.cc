#include "study/training/training_setup.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "base/clock.h"
#include "data/data.h"
#include "plan/rows.h"
#include "plan/testing.h"
#include "zoo/zoo.h"

namespace bakeoff {
namespace {

using testing::TestFolder;

TEST(TrainingSetup, HoldsOutTheLastRowsAndShufflesTheOthersBySeed) {
  const TestFolder folder;
  Plan plan{.recipe = {}, .directory = RunDirectory::create(folder / "run").value()};
  plan.recipe.workload = testing::network();
  plan.recipe.training.batch = 8;
  plan.gate.folder = folder / "run";
  plan.gate.data = folder / "data.safetensors";
  plan.gate.rows = 40;
  ASSERT_TRUE(testing::write_random_data(plan.recipe.workload, 40, 3, plan.gate.data));
  fs::path kept;
  {
    TrainingSetup ground(plan, "fit", 10);
    ASSERT_TRUE(ground.prepare([](const std::string&) {}));
    EXPECT_EQ(ground.rows(), 30);
    const auto all = tensor::SafetensorsFile::open(plan.gate.data).value().read_ints("y").value();
    EXPECT_EQ(std::get<tensor::IntTensor>(ground.held_out().batches.at(0).at(1)).data,
              std::vector<int64_t>(all.data.begin() + 30, all.data.end()));
    ASSERT_TRUE(ground.lay_out(1));
    kept = ground.data();
    const std::string first = read_file(kept).value();
    EXPECT_EQ(tensor::SafetensorsFile::open(kept).value().read("x").value().shape.front(), 30);
    ASSERT_TRUE(ground.lay_out(2));
    EXPECT_NE(read_file(kept).value(), first);
    EXPECT_NE(ground.seed_of(1), ground.seed_of(2));
    ASSERT_TRUE(ground.lay_out(1));
    EXPECT_EQ(read_file(kept).value(), first);
    auto order = ground.shuffled({0, 1, 2, 3, 4, 5}, 1);
    EXPECT_EQ(order, ground.shuffled({0, 1, 2, 3, 4, 5}, 1));
    std::sort(order.begin(), order.end());
    EXPECT_EQ(order, (std::vector<size_t>{0, 1, 2, 3, 4, 5}));
  }
  EXPECT_FALSE(fs::exists(kept)) << "its files go with it";
}

TEST(TrainingSetup, HoldsOutTheLastTenthOfATextAndTrainsOnAllOfTheRest) {
  const TestFolder folder;
  ::setenv("BAKEOFF_HOME", (folder / "home").c_str(), 1);
  std::string text;
  for (int i = 0; i < 601; ++i) text += "word" + std::to_string(i % 40) + " ";
  ASSERT_TRUE(write_file(folder / "book.txt", text));
  Plan plan{.recipe = {}, .directory = RunDirectory::create(folder / "run").value()};
  recipe::Recipe& recipe = plan.recipe;
  recipe.workload =
      zoo::build("lstm_lm_small").value();  // 600 words in rows of 20: 27 to train on, 3 to test
  recipe.training.batch = 4;
  recipe.data = {.kind = "text", .path = folder / "book.txt"};
  const Progress silent = [](const std::string&) {};
  const DataSpec spec{.kind = DataKind::kText, .path = recipe.data.path};
  const DataSet train = prepare(spec, recipe.workload, bakeoff_home() / "data", silent).value();
  ASSERT_EQ(train.rows, 27);
  plan.gate.folder = folder / "run";
  plan.gate.data = train.file;
  plan.gate.rows = train.rows;
  EXPECT_EQ(rows_to_hold_out(recipe, train.rows).value(), 3);
  TrainingSetup ground(plan, "fit", 2);
  ASSERT_TRUE(ground.prepare(silent));
  EXPECT_EQ(ground.rows(), 27);
  EXPECT_TRUE(ground.held_out().has_classes);
  DataSpec test = spec;
  test.split = "test";
  const DataSet held = prepare(test, recipe.workload, bakeoff_home() / "data", silent).value();
  const auto stored = tensor::SafetensorsFile::open(held.file).value().read_ints("tokens").value();
  const auto& seen = std::get<tensor::IntTensor>(ground.held_out().batches.at(0).at(0));
  EXPECT_EQ(seen.shape.front(), 2);
  EXPECT_EQ(seen.data, std::vector<int64_t>(stored.data.begin(), stored.data.begin() + 40));
  ::unsetenv("BAKEOFF_HOME");
}

TEST(BrokenRule, HoldsTheClaimedTimeAgainstOurClock) {
  const TestFolder folder;
  Plan plan{.recipe = {}, .directory = RunDirectory::create(folder / "run").value()};
  plan.recipe.workload = testing::network();
  plan.recipe.training.batch = 8;
  plan.manifest.contenders = {{.id = "a"}};
  const auto burst = [](double claimed_s, double ours_s) {
    return Burst{.ns = static_cast<int64_t>(claimed_s * kSecond),
                 .steps = 10,
                 .asked = 10,
                 .elapsed_ns = static_cast<int64_t>(ours_s * kSecond)};
  };
  EXPECT_EQ(stretch_ns(burst(2, 9), true), 2 * kSecond) << "the input was opened";
  EXPECT_EQ(stretch_ns(burst(2, 9), false), 9 * kSecond) << "what it claims for all but one of its stretches";
  EXPECT_EQ(stretch_ns(burst(2, 2.001), false), 2 * kSecond) << "messages";
  TrainingProcess process{.worker = nullptr, .start_up_ns = 3 * kSecond};
  const auto broken = [&](const std::vector<Burst>& bursts) {
    const auto failure = broken_rule(plan, 0, bursts, {}, process);
    return failure ? failure->reason : "";
  };
  EXPECT_EQ(broken({}), "");
  EXPECT_EQ(broken({burst(5, 5.01), burst(4, 4.01)}), "");
  EXPECT_THAT(broken({burst(2, 4), burst(2, 4)}),
              ::testing::HasSubstr("breaks a rule of physics or arithmetic, samples/s x time = samples"))
      << "half of its time";
  EXPECT_EQ(broken({burst(2, 9), burst(2, 2.01)}), "") << "opening the input";
  EXPECT_EQ(broken({burst(2, 9), burst(2, 4), burst(2, 2.1)}), "") << "somebody held one answer up";
  EXPECT_EQ(broken({burst(5, 7.9)}), "") << "no longer than starting up";
  EXPECT_NE(broken({burst(5, 10)}), "") << "one stretch alone";
  EXPECT_NE(broken({burst(5, 3)}), "") << "more than went by";
  Burst more = burst(1, 1);
  more.steps = 12;
  EXPECT_THAT(broken({more, burst(1, 1)}), ::testing::HasSubstr("steps answered = steps asked for"));
  process.effective = {{"steps_per_call", "4"}};
  EXPECT_EQ(broken({more, burst(1, 1)}), "") << "four steps in one call";
}

}  // namespace
}  // namespace bakeoff
