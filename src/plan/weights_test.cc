#include "plan/weights.h"

#include <gtest/gtest.h>

#include <limits>

#include "plan/plan.h"
#include "plan/testing.h"
#include "referee/init.h"

namespace bakeoff {
namespace {

using testing::TestFolder;

class GivenWeights : public ::testing::Test {
 protected:
  GivenWeights() : workload_(testing::network()) {
    for (const ir::Parameter& p : workload_.parameters) {
      tensor::Tensor t = tensor::zeros(p.shape);
      for (size_t i = 0; i < t.data.size(); ++i) t.data[i] = 0.25 * static_cast<double>(i % 7) + 0.125;
      named_.emplace_back(p.name, *tensor::encode(t, tensor::DType::kF32));
    }
  }

  Result<referee::Weights> load() {
    EXPECT_TRUE(tensor::write_safetensors(given_, named_));
    return write_initial_weights(workload_, 3, given_, folder_ / "initial.safetensors");
  }
  void refused(const std::string& message, const std::string& remedy) {
    const auto weights = load();
    ASSERT_FALSE(weights);
    EXPECT_EQ(weights.error().where, given_.string());
    EXPECT_NE(weights.error().message.find(message), std::string::npos) << weights.error().text();
    EXPECT_NE(weights.error().remedy.find(remedy), std::string::npos) << weights.error().text();
    EXPECT_FALSE(fs::exists(folder_ / "initial.safetensors"));
  }

  TestFolder folder_;
  ir::Workload workload_;
  tensor::NamedTensors named_;
  fs::path given_ = folder_ / "given.safetensors";
};

TEST_F(GivenWeights, AreTheInitialOnes) {
  const auto weights = load();
  ASSERT_TRUE(weights) << weights.error().text();
  ASSERT_EQ(weights->size(), workload_.parameters.size());
  for (const tensor::Tensor& t : *weights) EXPECT_EQ(t.data[0], 0.125);
  const auto written = tensor::SafetensorsFile::open(folder_ / "initial.safetensors");
  ASSERT_TRUE(written);
  for (const auto& [name, raw] : named_) EXPECT_EQ(*written->bytes(name), raw.bytes) << name;
}

TEST_F(GivenWeights, AreDrawnWhereNoneAreGiven) {
  const auto drawn = write_initial_weights(workload_, 3, {}, folder_ / "initial.safetensors");
  ASSERT_TRUE(drawn);
  const auto again = referee::initial_weights(workload_, 3);
  for (size_t id = 0; id < again.size(); ++id) {
    for (size_t i = 0; i < again[id].data.size(); ++i)
      EXPECT_EQ((*drawn)[id].data[i], static_cast<float>(again[id].data[i]));
  }
}

// A library's own code computes such a table in float64, where it is proven so.
TEST_F(GivenWeights, TablesOfTheTextKeepTheirNumbers) {
  ir::Parameter& table = workload_.parameters.back();
  table.frozen = true;
  table.values.assign(static_cast<size_t>(ir::product(table.shape, 0, table.shape.size())), 0.1);
  const fs::path file = folder_ / "initial.safetensors";
  const auto drawn = write_initial_weights(workload_, 3, {}, file);
  ASSERT_TRUE(drawn) << drawn.error().text();
  EXPECT_EQ(drawn->back().data[0], 0.1);
  const auto written = tensor::SafetensorsFile::open(file);
  ASSERT_TRUE(written);
  EXPECT_EQ(written->find(table.name)->dtype, tensor::DType::kF64);
  EXPECT_EQ(written->find(workload_.parameters.front().name)->dtype, tensor::DType::kF32);
}

TEST_F(GivenWeights, AMissingOneIsNamed) {
  const std::string name = named_.back().first;
  named_.pop_back();
  refused("the parameter '" + name + "' is missing", "every parameter");
}

TEST_F(GivenWeights, WhatHasAnInitialValueOfItsOwnMayBeMissing) {
  ir::Parameter& last = workload_.parameters.back();
  last.init = 0.25;
  named_.pop_back();
  const auto weights = load();
  ASSERT_TRUE(weights) << weights.error().text();
  EXPECT_EQ(weights->front().data[0], 0.125);
  EXPECT_EQ(weights->back().data[0], static_cast<float>(referee::initial_value(last, 3).data[0]));
  EXPECT_NE(weights->back().data[0], 0);
}

TEST_F(GivenWeights, OneTooManyIsNamedWithTheNearest) {
  named_.emplace_back(named_.front().first + "x", named_.front().second);
  refused("'" + named_.back().first + "' is no parameter", "did you mean '" + named_.front().first + "'?");
}

TEST_F(GivenWeights, AnotherShapeIsRefused) {
  named_.front().second.shape.insert(named_.front().second.shape.begin(), 1);
  refused("'" + named_.front().first + "' has the shape [1,", "bakeoff show");
}

TEST_F(GivenWeights, WhatIsNotFiniteIsRefused) {
  const ir::Parameter& p = workload_.parameters.front();
  for (const double bad : {std::numeric_limits<double>::quiet_NaN(), 1e39}) {
    tensor::Tensor t = tensor::zeros(p.shape);
    t.data[1] = bad;
    named_.front().second = *tensor::encode(t, tensor::DType::kF64);
    refused("'" + p.name + "' holds ", "finite");
    refused("at element 1", "finite");
  }
}

TEST_F(GivenWeights, NoFileIsAnError) {
  const auto weights = write_initial_weights(workload_, 3, folder_ / "none", folder_ / "initial.safetensors");
  ASSERT_FALSE(weights);
  EXPECT_NE(weights.error().text().find("none"), std::string::npos);
}

// A run keeps its weights: gate and trainings start from the copy, also when the user's file has gone.
TEST_F(GivenWeights, ARunKeepsACopy) {
  ::setenv("BAKEOFF_HOME", (folder_ / "home").c_str(), 1);
  const auto model = recipe::parse(
      "workload = \"mlp_small\"\nbatch = 10\ncontenders = [{ framework = \"torch\" }]\n[data]\nsamples = 20\n"
      "[optimizer]\nkind = \"sgd\"\nlr = 0.1\n",
      "r.toml");
  ASSERT_TRUE(model);
  recipe::Recipe recipe = *model;
  tensor::NamedTensors ones;
  for (const ir::Parameter& p : recipe.workload.parameters)
    ones.emplace_back(p.name, *tensor::encode(tensor::full(p.shape, 1), tensor::DType::kF32));
  ASSERT_TRUE(tensor::write_safetensors(given_, ones));
  recipe.text = "weights = \"" + given_.string() + "\"\n" + recipe.text;
  recipe.weights = given_;
  const Interpreters torch = {{"torch", {"/usr/bin/python3", "", "some"}}};
  const auto plan = make_plan(recipe, folder_ / "run", torch, kSilent);
  ASSERT_TRUE(plan) << plan.error().text();
  fs::remove(given_);
  fs::copy(folder_ / "run", folder_ / "moved", fs::copy_options::recursive);  // the first is locked
  const auto again = reopen_plan(folder_ / "moved", torch);
  ASSERT_TRUE(again) << again.error().text();
  for (const auto* p : {&plan, &again}) {
    const auto weights = write_initial_weights((*p)->gate.workload, 3, (*p)->gate.weights, folder_ / "w");
    ASSERT_TRUE(weights) << weights.error().text();
    for (const tensor::Tensor& t : *weights) EXPECT_EQ(t.data[0], 1);
  }
  ::unsetenv("BAKEOFF_HOME");
}

}  // namespace
}  // namespace bakeoff
