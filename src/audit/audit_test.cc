#include "audit/audit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <numeric>

#include "data/inputs.h"
#include "plan/lane.h"
#include "plan/testing.h"
#include "plan/weights.h"
#include "referee/optimizer.h"

namespace bakeoff {
namespace {

using ::testing::HasSubstr;
using testing::TestFolder;

// What a worker may do otherwise within a burst. `k` counts the timed steps from 0.
struct Ways {
  std::function<bool(int64_t k)> updates = [](int64_t) { return true; };
  std::function<int64_t(int64_t k, int64_t batch)> rows = [](int64_t, int64_t batch) { return batch; };
  bool nudges = true;
  double rounds = 0;            // every gradient, relative
  uint64_t rounds_weights = 0;  // seed; 0: every gradient is taken at the weights themselves
  bool late = false;            // makes up for updates left out only once it is asked for its parameters
  std::optional<uint64_t> dropout_seed = {};
};

class AuditTest : public ::testing::Test {
 protected:
  void prepare(const ir::Workload& workload, const ir::Optimizer& optimizer = {}) {
    GateJob job = testing::gate_job(folder_.path(), optimizer);
    job.workload = workload;
    ASSERT_TRUE(testing::write_random_data(workload, job.rows, 3, job.data));
    ASSERT_TRUE(write_initial_weights(workload, 3, {}, folder_ / "weights"));
    auto ground = make_audit_ground(workload, job.training, job.data, job.rows, folder_ / "weights");
    ASSERT_TRUE(ground) << ground.error().message;
    ground_ = std::move(*ground);
  }

  // A burst of `steps` after one lead-in step, as a worker shows it.
  ShownBurst burst(int64_t steps, const Ways& ways = {}, int64_t position = 7) {
    ShownBurst shown{
        .position = position, .lead = 1, .steps = steps, .nudge = draw_nudge(ground_, ++drawn_).value()};
    referee::Weights weights = ground_.initial;
    auto state = referee::initial_state(weights);
    tensor::Rng rng(9), rounding(ways.rounds_weights + 1000);
    referee::Weights told;
    for (int64_t k = -1; k < steps; ++k) {
      if (k == 0 && ways.nudges) {
        for (size_t id = 0; id < weights.size(); ++id) {
          for (size_t i = 0; i < shown.nudge[id].data.size(); ++i)
            weights[id].data[i] += shown.nudge[id].data[i];
        }
      }
      const int64_t batch = ground_.training.batch, whole = ground_.rows / batch;
      const int64_t first = (position + k + 1) % whole * batch;
      const int64_t rows = k < 0 ? batch : ways.rows(k, batch);
      const auto inputs = read_inputs(ground_.workload, ground_.data, 1, first, rows).value();
      referee::EvalOptions options;
      if (ways.dropout_seed)
        options.dropout =
            referee::DropoutMasks{.seed = *ways.dropout_seed, .step = static_cast<uint64_t>(k + 1)};
      referee::Weights used = weights;
      for (tensor::Tensor& weight : used) {
        for (double& w : weight.data) w *= ways.rounds_weights > 0 ? 1 + 2e-6 * rounding.uniform(-1, 1) : 1;
      }
      auto e = referee::evaluate(ground_.workload, used, inputs, options).value();
      for (auto& gradient : e.gradients) {
        for (double& g : gradient.data) g *= 1 + ways.rounds * rng.uniform(-1, 1);
      }
      if (k >= 0) shown.losses.push_back(e.loss);
      if (k < 0 || ways.updates(k)) referee::step(ground_.training.optimizer, e.gradients, state, weights);
      if (k == steps - 1) told = weights;
      if (k == steps - 1 && !ways.updates(k) && ways.late)
        referee::step(ground_.training.optimizer, e.gradients, state, weights);
    }
    tensor::NamedTensors named;
    for (size_t id = 0; id < weights.size(); ++id) {
      const ir::Parameter& parameter = ground_.workload.parameters[id];
      if (ir::trainable(parameter)) {
        double sum = 0;
        for (const double x : told[id].data) sum += x;
        shown.sums[parameter.name] = sum;
      }
      named.emplace_back(parameter.name, tensor::encode(weights[id], tensor::DType::kF32).value());
    }
    shown.state = folder_ / "state";
    EXPECT_TRUE(tensor::write_safetensors(shown.state, named));
    return shown;
  }

  std::string differs(const ShownBurst& shown, const std::string& group = "float32") {
    const auto found = audit_burst(ground_, shown, group);
    if (!found) return found.error().message;
    return found->differs;
  }

  TestFolder folder_;
  AuditGround ground_;
  uint64_t drawn_ = 0;  // nudges, which seed the next: the same in every run
};

ir::Workload dense(double dropout) {
  ir::Builder b("dense");
  const auto x = b.input("x", {ir::DType::kF32, {ir::kBatch, 2, 8, 8}});
  const auto y = b.input("y", {ir::DType::kI32, {ir::kBatch}});
  auto h = b.relu(b.linear(b.apply(ir::Op::kFlatten, {x}), "fc1", 64));
  if (dropout > 0) h = b.apply(ir::Op::kDropout, {h}, {{"rate", dropout}});
  return b.finish(b.softmax_cross_entropy(b.linear(h, "fc2", 3), y)).value();
}

ir::Workload with_dropout() { return dense(0.5); }

TEST_F(AuditTest, IsStoppedBetweenTwoSteps) {
  prepare(dense(0));
  int asked = 0;
  const auto found = audit_burst(ground_, burst(5), "float32", {}, [&] { return ++asked == 3; });
  ASSERT_FALSE(found);
  EXPECT_EQ(asked, 3);
}

TEST_F(AuditTest, TheLongestBurstFollowsTheWorkOfAStep) {
  prepare(dense(0));
  const int64_t steps = most_audited_steps(ground_);
  EXPECT_GT(steps, 10'000) << "small steps: as many as a burst of seconds has";
  ground_.training.batch *= 1000;
  EXPECT_NEAR(static_cast<double>(most_audited_steps(ground_)), static_cast<double>(steps) / 1000,
              static_cast<double>(steps) / 1e5);
  ground_.training.batch *= 1'000'000;
  EXPECT_EQ(most_audited_steps(ground_), 1) << "one step, whatever it costs";
  ground_.training.scenario = ir::Scenario::kPredict;
  EXPECT_GT(most_audited_steps(ground_), 1'000'000'000)
      << "of predictions some outputs are looked at, not all";
}

// A ReLU on the edge of zero is on in one rounding and off in another: all weights of one unit move one way.
TEST_F(AuditTest, AUnitThatRoundingSwitchesOnIsNoOtherWork) {
  prepare(dense(0), {.kind = ir::OptimizerKind::kAdam, .lr = 1e-2});
  ShownBurst shown = burst(3);
  const auto file = tensor::SafetensorsFile::open(shown.state).value();
  tensor::NamedTensors named;
  for (size_t id = 0; id < ground_.initial.size(); ++id) {
    const std::string& name = ground_.workload.parameters[id].name;
    tensor::Tensor weights = file.read(name).value();
    if (name == "fc1.weight") {
      const double way = std::sqrt(std::inner_product(weights.data.begin(), weights.data.end(),
                                                      ground_.initial[id].data.begin(), 0.0, std::plus<>(),
                                                      [](double a, double b) { return (a - b) * (a - b); }));
      const int64_t row = weights.shape[1];
      for (int64_t i = 0; i < row; ++i)
        weights.data[static_cast<size_t>(i)] += 0.003 * way / std::sqrt(static_cast<double>(row));
      shown.sums[name] += 0.003 * way * std::sqrt(static_cast<double>(row));
    }
    named.emplace_back(name, tensor::encode(weights, tensor::DType::kF32).value());
  }
  EXPECT_THAT(differs(shown), HasSubstr("is not what it reported")) << "parameters without the unit";
  ASSERT_TRUE(tensor::write_safetensors(shown.state, named));
  EXPECT_EQ(differs(shown), "");
  shown.state.clear();
  EXPECT_THAT(differs(shown), HasSubstr("the sum of fc1.weight")) << "the sum alone shows too little";
}

TEST_F(AuditTest, TheRecipesWorkPassesWhereverItsBurstLies) {
  prepare(testing::network(), {.kind = ir::OptimizerKind::kAdam, .lr = 1e-3});
  for (const int64_t steps : {1, 2, 9, 60}) {
    for (const int64_t position : {0, 3, 41})
      EXPECT_EQ(differs(burst(steps, {}, position)), "") << steps << " steps from " << position;
  }
  EXPECT_EQ(differs(burst(9, {.rounds = 1e-7})), "") << "what float32 does";
}

TEST_F(AuditTest, OtherWorkIsToldWithItsNumbers) {
  for (const ir::OptimizerKind kind : {ir::OptimizerKind::kSgd, ir::OptimizerKind::kAdam}) {
    prepare(testing::network(), {.kind = kind, .lr = 1e-3});
    for (const int64_t steps : {2, 3, 10, 100}) {
      SCOPED_TRACE(steps);
      EXPECT_THAT(differs(burst(steps, {.updates = [](int64_t) { return false; }})),
                  HasSubstr("the referee's"));
      EXPECT_THAT(differs(burst(steps, {.updates = [=](int64_t k) { return k < steps / 2; }})),
                  HasSubstr("the referee's"));
      EXPECT_THAT(differs(burst(steps, {.rows = [](int64_t, int64_t batch) { return batch / 2; }})),
                  HasSubstr("the referee's"));
      EXPECT_THAT(differs(burst(steps, {.nudges = false})), HasSubstr("the referee's"))
          << "a burst that was known before";
    }
    EXPECT_THAT(differs(burst(3, {.rows = [](int64_t k, int64_t n) { return k == 2 ? n / 2 : n; }})),
                HasSubstr("the loss of step 3 is"));
    EXPECT_THAT(differs(burst(3, {.updates = [](int64_t k) { return k < 2; }})), HasSubstr("of its way"))
        << "the last update left out";
    EXPECT_THAT(differs(burst(3, {.updates = [](int64_t k) { return k < 2; }, .late = true})),
                HasSubstr("is not what it reported when its burst ended"));
    EXPECT_NE(differs(burst(3, {.rounds = 0.5})), "") << "rough gradients";
    EXPECT_EQ(differs(burst(3, {.rounds = 0.1}), "bfloat16"), "") << "of which more is allowed";
    EXPECT_NE(differs(burst(3, {.updates = [](int64_t) { return false; }}), "bfloat16"), "");
  }
}

// BatchNorm, SGD with momentum, labels that mean nothing: rounding grows to percents within a hundred steps.
ir::Workload chaotic() {
  using Ints = std::vector<int64_t>;
  ir::Builder b("chaotic");
  const auto x = b.input("x", {ir::DType::kF32, {ir::kBatch, 3, 12, 12}});
  const auto y = b.input("y", {ir::DType::kI32, {ir::kBatch}});
  auto h = b.conv(x, "conv1", {.channels = 8, .pad = {1, 1, 1, 1}});
  h = b.relu(b.batch_norm(h, "bn1"));
  h = b.apply(ir::Op::kMaxPool2d, {h}, {{"kernel", Ints{2, 2}}, {"stride", Ints{2, 2}}});
  h = b.relu(b.conv(h, "conv2", {.channels = 12, .pad = {1, 1, 1, 1}}));
  h = b.linear(b.apply(ir::Op::kFlatten, {h}), "fc", 10);
  return b.finish(b.softmax_cross_entropy(h, y)).value();
}

TEST_F(AuditTest, RoundingThatATrainingAmplifiesIsAllowedForAndWorkLeftOutIsNot) {
  prepare(chaotic(), {.lr = 0.02, .momentum = 0.9});
  for (const int64_t position : {0, 1, 2}) {
    for (const int64_t steps : {60, 120})
      EXPECT_EQ(differs(burst(steps, {.rounds = 1e-6}, position)), "") << steps << " steps from " << position;
  }
  // A nudge that hides it is drawn in one burst of twelve.
  int noticed = 0;
  for (int i = 0; i < 4; ++i)
    noticed += !differs(burst(120, {.updates = [](int64_t k) { return k < 80; }})).empty();
  EXPECT_GE(noticed, 2);
  EXPECT_NE(differs(burst(120, {.updates = [](int64_t k) { return k % 4 != 0; }})), "");
  EXPECT_NE(differs(burst(120, {.rows = [](int64_t k, int64_t n) { return k < 60 ? n : n / 2; }})), "");
}

// In each of these bursts, found among thousands, float32 rounding switched a ReLU or a maximum that no one of four
// runs of the referee had switched.
TEST_F(AuditTest, AFlipThatAlmostNoRunShowsIsNoOtherWork) {
  using Ints = std::vector<int64_t>;
  ir::Builder b("cnn");
  const auto x = b.input("x", {ir::DType::kF32, {ir::kBatch, 1, 14, 14}});
  const auto y = b.input("y", {ir::DType::kI32, {ir::kBatch}});
  auto h = b.relu(b.conv(x, "conv1", {.channels = 8, .pad = {1, 1, 1, 1}}));
  h = b.apply(ir::Op::kMaxPool2d, {h}, {{"kernel", Ints{2, 2}}, {"stride", Ints{2, 2}}});
  h = b.relu(b.conv(h, "conv2", {.channels = 16, .pad = {1, 1, 1, 1}}));
  h = b.relu(b.linear(b.apply(ir::Op::kFlatten, {h}), "fc1", 64));
  prepare(b.finish(b.softmax_cross_entropy(b.linear(h, "fc", 10), y)).value(),
          {.kind = ir::OptimizerKind::kRmsprop,
           .lr = 1e-4,
           .rho = 0.9,
           .eps = 1e-7,
           .eps_form = ir::EpsForm::kInside});
  for (const auto& [steps, nudge] : {std::pair{2, 314}, {6, 314}, {6, 367}, {12, 158}, {3, 1493}}) {
    drawn_ = static_cast<uint64_t>(nudge);
    EXPECT_EQ(differs(burst(steps, {.rounds_weights = drawn_ + 1})), "") << steps << " steps, " << nudge;
  }
}

TEST_F(AuditTest, WhatIsNotShownIsADifference) {
  prepare(testing::network());
  ShownBurst shown = burst(3);
  shown.losses.pop_back();
  EXPECT_EQ(differs(shown), "it reported 2 losses for 3 steps");
  shown.losses.clear();
  EXPECT_EQ(differs(shown), "it reported no loss of its steps");
  shown = burst(3);
  shown.losses[1] = std::numeric_limits<double>::quiet_NaN();
  EXPECT_THAT(differs(shown), HasSubstr("the loss of step 2 is nan"));
  shown = burst(3);
  shown.sums.erase("fc1.weight");
  EXPECT_EQ(differs(shown), "it did not report the sum of parameter fc1.weight");
  shown = burst(3);
  shown.state = folder_ / "none";
  EXPECT_THAT(differs(shown), HasSubstr("its parameters cannot be read"));
  shown = burst(3);
  shown.mean_loss = shown.losses[0];
  shown.losses.clear();
  EXPECT_THAT(differs(shown), HasSubstr("the mean loss is"));
}

TEST_F(AuditTest, WithDropoutAWorkerMayDifferAsRunsOfTheRefereeDo) {
  prepare(with_dropout(), {.kind = ir::OptimizerKind::kAdam, .lr = 1e-3});
  for (uint64_t seed = 0; seed < 10; ++seed) {
    for (const int64_t steps : {2, 20, 60})
      EXPECT_EQ(differs(burst(steps, {.dropout_seed = seed})), "") << seed;
  }
  const auto never = [](int64_t) { return false; };
  for (uint64_t seed = 0; seed < 5; ++seed) {
    EXPECT_NE(differs(burst(12, {.updates = never, .dropout_seed = seed})), "");
    EXPECT_NE(differs(burst(40, {.updates = [](int64_t k) { return k < 10; }, .dropout_seed = seed})), "");
  }
}

TEST_F(AuditTest, NobodyForetellsANudge) {
  prepare(testing::network());
  const Nudge one = draw_nudge(ground_).value(), other = draw_nudge(ground_).value();
  EXPECT_NE(one, other);
  size_t elements = 0;
  for (const auto& tensor : one) elements += tensor.data.size();
  EXPECT_GT(elements, 10u);
  ASSERT_TRUE(write_nudge(ground_, one, folder_ / "nudge"));
  const auto file = tensor::SafetensorsFile::open(folder_ / "nudge").value();
  EXPECT_EQ(file.read("conv1.bias").value().data,
            one[static_cast<size_t>(ground_.workload.find_parameter("conv1.bias"))].data);
}

// Predictions, four batches of data: later steps see them again, after one more nudge each time.
class PredictionAuditTest : public AuditTest {
 protected:
  void SetUp() override {
    prepare(testing::network());
    ground_.training.scenario = ir::Scenario::kPredict;
    ASSERT_EQ(nudge_every(ground_), 4);
  }
  // `pass`: which pass over the data a step of a pass computes.
  ShownBurst outputs(
      int64_t steps, const std::function<int64_t(int64_t)>& pass = [](int64_t p) { return p; }) {
    ShownBurst shown{.position = 3,
                     .lead = 1,
                     .steps = steps,
                     .nudge = draw_nudge(ground_, ++drawn_).value(),
                     .nudge_every = 4};
    for (int64_t k = 0; k < steps; ++k) {
      referee::Weights weights = ground_.initial;
      for (int64_t n = 0; n <= pass(k / 4); ++n) {
        for (size_t id = 0; id < weights.size(); ++id) {
          for (size_t i = 0; i < shown.nudge[id].data.size(); ++i)
            weights[id].data[i] += shown.nudge[id].data[i];
        }
      }
      const int64_t batch = ground_.training.batch;
      const auto inputs = read_inputs(ground_.workload, ground_.data, 1, k % 4 * batch, batch).value();
      const auto e =
          referee::evaluate(ground_.workload, weights, inputs, {.train = false, .gradients = false}).value();
      const double norm = tensor::norm(e.prediction);
      shown.outputs.push_back(
          {static_cast<int64_t>(e.prediction.data.size()), e.prediction.data.back(), norm * norm});
    }
    return shown;
  }
};

TEST_F(PredictionAuditTest, TheRecipesOutputsPass) {
  for (const int64_t steps : {1, 4, 9, 300}) EXPECT_EQ(differs(outputs(steps)), "") << steps;
}

TEST_F(PredictionAuditTest, OutputsKeptFromAnEarlierPassAreTold) {
  EXPECT_THAT(differs(outputs(9, [](int64_t) { return 0; })), HasSubstr("the referee's"));
}

TEST_F(PredictionAuditTest, EveryOutputIsDue) {
  ShownBurst shown = outputs(9);
  shown.outputs.erase(shown.outputs.begin());
  EXPECT_EQ(differs(shown), "it reported 8 outputs for 9 steps");
  shown.outputs = {};
  EXPECT_EQ(differs(shown), "it reported 0 outputs for 9 steps");
}

TEST_F(PredictionAuditTest, EveryRowCounts) {
  ShownBurst shown = outputs(9);
  for (auto& output : shown.outputs) output.squares *= 7.0 / 8;
  EXPECT_THAT(differs(shown), HasSubstr("has squares that add up to"));
  shown = outputs(9);
  shown.outputs[4].last +=
      0.01 * std::sqrt(shown.outputs[4].squares / static_cast<double>(shown.outputs[4].size));
  EXPECT_THAT(differs(shown), HasSubstr("the output of step 5 ends in"));
  EXPECT_EQ(differs(shown, "bfloat16"), "") << "what half precision rounds";
  shown.outputs[4].squares = std::nan("");
  EXPECT_NE(differs(shown, "bfloat16"), "");
  shown.outputs[4].size = 5;
  EXPECT_NE(differs(shown), "");
}

}  // namespace
}  // namespace bakeoff
