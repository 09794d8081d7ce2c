// Every gradient of every op against central differences, on random workloads. The ops' float inputs come out
// of parameterised layers, so the gradients of those layers' parameters test the ops' input gradients.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "base/testing.h"
#include "ir/op_table.h"
#include "ir/text.h"
#include "referee/evaluate.h"
#include "zoo/op_cases.h"

namespace bakeoff::referee {
namespace {

struct Case {
  ir::Workload workload;
  Weights weights;
  Inputs inputs;
  EvalOptions options;
};

Case make_case(ir::Workload workload, tensor::Rng& rng) {
  Case c{.workload = std::move(workload), .weights = {}, .inputs = {}, .options = {}};
  c.weights = zoo::random_weights(c.workload, rng);
  c.inputs = zoo::random_inputs(c.workload, rng.integer(3, 5), rng);
  return c;
}

double loss_at(Case& c, size_t p, size_t i, double w) {
  std::swap(c.weights[p].data[i], w);
  EvalOptions options = c.options;
  options.gradients = false;
  const auto e = evaluate(c.workload, c.weights, c.inputs, options);
  std::swap(c.weights[p].data[i], w);
  return e->loss;
}

// Whether element i of the parameter is in the row of a table that no gradient reaches.
bool in_padding(const ir::Workload& workload, size_t p, size_t i) {
  return std::any_of(workload.nodes.begin(), workload.nodes.end(), [&](const ir::Node& node) {
    if (node.op != ir::Op::kEmbedding || node.param("weight") != static_cast<ir::ParamId>(p)) return false;
    const auto width = static_cast<size_t>(workload.parameters[p].shape[1]);
    return ir::padding_idx(node) == static_cast<int64_t>(i / width);
  });
}

struct Tally {
  int checked = 0;
  int kinks = 0;  // elements beside a kink of relu or max_pool, where no derivative exists
  int parameters = 0;
  int flat = 0;  // parameters that change nothing: behind them all units are dead
};

// Compares up to `samples` elements of each gradient.
void check_gradients(Case& c, tensor::Rng& rng, int64_t samples, Tally& tally) {
  SCOPED_TRACE(ir::dump(c.workload));
  const auto e = evaluate(c.workload, c.weights, c.inputs, c.options);
  ASSERT_TRUE(e) << e.error().text();
  for (size_t p = 0; p < c.weights.size(); ++p) {
    const ir::Parameter& parameter = c.workload.parameters[p];
    SCOPED_TRACE(parameter.name);
    if (!ir::trainable(parameter)) {
      EXPECT_TRUE(e->gradients[p].data.empty());
      continue;
    }
    ASSERT_EQ(e->gradients[p].shape, parameter.shape);
    const double size = tensor::norm(e->gradients[p]);
    // The signs that l1 adds up may cancel.
    const auto count = static_cast<int64_t>(c.weights[p].data.size());
    bool padded = false;  // all ids may be the row that pads
    for (int64_t i = 0; i < count && !padded; ++i) padded = in_padding(c.workload, p, static_cast<size_t>(i));
    ++tally.parameters;
    if (!padded && c.workload.nodes.back().op != ir::Op::kL1 && size <= 1e-5 * std::abs(e->loss)) {
      ++tally.flat;
    }
    for (int64_t s = 0; s < std::min(samples, count); ++s) {
      const auto i = static_cast<size_t>(count <= samples ? s : rng.integer(0, count - 1));
      constexpr double kStep = 1e-5;
      const double w = c.weights[p].data[i];
      const double up = loss_at(c, p, i, w + kStep), down = loss_at(c, p, i, w - kStep);
      const double numeric = (up - down) / (2 * kStep);
      const double bend =
          std::abs(up + down - 2 * e->loss) / kStep;  // of order kStep where the loss is smooth
      const double wide = (loss_at(c, p, i, w + 2 * kStep) - loss_at(c, p, i, w - 2 * kStep)) / (4 * kStep);
      const double allowed = 1e-7 * (size + std::abs(e->loss) + 1);
      // The second step also finds losses that curve so much that a difference is no derivative.
      if (bend > 1e-2 * (size + 1) || std::abs(wide - numeric) > allowed) {
        ++tally.kinks;
        continue;
      }
      ++tally.checked;
      const double wanted = in_padding(c.workload, p, i) ? 0 : numeric;
      ASSERT_NEAR(e->gradients[p].data[i], wanted, allowed) << "element " << i;
    }
  }
}

class EveryOp : public ::testing::TestWithParam<std::string> {};

TEST_P(EveryOp, GradientsAreThoseOfCentralDifferences) {
  Tally tally;
  const uint64_t cases = testing::random_cases(30);
  for (uint64_t seed = 0; seed < cases && !HasFatalFailure(); ++seed) {
    tensor::Rng rng(seed, GetParam());
    Case c = make_case(zoo::random_case(ir::find_op(GetParam())->op, rng), rng);
    if (seed % 3 == 1) c.options.dropout = DropoutMasks{seed, 5};
    if (seed % 3 == 2) c.options.train = false;
    check_gradients(c, rng, 25, tally);
  }
  EXPECT_GT(3 * tally.checked, 20 * static_cast<int>(cases));
  EXPECT_EQ(tally.flat, 0) << "a random case is degenerate";
  const int rare = testing::full_tier() ? 100 : 40;  // of few cases one with many kinks shows more
  EXPECT_LE(tally.kinks * rare, tally.checked);
}

// What is frozen has no gradient, and changes no other.
TEST_P(EveryOp, FrozenParametersChangeNoOtherGradient) {
  for (uint64_t seed = 0; seed < 6; ++seed) {
    tensor::Rng rng(seed, GetParam() + " frozen");
    Case c = make_case(zoo::random_case(ir::find_op(GetParam())->op, rng), rng);
    const auto all = evaluate(c.workload, c.weights, c.inputs, c.options);
    for (ir::Parameter& p : c.workload.parameters)
      p.frozen = p.frozen || (ir::trainable(p) && rng.chance(0.5));
    const auto some = evaluate(c.workload, c.weights, c.inputs, c.options);
    ASSERT_TRUE(all && some);
    for (size_t p = 0; p < c.weights.size(); ++p) {
      if (ir::trainable(c.workload.parameters[p]))
        EXPECT_EQ(some->gradients[p], all->gradients[p]) << c.workload.parameters[p].name;
      else
        EXPECT_TRUE(some->gradients[p].data.empty());
    }
  }
}

// Differences cannot tell a stopped gradient: a test of its own, below.
std::vector<std::string> ops_with_differences() {
  std::vector<std::string> names = ir::op_names();
  std::erase(names, "stop_gradient");
  return names;
}

INSTANTIATE_TEST_SUITE_P(Table, EveryOp, ::testing::ValuesIn(ops_with_differences()),
                         [](const auto& row) { return row.param; });

TEST(Networks, GradientsAreThoseOfCentralDifferences) {
  Tally tally;
  const uint64_t cases = testing::random_cases(60);
  for (uint64_t seed = 0; seed < cases && !HasFatalFailure(); ++seed) {
    tensor::Rng rng(seed, "network");
    Case c = make_case(zoo::random_network(rng), rng);
    if (seed % 2 == 1) c.options.dropout = DropoutMasks{seed, 0};
    check_gradients(c, rng, 6, tally);
  }
  EXPECT_GT(3 * tally.checked, 100 * static_cast<int>(cases));
  EXPECT_LE(tally.flat * 20, tally.parameters) << "random networks are degenerate";
  EXPECT_LE(tally.kinks * 100, tally.checked);
}

}  // namespace
}  // namespace bakeoff::referee
