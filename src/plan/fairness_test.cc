#include "plan/fairness.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "emit/emit.h"
#include "zoo/zoo.h"

namespace bakeoff {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
namespace topic = emit::topic;

std::vector<Contender> everybody() {
  const auto keras = [](const std::string& backend) {
    return Contender{
        .id = "keras[" + backend + "]", .framework = "keras", .settings = {{"backend", backend}}};
  };
  return {{.id = "torch", .framework = "torch"},
          {.id = "torch[compile=default]", .framework = "torch", .settings = {{"compile", "default"}}},
          {.id = "jax", .framework = "jax"},
          {.id = "tensorflow", .framework = "tensorflow"},
          keras("torch"),
          keras("jax"),
          {.id = "keras2", .framework = "keras2"}};
}

FairnessDiff diff_of(const char* workload, ir::OptimizerKind kind) {
  ir::Training training;
  training.optimizer.kind = kind;
  training.optimizer.stated = {"kind", "lr"};
  return fairness_diff(zoo::build(workload).value(), training, everybody());
}

// Values of a topic by framework; nothing if there is no such line.
std::map<std::string, std::string> values(const FairnessDiff& diff, const std::string& topic) {
  std::map<std::string, std::string> found;
  for (const FairnessLine& line : diff.lines) {
    if (line.topic != topic) continue;
    for (size_t i = 0; i < line.values.size(); ++i) found[diff.frameworks[i]] = line.values[i];
  }
  return found;
}

bool differs(const FairnessDiff& diff, const std::string& topic) {
  const auto line = std::find_if(diff.lines.begin(), diff.lines.end(),
                                 [&](const FairnessLine& l) { return l.topic == topic; });
  return line != diff.lines.end() && line->differs;
}

TEST(Fairness, OneColumnForEachFrameworkAndBackend) {
  EXPECT_THAT(diff_of("mnist_cnn", ir::OptimizerKind::kRmsprop).frameworks,
              ElementsAre("torch", "jax", "tensorflow", "keras (torch)", "keras (jax)", "keras2"));
}

TEST(Fairness, InitialisersDiffer) {
  const FairnessDiff diff = diff_of("mnist_cnn", ir::OptimizerKind::kRmsprop);
  auto weights = values(diff, topic::kWeightInit);
  EXPECT_THAT(weights["torch"], HasSubstr("Kaiming uniform"));
  EXPECT_THAT(weights["keras (torch)"], HasSubstr("Glorot uniform"));
  EXPECT_THAT(weights["keras (jax)"], HasSubstr("Glorot uniform"));
  EXPECT_THAT(weights["jax"], HasSubstr("LeCun"));
  EXPECT_TRUE(differs(diff, topic::kWeightInit));
  auto biases = values(diff, topic::kBiasInit);
  EXPECT_THAT(biases["torch"], HasSubstr("1/sqrt(fan_in)"));
  EXPECT_EQ(biases["keras (torch)"], "zeros");
  EXPECT_EQ(biases["jax"], "zeros");
  EXPECT_TRUE(differs(diff, topic::kBiasInit));
}

TEST(Fairness, RmspropPutsEpsilonInDifferentPlaces) {
  const FairnessDiff diff = diff_of("mnist_cnn", ir::OptimizerKind::kRmsprop);
  auto form = values(diff, topic::kEpsForm);
  EXPECT_THAT(form["torch"], HasSubstr("outside"));
  EXPECT_THAT(form["keras (jax)"], HasSubstr("inside"));
  EXPECT_THAT(form["jax"], HasSubstr("inside"));
  EXPECT_TRUE(differs(diff, topic::kEpsForm));
  auto eps = values(diff, topic::kEps);
  EXPECT_EQ(eps["torch"], "1e-8");
  EXPECT_EQ(eps["keras (jax)"], "1e-7");
  EXPECT_TRUE(differs(diff, topic::kEps));
  auto rho = values(diff, topic::kRho);
  EXPECT_EQ(rho["torch"], "0.99");
  EXPECT_EQ(rho["keras (torch)"], "0.9");
}

TEST(Fairness, BatchNormDiffers) {
  const FairnessDiff diff = diff_of("mlp_deep", ir::OptimizerKind::kAdam);
  auto eps = values(diff, topic::kBatchNormEps);
  EXPECT_EQ(eps["torch"], "1e-5");
  EXPECT_EQ(eps["keras (torch)"], "1e-3");
  EXPECT_EQ(eps["keras2"], "1e-3");
  EXPECT_TRUE(differs(diff, topic::kBatchNormEps));
  auto momentum = values(diff, topic::kBatchNormMomentum);
  EXPECT_EQ(momentum["torch"], "0.1");
  EXPECT_EQ(momentum["keras (torch)"], "0.01");
  EXPECT_TRUE(differs(diff, topic::kBatchNormMomentum));
  auto variance = values(diff, topic::kRunningVar);
  EXPECT_THAT(variance["torch"], HasSubstr("unbiased"));
  EXPECT_EQ(variance["keras (jax)"], "biased");
}

TEST(Fairness, OnlyWhatMattersForTheWorkloadIsListed) {
  const FairnessDiff cnn = diff_of("mnist_cnn", ir::OptimizerKind::kSgd);
  EXPECT_TRUE(values(cnn, topic::kBatchNormEps).empty());
  EXPECT_TRUE(values(cnn, topic::kLayerNormEps).empty());
  EXPECT_TRUE(values(cnn, topic::kTableInit).empty());
  EXPECT_TRUE(values(cnn, topic::kEps).empty()) << "SGD has none";
  EXPECT_TRUE(values(diff_of("mnist_cnn", ir::OptimizerKind::kAdam), topic::kRho).empty());
}

// Every framework speaks of every topic in the same words, or equals would be shown as a difference.
TEST(Fairness, ColumnsMeetInEveryLine) {
  for (const char* workload : {"mnist_cnn", "mlp_deep"}) {
    for (const auto kind : {ir::OptimizerKind::kSgd, ir::OptimizerKind::kRmsprop, ir::OptimizerKind::kAdam,
                            ir::OptimizerKind::kAdamW}) {
      const FairnessDiff diff = diff_of(workload, kind);
      for (const FairnessLine& line : diff.lines) {
        SCOPED_TRACE(std::string(workload) + " " + ir::name(kind) + " " + line.topic);
        ASSERT_EQ(line.values.size(), diff.frameworks.size());
        EXPECT_EQ(line.differs, std::any_of(line.values.begin(), line.values.end(),
                                            [&](const std::string& v) { return v != line.values[0]; }));
        for (size_t i = 0; i < line.values.size(); ++i) EXPECT_NE(line.values[i], "") << diff.frameworks[i];
      }
    }
  }
}

TEST(Fairness, ASingleFrameworkDiffersFromNobody) {
  const auto diff =
      fairness_diff(zoo::build("mlp_deep").value(), {}, {{.id = "torch", .framework = "torch"}});
  EXPECT_FALSE(diff.lines.empty());
  for (const FairnessLine& line : diff.lines) EXPECT_FALSE(line.differs) << line.topic;
  EXPECT_TRUE(fairness_diff(zoo::build("mlp_deep").value(), {}, {{.id = "x", .framework = "unheard-of"}})
                  .lines.empty());
}

TEST(Fairness, APredictionHasNothingToDoWithUpdates) {
  ir::Training training;
  training.scenario = ir::Scenario::kPredict;
  const FairnessDiff diff = fairness_diff(zoo::build("residual_cnn").value(), training, everybody());
  EXPECT_FALSE(values(diff, topic::kBatchNormEps).empty());
  EXPECT_TRUE(values(diff, topic::kWeightDecay).empty());
  EXPECT_TRUE(values(diff, topic::kBatchNormMomentum).empty());
}

}  // namespace
}  // namespace bakeoff
