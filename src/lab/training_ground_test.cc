#include "lab/training_ground.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "lab/testing.h"

namespace bakeoff::lab {
namespace {

using testing::TestFolder;

TEST(TrainingGround, HoldsOutTheLastRowsAndShufflesTheOthersBySeed) {
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
    TrainingGround ground(plan, "fit", 10);
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

}  // namespace
}  // namespace bakeoff::lab
