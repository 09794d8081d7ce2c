#include "zoo/op_cases.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "ir/bounds.h"
#include "ir/op_table.h"
#include "ir/text.h"
#include "ir/verify.h"

namespace bakeoff::zoo {
namespace {

TEST(RandomCase, ExistsForEveryOp) {
  for (const ir::OpInfo& row : ir::op_table()) EXPECT_TRUE(has_random_case(row.op)) << row.name;
}

TEST(RandomCase, IsValidSmallAndHoldsItsOp) {
  for (const ir::OpInfo& row : ir::op_table()) {
    for (uint64_t seed = 0; seed < 100; ++seed) {
      tensor::Rng rng(seed, row.name);
      const ir::Workload workload = random_case(row.op, rng);
      SCOPED_TRACE(ir::dump(workload));
      const auto types = ir::infer(workload);
      ASSERT_TRUE(types) << types.error().text();
      ASSERT_EQ(*ir::parse(ir::dump(workload)), workload);
      ASSERT_GT(workload.parameter_count(), 0);
      ASSERT_LT(workload.parameter_count(), 2000);
      bool found = false;
      for (const ir::Node& node : workload.nodes) found = found || node.op == row.op;
      ASSERT_TRUE(found);
    }
  }
}

// Every word, both values of every flag and several values of every number come up.
TEST(RandomCase, VariesEveryAttribute) {
  for (const ir::OpInfo& row : ir::op_table()) {
    std::map<std::string, std::set<std::string>>
        seen;                                     // by attribute: its values, "none" where it is missing
    std::map<std::string, std::set<bool>> given;  // by slot: whether a node had it
    tensor::Rng rng(1, row.name);
    for (int trial = 0; trial < 200; ++trial) {
      const ir::Workload workload = random_case(row.op, rng);
      for (const ir::Node& node : workload.nodes) {
        if (node.op != row.op) continue;
        for (const ir::ParamSpec& spec : row.params) given[spec.slot].insert(node.has(spec.slot));
        for (const ir::AttrSpec& spec : row.attributes) {
          if (!node.has_attribute(spec.name)) seen[spec.name].insert("none");
        }
        for (const auto& [name, value] : node.attributes) {
          std::set<std::string>& own = seen[name];
          if (const auto* word = std::get_if<std::string>(&value)) own.insert(*word);
          if (const auto* flag = std::get_if<bool>(&value)) own.insert(*flag ? "true" : "false");
          if (const auto* n = std::get_if<int64_t>(&value)) own.insert(std::to_string(*n));
          if (const auto* x = std::get_if<double>(&value)) own.insert(std::to_string(*x * 1e6));
          if (const auto* all = std::get_if<std::vector<int64_t>>(&value)) {
            std::string text;
            for (const int64_t n : *all) text += std::to_string(n) + ",";
            own.insert(text);
          }
        }
      }
    }
    for (const ir::AttrSpec& spec : row.attributes) {
      const size_t wanted = spec.words.empty() ? 2 : spec.words.size();
      EXPECT_GE(seen[spec.name].size(), wanted) << row.name << "." << spec.name;
      EXPECT_EQ(seen[spec.name].contains("none"), spec.optional) << row.name << "." << spec.name;
    }
    for (const ir::ParamSpec& spec : row.params) {
      const bool present_too = spec.role != ir::Role::kCache;  // only a step of decoding has caches
      EXPECT_EQ(given[spec.slot].size(), spec.optional && present_too ? 2 : 1)
          << row.name << ": " << spec.slot << " present and absent";
    }
  }
}

TEST(RandomLosses, AreWeightedSumsOfOneToFourLosses) {
  std::set<size_t> counts;
  std::set<std::string> predictions;
  for (uint64_t seed = 0; seed < 60; ++seed) {
    tensor::Rng rng(seed);
    const ir::Workload workload = random_losses(rng);
    ASSERT_TRUE(ir::infer(workload)) << ir::dump(workload);
    ASSERT_EQ(*ir::parse(ir::dump(workload)), workload);
    counts.insert(ir::loss_terms(workload).size());
    predictions.insert(workload.value_name(workload.prediction()));
  }
  EXPECT_EQ(counts.size(), 4);
  EXPECT_GE(predictions.size(), 3);  // logits, those of the other head, the picture
}

TEST(RandomNetwork, IsValidAndTogetherTheyUseEveryOp) {
  std::set<ir::Op> seen;
  for (uint64_t seed = 0; seed < 600; ++seed) {
    tensor::Rng rng(seed);
    const ir::Workload workload = random_network(rng);
    ASSERT_TRUE(ir::infer(workload));
    for (const ir::Node& node : workload.nodes) seen.insert(node.op);
  }
  EXPECT_EQ(seen.size(), ir::op_table().size());
}

TEST(RandomValues, FitTheWorkloadAndFloat32) {
  for (const ir::OpInfo& row : ir::op_table()) {
    tensor::Rng rng(2, row.name);
    const ir::Workload workload = random_case(row.op, rng);
    const auto bounds = ir::row_bounds(workload);
    const auto inputs = random_inputs(workload, 4, rng);
    ASSERT_EQ(inputs.size(), workload.inputs.size());
    for (size_t i = 0; i < inputs.size(); ++i) {
      EXPECT_EQ(tensor::shape_of(inputs[i]), ir::with_batch(workload.inputs[i].type.shape, 4));
      if (const auto* ids = std::get_if<tensor::IntTensor>(&inputs[i])) {
        for (size_t k = 0; k < ids->data.size(); ++k)
          EXPECT_TRUE(bounds[i][k % bounds[i].size()].value_or(INT32_MAX).holds(ids->data[k]));
      } else {
        for (const double x : std::get<tensor::Tensor>(inputs[i]).data) EXPECT_EQ(x, static_cast<float>(x));
      }
    }
    const auto weights = random_weights(workload, rng);
    for (size_t p = 0; p < weights.size(); ++p) {
      EXPECT_EQ(weights[p].shape, workload.parameters[p].shape);
      if (workload.parameters[p].role != ir::Role::kRunningVar) continue;
      for (const double v : weights[p].data) EXPECT_GT(v, 0);
    }
  }
}

TEST(RandomCase, IsAFunctionOfTheSeed) {
  tensor::Rng a(9), b(9);
  EXPECT_EQ(random_network(a), random_network(b));
  EXPECT_EQ(a.next(), b.next());
}

}  // namespace
}  // namespace bakeoff::zoo
