#include "lab/explain.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "ir/op_table.h"
#include "lab/inputs.h"
#include "lab/testing.h"
#include "lab/variants.h"
#include "referee/optimizer.h"
#include "referee/train.h"

namespace bakeoff::lab {
namespace {

using ir::DecayForm;
using ir::EpsForm;
using ir::Op;
using ir::Optimizer;
using ir::OptimizerKind;
using testing::gate_job;
using testing::network;
using testing::TestFolder;

// Weights of `from`, reordered by name for `to`; empty where `from` has none.
referee::Weights by_name(const ir::Workload& from, const referee::Weights& weights, const ir::Workload& to) {
  referee::Weights out(to.parameters.size());
  for (size_t id = 0; id < out.size(); ++id) {
    const ir::ParamId at = from.find_parameter(to.parameters[id].name);
    if (at >= 0) out[id] = weights[static_cast<size_t>(at)];
  }
  return out;
}

// What a contender answers that computes `workload` and `optimizer` instead of the job's. `unbiased`: its
// running variances take the unbiased batch variance.
Answer answer_of(const GateJob& job, const Reference& reference, const ir::Workload& workload,
                 const Optimizer& optimizer, bool unbiased = false) {
  const referee::Weights weights = by_name(job.workload, reference.weights, workload);
  const auto e = referee::evaluate(workload, weights, reference.batch).value();
  Answer answer{.loss = e.loss, .prediction = e.prediction};
  answer.gradients = by_name(workload, e.gradients, job.workload);
  answer.buffers = by_name(workload, unbiased ? e.running.unbiased : e.running.biased, job.workload);
  answer.updated = reference.weights;
  auto state = referee::initial_state(answer.updated);
  referee::step(optimizer, reference.at.gradients, state, answer.updated);
  const auto batches = read_batches(job.workload, job.training, job.data, job.rows, kSteps64).value();
  answer.losses64 = referee::train(workload, optimizer, weights, batches).value().losses;
  return answer;
}

struct ModelCase {
  const char* expected;
  std::function<ir::Workload()> build;
};

// The recipe's network with an attribute set at every node of an op.
std::function<ir::Workload()> with(Op op, const char* attribute, ir::AttrValue value) {
  return [=] {
    ir::Workload changed = network();
    for (ir::Node& node : changed.nodes) {
      if (node.op == op) ir::set_attribute(node, attribute, value);
    }
    return changed;
  };
}

// The extra row and column of padding at bottom and right, as TensorFlow's SAME does with stride 2.
std::function<ir::Workload()> same_at(Op op) {
  return [op] {
    ir::Workload changed = network();
    for (ir::Node& node : changed.nodes) {
      if (node.op == op && node.integers("stride")[0] == 2) {
        ir::set_attribute(node, "pad", std::vector<int64_t>{0, 1, 0, 1});
      }
    }
    return changed;
  };
}

const ModelCase kModels[] = {
    {"matches: softmax before a loss that takes logits", [] { return network({.softmax = true}); }},
    {"matches: conv2d padded as SAME (the extra pixel at bottom and right)", same_at(Op::kConv2d)},
    {"matches: avg_pool2d padded as SAME (the extra pixel at bottom and right)", same_at(Op::kAvgPool2d)},
    {"matches: BatchNorm epsilon 0.001", with(Op::kBatchNorm, "eps", 1e-3)},
    {"matches: BatchNorm epsilon 1e-06", with(Op::kBatchNorm, "eps", 1e-6)},
    {"matches: LayerNorm epsilon 0.001", with(Op::kLayerNorm, "eps", 1e-3)},
    {"matches: LayerNorm epsilon 1e-12", with(Op::kLayerNorm, "eps", 1e-12)},
    {"matches: GELU in its tanh form", with(Op::kGelu, "form", std::string("tanh"))},
    {"matches: average pooling that counts the padding", with(Op::kAvgPool2d, "count_include_pad", true)},
    {"matches: the loss reduced by sum", with(Op::kSoftmaxCrossEntropy, "reduction", std::string("sum"))},
    {"matches: convolution without its bias at 'conv2' alone", [] { return network({.conv2_bias = false}); }},
    {"matches: linear layer without its bias at 'fc2' alone", [] { return network({.fc2_bias = false}); }},
    {"matches: no relu at 'act2'", [] { return network({.relu2 = false}); }},
};

TEST(Explain, NamesTheModelThatWasComputedInstead) {
  const TestFolder folder;
  const GateJob job = gate_job(folder.path());
  const Reference reference = make_reference(job).value();
  for (const ModelCase& c : kModels) {
    SCOPED_TRACE(c.expected);
    const Answer answer = answer_of(job, reference, c.build(), job.training.optimizer);
    EXPECT_EQ(explain_model(job, reference, answer), c.expected);
  }
}

TEST(Explain, NamesAPredictionThatIsWrongAlone) {
  const TestFolder folder;
  const GateJob job = gate_job(folder.path());
  const Reference reference = make_reference(job).value();
  Answer answer = answer_of(job, reference, job.workload, job.training.optimizer);
  const Answer softmax = answer_of(job, reference, network({.softmax = true}), job.training.optimizer);
  answer.prediction = softmax.prediction;
  EXPECT_EQ(
      explain_model(job, reference, answer),
      "loss and gradients are the recipe's, the prediction matches: softmax before a loss that takes logits");
  answer.prediction.data[0] += 0.1;
  EXPECT_EQ(explain_model(job, reference, answer), "");
}

TEST(Explain, ACorrectAnswerIsExplainedByNothing) {
  for (const OptimizerKind kind :
       {OptimizerKind::kSgd, OptimizerKind::kRmsprop, OptimizerKind::kAdam, OptimizerKind::kAdamW}) {
    const TestFolder folder;
    const GateJob job = gate_job(folder.path(), {.kind = kind, .lr = 0.01});
    const Reference reference = make_reference(job).value();
    const Answer answer = answer_of(job, reference, job.workload, job.training.optimizer);
    EXPECT_EQ(explain_model(job, reference, answer), "");
    EXPECT_EQ(explain_update(job, reference, answer), "");
    EXPECT_EQ(explain_buffers(job, reference, answer, false), "");
    EXPECT_EQ(explain_losses(job, reference, answer), "");
  }
}

TEST(Explain, NothingIsClaimedOfWhatNoVariantReproduces) {
  const TestFolder folder;
  const GateJob job = gate_job(folder.path(), {.kind = OptimizerKind::kAdam, .lr = 0.01});
  const Reference reference = make_reference(job).value();
  Answer answer = answer_of(job, reference, job.workload, job.training.optimizer);
  answer.loss *= 1.01;
  answer.gradients[0].data[0] += 0.1;
  answer.updated[0].data[0] += 0.1;
  const auto mean = static_cast<size_t>(job.workload.find_parameter("bn1.running_mean"));
  ASSERT_LT(mean, answer.buffers.size());
  answer.buffers[mean].data[0] += 0.1;
  answer.losses64[2] += 0.1;
  EXPECT_EQ(explain_model(job, reference, answer), "");
  EXPECT_EQ(explain_update(job, reference, answer), "");
  EXPECT_EQ(explain_buffers(job, reference, answer, false), "");
  EXPECT_EQ(explain_losses(job, reference, answer), "");
  answer.loss = std::numeric_limits<double>::quiet_NaN();
  answer.losses64.assign(kSteps64, answer.loss);
  EXPECT_EQ(explain_model(job, reference, answer), "");
  EXPECT_EQ(explain_losses(job, reference, answer), "");
}

TEST(Explain, NamesWhatIsWrongWithTheGradientsAlone) {
  const TestFolder folder;
  const GateJob job = gate_job(folder.path());
  const Reference reference = make_reference(job).value();
  Answer scaled = answer_of(job, reference, job.workload, job.training.optimizer);
  for (auto& gradient : scaled.gradients) {
    for (double& g : gradient.data) g *= 8;
  }
  EXPECT_EQ(explain_model(job, reference, scaled), "matches: all gradients multiplied by 8");
  Answer cut = answer_of(job, reference, job.workload, job.training.optimizer);
  cut.gradients[static_cast<size_t>(job.workload.find_parameter("conv2.weight"))].data.assign(4 * 3 * 9, 0.0);
  cut.gradients[static_cast<size_t>(job.workload.find_parameter("fc1.bias"))] = {};
  EXPECT_EQ(explain_model(job, reference, cut), "no gradient reaches conv2.weight, fc1.bias");
  // Another model, and another fault on top: only what was computed is claimed.
  Answer two = answer_of(job, reference, network({.softmax = true}), job.training.optimizer);
  two.gradients[0].data[0] += 1;
  EXPECT_EQ(explain_model(job, reference, two),
            "the loss alone matches: softmax before a loss that takes logits");
}

struct OptimizerCase {
  const char* expected;
  Optimizer recipe;
  Optimizer theirs;
};

const Optimizer kRms{.kind = OptimizerKind::kRmsprop, .lr = 0.01};
const Optimizer kAdam{.kind = OptimizerKind::kAdam, .lr = 0.01};
const Optimizer kSgd{.kind = OptimizerKind::kSgd, .lr = 0.1};
const Optimizer kAdamW{.kind = OptimizerKind::kAdamW, .lr = 0.01, .weight_decay = 0.01};

Optimizer changed(Optimizer optimizer, const std::function<void(Optimizer&)>& change) {
  change(optimizer);
  return optimizer;
}

TEST(Explain, NamesTheUpdateThatWasMadeInstead) {
  const OptimizerCase cases[] = {
      {"matches: epsilon inside the root: sqrt(v + eps)", kRms,
       changed(kRms, [](Optimizer& o) { o.eps_form = EpsForm::kInside; })},
      {"matches: epsilon outside the root: sqrt(v) + eps",
       changed(kRms, [](Optimizer& o) { o.eps_form = EpsForm::kInside; }), kRms},
      {"matches: epsilon inside the root: sqrt(v + eps)", kAdam,
       changed(kAdam, [](Optimizer& o) { o.eps_form = EpsForm::kInside; })},
      {"matches: epsilon that is not bias-corrected (the 'hat' form)", kAdam,
       changed(kAdam, [](Optimizer& o) { o.eps_form = EpsForm::kHat; })},
      {"matches: epsilon outside the root: sqrt(v) + eps",
       changed(kAdam, [](Optimizer& o) { o.eps_form = EpsForm::kHat; }), kAdam},
      {"matches: epsilon 1e-08", kAdam, changed(kAdam, [](Optimizer& o) { o.eps = 1e-8; })},
      {"matches: epsilon 1e-05", kRms, changed(kRms, [](Optimizer& o) { o.eps = 1e-5; })},
      {"matches: epsilon inside the root: sqrt(v + eps), epsilon 1e-08", kRms,
       changed(kRms, [](Optimizer& o) { o.eps = 1e-8, o.eps_form = EpsForm::kInside; })},
      {"matches: rho 0.99", kRms, changed(kRms, [](Optimizer& o) { o.rho = 0.99; })},
      {"matches: epsilon 1e-08, rho 0.99", kRms,
       changed(kRms, [](Optimizer& o) { o.eps = 1e-8, o.rho = 0.99; })},
      {"matches: learning rate 0.01", kSgd, changed(kSgd, [](Optimizer& o) { o.lr = 0.01; })},
      {"matches: learning rate 0.02", kAdam, changed(kAdam, [](Optimizer& o) { o.lr = 0.02; })},
      {"matches: Nesterov momentum 0.9", changed(kSgd, [](Optimizer& o) { o.momentum = 0.9; }),
       changed(kSgd, [](Optimizer& o) { o.momentum = 0.9, o.nesterov = true; })},
      {"matches: l2 weight decay 0.01", kAdam, changed(kAdam, [](Optimizer& o) { o.weight_decay = 0.01; })},
      {"matches: decoupled weight decay 0.01", kAdam,
       changed(kAdam, [](Optimizer& o) { o.weight_decay = 0.01, o.decay_form = DecayForm::kDecoupled; })},
      {"matches: decoupled weight decay 0.004", kAdamW,
       changed(kAdamW, [](Optimizer& o) { o.weight_decay = 0.004; })},
      {"matches: no weight decay", kAdamW, changed(kAdamW, [](Optimizer& o) { o.weight_decay = 0; })},
      {"matches: l2 weight decay 0.01", kAdamW,
       changed(kAdamW, [](Optimizer& o) { o.kind = OptimizerKind::kAdam; })},
  };
  const TestFolder folder;
  for (const OptimizerCase& c : cases) {
    SCOPED_TRACE(c.expected);
    const GateJob job = gate_job(folder.path(), c.recipe);
    const Reference reference = make_reference(job).value();
    EXPECT_EQ(explain_update(job, reference, answer_of(job, reference, job.workload, c.theirs)), c.expected);
  }
}

// What the first update does not show, because all state is still zero.
TEST(Explain, NamesWhatOnlySeveralStepsShow) {
  const OptimizerCase cases[] = {
      {"matches: momentum 0.9", kSgd, changed(kSgd, [](Optimizer& o) { o.momentum = 0.9; })},
      {"matches: momentum 0", changed(kSgd, [](Optimizer& o) { o.momentum = 0.9; }), kSgd},
      {"matches: momentum 0.9", kRms, changed(kRms, [](Optimizer& o) { o.momentum = 0.9; })},
      {"matches: betas 0.9, 0.99", kAdam, changed(kAdam, [](Optimizer& o) { o.beta2 = 0.99; })},
      {"matches: betas 0.5, 0.999", kAdam, changed(kAdam, [](Optimizer& o) { o.beta1 = 0.5; })},
  };
  const TestFolder folder;
  for (const OptimizerCase& c : cases) {
    SCOPED_TRACE(c.expected);
    const GateJob job = gate_job(folder.path(), c.recipe);
    const Reference reference = make_reference(job).value();
    const Answer answer = answer_of(job, reference, job.workload, c.theirs);
    EXPECT_EQ(explain_update(job, reference, answer), "") << "the first update is the same";
    EXPECT_EQ(explain_losses(job, reference, answer), c.expected);
  }
}

TEST(Explain, NamesWhatBecameOfTheRunningStatistics) {
  const TestFolder folder;
  const GateJob job = gate_job(folder.path());
  const Reference reference = make_reference(job).value();
  const auto with_momentum = [&](double momentum, bool unbiased) {
    return answer_of(job, reference, with(Op::kBatchNorm, "momentum", momentum)(), job.training.optimizer,
                     unbiased);
  };
  EXPECT_EQ(explain_buffers(job, reference, with_momentum(0.1, true), false),
            "matches: running variance from the unbiased batch variance");
  EXPECT_EQ(explain_buffers(job, reference, with_momentum(0.1, false), true),
            "matches: running variance from the biased batch variance");
  EXPECT_EQ(explain_buffers(job, reference, with_momentum(0.1, true), true), "");
  for (const bool unbiased : {false, true}) {
    EXPECT_EQ(explain_buffers(job, reference, with_momentum(0.01, unbiased), false),
              "matches: BatchNorm momentum 0.01 (weight of the new batch; Keras writes 0.99)");
    EXPECT_EQ(explain_buffers(job, reference, with_momentum(0.9, unbiased), false),
              "matches: BatchNorm momentum 0.9 (weight of the new batch; Keras writes 0.1)");
    EXPECT_EQ(explain_buffers(job, reference, with_momentum(0.0, unbiased), false),
              "matches: BatchNorm momentum 0 (weight of the new batch; Keras writes 1)");
  }
}

TEST(Explain, VariantsDifferFromTheRecipeAndFromEachOtherInWords) {
  for (const Optimizer& optimizer : {kSgd, kRms, kAdam, kAdamW}) {
    const ir::Training training{.optimizer = optimizer};
    std::vector<std::string> words;
    for (const auto& variants :
         {model_variants(network(), training), optimizer_variants(network(), training)}) {
      EXPECT_GT(variants.size(), 5u);
      for (const Variant& v : variants) {
        EXPECT_TRUE(v.workload != network() || v.training != training) << v.words;
        EXPECT_NE(v.words, "");
        words.push_back(v.words);
      }
    }
    std::sort(words.begin(), words.end());
    const auto twice = std::adjacent_find(words.begin(), words.end());
    EXPECT_TRUE(twice == words.end()) << *twice;
  }
}

}  // namespace
}  // namespace bakeoff::lab
