#include "causes/explain.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <optional>

#include "causes/variants.h"
#include "data/inputs.h"
#include "ir/op_table.h"
#include "ir/text.h"
#include "plan/lane.h"
#include "plan/testing.h"
#include "referee/optimizer.h"
#include "referee/train.h"
#include "reference/reference.h"

namespace bakeoff {
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
  auto run = referee::train(workload, optimizer, weights, batches).value();
  answer.losses64 = std::move(run.losses);
  answer.after64 = by_name(workload, run.weights, job.workload);
  for (size_t id = 0; id < answer.after64.size(); ++id) {
    if (answer.after64[id].data.empty()) answer.after64[id] = reference.weights[id];  // never used
  }
  return answer;
}

// One evaluation, with gradients as the optimizer gets them; one update, numbered from 1.
using Evaluate = std::function<referee::Evaluation(const referee::Weights&, const referee::Inputs&)>;
using Update = std::function<void(int64_t, const referee::Weights&, referee::Weights&)>;

// What a contender answers that computes in these two ways. `fresh` makes an optimizer without state.
Answer answer_by(const GateJob& job, const Reference& reference, const Evaluate& evaluate,
                 const std::function<Update()>& fresh) {
  const auto first = evaluate(reference.weights, reference.batch);
  Answer answer{.loss = first.loss, .prediction = first.prediction, .gradients = first.gradients};
  answer.buffers = first.running.biased;
  answer.updated = reference.weights;
  fresh()(1, reference.at.gradients, answer.updated);
  referee::Weights weights = reference.weights;
  const Update update = fresh();
  int64_t step = 0;
  const auto batches = read_batches(job.workload, job.training, job.data, job.rows, kSteps64).value();
  for (const auto& batch : batches) {
    const auto e = evaluate(weights, batch);
    answer.losses64.push_back(e.loss);
    update(++step, e.gradients, weights);
  }
  answer.after64 = weights;
  return answer;
}

Evaluate plain_evaluation(const ir::Workload& workload) {
  return [=](const referee::Weights& weights, const referee::Inputs& batch) {
    return referee::evaluate(workload, weights, batch).value();
  };
}

std::function<Update()> by(const Optimizer& optimizer) {
  return [optimizer] {
    auto state = std::make_shared<std::optional<referee::OptimizerState>>();
    return [=](int64_t, const referee::Weights& gradients, referee::Weights& weights) {
      if (!*state) *state = referee::initial_state(weights);
      referee::step(optimizer, gradients, **state, weights);
    };
  };
}

// Of one scalar's gradient, first and second moment (or what else it keeps): the step in units of lr.
using Rule = std::function<double(int64_t t, double g, double& a, double& b, double& c)>;
std::function<Update()> by_rule(double lr, const Rule& rule) {
  return [=] {
    auto kept = std::make_shared<std::map<std::pair<size_t, size_t>, std::array<double, 3>>>();
    return [=](int64_t t, const referee::Weights& gradients, referee::Weights& weights) {
      for (size_t p = 0; p < weights.size(); ++p) {
        for (size_t i = 0; i < gradients[p].data.size(); ++i) {
          auto& [a, b, c] = (*kept)[{p, i}];
          weights[p].data[i] -= lr * rule(t, gradients[p].data[i], a, b, c);
        }
      }
    };
  };
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
    EXPECT_EQ(explain(job, reference, answer, false), c.expected);
  }
}

TEST(Explain, NamesAPredictionThatIsWrongAlone) {
  const TestFolder folder;
  const GateJob job = gate_job(folder.path());
  const Reference reference = make_reference(job).value();
  Answer answer = answer_of(job, reference, job.workload, job.training.optimizer);
  const Answer softmax = answer_of(job, reference, network({.softmax = true}), job.training.optimizer);
  answer.prediction = softmax.prediction;
  EXPECT_EQ(explain(job, reference, answer, false),
            "matches: in the prediction alone, not in loss and gradients: softmax before a loss that takes "
            "logits");
  answer.prediction.data[0] += 0.1;
  EXPECT_EQ(explain(job, reference, answer, false), "");
}

TEST(Explain, ACorrectAnswerIsExplainedByNothing) {
  for (const OptimizerKind kind :
       {OptimizerKind::kSgd, OptimizerKind::kRmsprop, OptimizerKind::kAdam, OptimizerKind::kAdamW}) {
    const TestFolder folder;
    const GateJob job = gate_job(folder.path(), {.kind = kind, .lr = 0.01});
    const Reference reference = make_reference(job).value();
    const Answer answer = answer_of(job, reference, job.workload, job.training.optimizer);
    EXPECT_EQ(explain(job, reference, answer, false), "");
  }
}

// A way that reproduces all but one thing that was seen is no explanation.
TEST(Explain, NothingIsClaimedOfWhatNoWayReproducesWhole) {
  const TestFolder folder;
  const GateJob job = gate_job(folder.path(), {.kind = OptimizerKind::kAdam, .lr = 0.01});
  const Reference reference = make_reference(job).value();
  const Answer softmax = answer_of(job, reference, network({.softmax = true}), job.training.optimizer);
  ASSERT_NE(explain(job, reference, softmax, false), "");
  const auto mean = static_cast<size_t>(job.workload.find_parameter("bn1.running_mean"));
  const std::function<void(Answer&)> disturb[] = {
      [](Answer& a) { a.loss *= 1.01; },
      [](Answer& a) { a.loss = std::numeric_limits<double>::quiet_NaN(); },
      [](Answer& a) { a.prediction.data[0] += 0.1; },
      [](Answer& a) { a.gradients[0].data[0] += 0.1; },
      [](Answer& a) { a.updated[0].data[0] += 0.1; },
      [=](Answer& a) { a.buffers[mean].data[0] += 0.1; },
      [](Answer& a) { a.losses64[2] += 0.1; },
      [](Answer& a) { a.losses64[3] = std::numeric_limits<double>::infinity(); },
      [](Answer& a) { a.after64[0].data[0] += 1e-4; },
      [](Answer& a) { a.after64[0] = {}; },
  };
  for (size_t k = 0; k < std::size(disturb); ++k) {
    SCOPED_TRACE(k);
    Answer answer = softmax;
    disturb[k](answer);
    EXPECT_EQ(explain(job, reference, answer, false), "");
  }
}

TEST(Explain, NamesWhatIsWrongWithTheGradientsAlone) {
  const TestFolder folder;
  const GateJob job = gate_job(folder.path(), {.lr = 0.1});
  const Reference reference = make_reference(job).value();
  const auto changed_by = [&](const std::function<void(referee::Weights&, const referee::Weights&)>& change) {
    const Evaluate evaluate = [&](const referee::Weights& weights, const referee::Inputs& batch) {
      auto e = referee::evaluate(job.workload, weights, batch).value();
      change(e.gradients, weights);
      return e;
    };
    return explain(job, reference, answer_by(job, reference, evaluate, by(job.training.optimizer)), false);
  };
  EXPECT_EQ(changed_by([](referee::Weights& gradients, const auto&) {
              for (auto& g : gradients) {
                for (double& x : g.data) x *= 8;
              }
            }),
            "matches: all gradients multiplied by 8");
  const auto conv2 = static_cast<size_t>(job.workload.find_parameter("conv2.weight"));
  const auto fc1 = static_cast<size_t>(job.workload.find_parameter("fc1.bias"));
  EXPECT_EQ(changed_by([&](referee::Weights& gradients, const auto&) {
              gradients[conv2].data.assign(4 * 3 * 9, 0.0);
              gradients[fc1].data.assign(6, 0.0);
            }),
            "matches: no gradient reaches conv2.weight, fc1.bias");
  EXPECT_EQ(changed_by([](referee::Weights& gradients, const auto&) {
              double square = 0;
              for (const auto& g : gradients) square += tensor::norm(g) * tensor::norm(g);
              for (auto& g : gradients) {
                for (double& x : g.data) x *= 0.01 / std::sqrt(square);
              }
            }),
            "matches: gradients clipped to a norm of 0.01");
  EXPECT_EQ(changed_by([](referee::Weights& gradients, const auto&) {
              for (auto& g : gradients) {
                for (double& x : g.data) x = std::clamp(x, -0.01, 0.01);
              }
            }),
            "matches: gradients clipped to values of at most 0.01");
  EXPECT_EQ(changed_by([](referee::Weights& gradients, const referee::Weights& weights) {
              for (size_t p = 0; p < gradients.size(); ++p) {
                for (size_t i = 0; i < gradients[p].data.size(); ++i)
                  gradients[p].data[i] += 0.01 * weights[p].data[i];
              }
            }),
            "matches: 0.01 times the parameters added to the gradients, of all parameters");
}

TEST(Explain, NamesWhatDevicesDoWithTheirGradients) {
  const TestFolder folder;
  GateJob job = gate_job(folder.path(), {.lr = 0.1});
  job.devices = 4;
  const Reference reference = make_reference(job).value();
  const auto multiplied = [&](double factor) {
    const Evaluate evaluate = [&](const referee::Weights& weights, const referee::Inputs& batch) {
      auto e = referee::evaluate(job.workload, weights, batch).value();
      for (auto& g : e.gradients)
        for (double& x : g.data) x *= factor;
      return e;
    };
    return explain(job, reference, answer_by(job, reference, evaluate, by(job.training.optimizer)), false);
  };
  EXPECT_EQ(multiplied(0.25), "matches: gradients averaged over 4 devices twice");
  EXPECT_EQ(multiplied(4), "matches: gradients of 4 devices added up, not averaged");
  EXPECT_EQ(multiplied(8), "matches: all gradients multiplied by 8");
}

TEST(Explain, DecayByHandIsNoMissingDecay) {
  const TestFolder folder;
  Optimizer recipe{.kind = OptimizerKind::kSgd, .lr = 0.1, .weight_decay = 0.01};
  const GateJob job = gate_job(folder.path(), recipe);
  const Reference reference = make_reference(job).value();
  const Evaluate evaluate = [&](const referee::Weights& weights, const referee::Inputs& batch) {
    auto e = referee::evaluate(job.workload, weights, batch).value();
    for (size_t p = 0; p < e.gradients.size(); ++p) {
      for (size_t i = 0; i < e.gradients[p].data.size(); ++i)
        e.gradients[p].data[i] += 0.01 * weights[p].data[i];
    }
    return e;
  };
  Optimizer without = recipe;
  without.weight_decay = 0;
  const Answer answer = answer_by(job, reference, evaluate, by(without));
  EXPECT_EQ(
      explain(job, reference, answer, false),
      "matches: 0.01 times the parameters added to the gradients, of all parameters; and no weight decay");
}

TEST(Explain, NamesGradientsThatAreNotZeroed) {
  const TestFolder folder;
  for (const Optimizer& optimizer :
       {Optimizer{.lr = 0.1}, Optimizer{.kind = OptimizerKind::kAdam, .lr = 0.01}}) {
    const GateJob job = gate_job(folder.path(), optimizer);
    const Reference reference = make_reference(job).value();
    referee::Weights sums;
    const auto fresh = [&] {
      auto kept = std::make_shared<referee::Weights>();
      return [kept, update = by(optimizer)()](int64_t t, const referee::Weights& g, referee::Weights& w) {
        if (t == 1) {
          *kept = g;
        } else {
          for (size_t p = 0; p < g.size(); ++p) {
            for (size_t i = 0; i < g[p].data.size(); ++i) (*kept)[p].data[i] += g[p].data[i];
          }
        }
        update(t, *kept, w);
      };
    };
    const Answer answer = answer_by(job, reference, plain_evaluation(job.workload), fresh);
    EXPECT_EQ(explain(job, reference, answer, false),
              "matches: gradients that are not zeroed: each step adds to those before");
  }
}

TEST(Explain, NamesTheOptimizersThatNoRecipeCanState) {
  const TestFolder folder;
  const Optimizer adam{.kind = OptimizerKind::kAdam, .lr = 0.01, .eps = 1e-6};
  const Optimizer sgd{.lr = 0.1, .momentum = 0.9};
  const Optimizer rms{.kind = OptimizerKind::kRmsprop, .lr = 0.01, .eps = 1e-4};
  const auto moments = [](double g, double& m, double& v) {
    m = 0.9 * m + 0.1 * g;
    v = 0.999 * v + 0.001 * g * g;
  };
  const auto c = [](double beta, int64_t t) { return 1 - std::pow(beta, static_cast<double>(t)); };
  const auto mu = [](int64_t t) { return 0.9 * (1 - 0.5 * std::pow(0.96, 0.004 * static_cast<double>(t))); };
  struct Case {
    const char* expected;
    Optimizer recipe;
    Rule rule;
  };
  const Case cases[] = {
      {"matches: no bias correction", adam,
       [=](int64_t, double g, double& m, double& v, double&) {
         moments(g, m, v);
         return m / (std::sqrt(v) + 1e-6);
       }},
      {"matches: NAdam", adam,
       [=](int64_t t, double g, double& m, double& v, double&) {
         moments(g, m, v);
         double product = 1;
         for (int64_t k = 1; k <= t; ++k) product *= mu(k);
         const double hat = mu(t + 1) * m / (1 - product * mu(t + 1)) + (1 - mu(t)) * g / (1 - product);
         return hat / (std::sqrt(v / c(0.999, t)) + 1e-6);
       }},
      {"matches: AMSGrad", adam,
       [=](int64_t t, double g, double& m, double& v, double& most) {
         moments(g, m, v);
         most = std::max(most, v);
         return m / c(0.9, t) / (std::sqrt(most) / std::sqrt(c(0.999, t)) + 1e-6);
       }},
      {"matches: dampening 0.9", sgd,
       [](int64_t t, double g, double& v, double&, double&) {
         v = t == 1 ? g : 0.9 * v + 0.1 * g;
         return v;
       }},
      {"matches: centered RMSprop", rms,
       [](int64_t, double g, double& v, double& mean, double&) {
         v = 0.9 * v + 0.1 * g * g;
         mean = 0.9 * mean + 0.1 * g;
         return g / (std::sqrt(v - mean * mean) + 1e-4);
       }},
  };
  for (const Case& one : cases) {
    SCOPED_TRACE(one.expected);
    const GateJob job = gate_job(folder.path(), one.recipe);
    const Reference reference = make_reference(job).value();
    const Answer answer =
        answer_by(job, reference, plain_evaluation(job.workload), by_rule(one.recipe.lr, one.rule));
    EXPECT_EQ(explain(job, reference, answer, false), one.expected);
  }
}

TEST(Explain, NesterovThatIsOffIsNotMomentumThatIsOff) {
  const TestFolder folder;
  const Optimizer nesterov{.lr = 0.1, .momentum = 0.9, .nesterov = true};
  Optimizer plain = nesterov, none = nesterov;
  plain.nesterov = false;
  none.momentum = 0, none.nesterov = false;
  const GateJob job = gate_job(folder.path(), nesterov);
  const Reference reference = make_reference(job).value();
  EXPECT_EQ(explain(job, reference, answer_of(job, reference, job.workload, plain), false),
            "matches: momentum 0.9");
  EXPECT_EQ(explain(job, reference, answer_of(job, reference, job.workload, none), false),
            "matches: momentum 0");
}

TEST(Explain, NamesWhatIsWrongWithInputsAndLabels) {
  const TestFolder folder;
  const GateJob job = gate_job(folder.path(), {.lr = 0.1});
  const Reference reference = make_reference(job).value();
  const auto scaled = [&](double factor, double shift) {
    const Evaluate evaluate = [=, &job](const referee::Weights& weights, referee::Inputs batch) {
      for (double& x : std::get<tensor::Tensor>(batch[0]).data) x = factor * x + shift;
      return referee::evaluate(job.workload, weights, batch).value();
    };
    return explain(job, reference, answer_by(job, reference, evaluate, by(job.training.optimizer)), false);
  };
  EXPECT_EQ(scaled(1 / 255.0, 0), "matches: inputs divided by 255");
  EXPECT_EQ(scaled(2, -1), "matches: inputs x as 2 x - 1");
  EXPECT_EQ(scaled(3, 0), "");
  // 0.9 of the label and 0.1 of each class's share.
  const Evaluate smooth = [&](const referee::Weights& weights, const referee::Inputs& batch) {
    auto e = referee::evaluate(job.workload, weights, batch).value();
    e.loss *= 0.9;
    for (auto& g : e.gradients) {
      for (double& x : g.data) x *= 0.9;
    }
    for (int64_t k = 0; k < 3; ++k) {
      referee::Inputs all = batch;
      for (int64_t& label : std::get<tensor::IntTensor>(all[1]).data) label = k;
      const auto one = referee::evaluate(job.workload, weights, all).value();
      e.loss += 0.1 / 3 * one.loss;
      for (size_t p = 0; p < e.gradients.size(); ++p) {
        for (size_t i = 0; i < e.gradients[p].data.size(); ++i)
          e.gradients[p].data[i] += 0.1 / 3 * one.gradients[p].data[i];
      }
    }
    return e;
  };
  EXPECT_EQ(explain(job, reference, answer_by(job, reference, smooth, by(job.training.optimizer)), false),
            "matches: label smoothing 0.1");
  const Evaluate inference = [&](const referee::Weights& weights, const referee::Inputs& batch) {
    auto e = referee::evaluate(job.workload, weights, batch, {.train = false}).value();
    e.running.biased = weights;
    return e;
  };
  EXPECT_EQ(explain(job, reference, answer_by(job, reference, inference, by(job.training.optimizer)), false),
            "matches: the model in inference mode: BatchNorm with its running statistics");
}

// Networks of which the layout of weights is part.
GateJob job_of(const ir::Workload& workload, const TestFolder& folder) {
  GateJob job{.workload = workload, .rows = 32, .steps = 5};
  job.training.optimizer = {.kind = OptimizerKind::kAdam, .lr = 0.01};
  job.training.batch = 8;
  job.data = folder / "data.safetensors";
  job.folder = folder.path();
  EXPECT_TRUE(testing::write_random_data(job.workload, job.rows, 3, job.data));
  return job;
}

TEST(Explain, NamesAFlattenThatReadsInAnotherOrder) {
  using Ints = std::vector<int64_t>;
  const TestFolder folder;
  ir::Builder b("flat");
  const auto x = b.input("x", {ir::DType::kF32, {ir::kBatch, 2, 4, 3}});
  const auto y = b.input("y", {ir::DType::kI32, {ir::kBatch}});
  const auto h = b.relu(b.conv(x, "conv", {.channels = 3, .pad = {1, 1, 1, 1}}));
  const ir::Workload flat =
      b.finish(b.softmax_cross_entropy(b.linear(b.named(b.apply(Op::kFlatten, {h}), "flat"), "fc", 3), y))
          .value();
  // The same, but the flattened channels come last.
  ir::Builder last("flat");
  const auto x2 = last.input("x", {ir::DType::kF32, {ir::kBatch, 2, 4, 3}});
  const auto y2 = last.input("y", {ir::DType::kI32, {ir::kBatch}});
  const auto h2 =
      last.apply(Op::kTranspose, {last.relu(last.conv(x2, "conv", {.channels = 3, .pad = {1, 1, 1, 1}}))},
                 {{"perm", Ints{0, 2, 3, 1}}});
  const ir::Workload turned =
      last.finish(last.softmax_cross_entropy(last.linear(last.apply(Op::kFlatten, {h2}), "fc", 3), y2))
          .value();
  const GateJob job = job_of(flat, folder);
  const Reference reference = make_reference(job).value();
  EXPECT_EQ(explain(job, reference, answer_of(job, reference, turned, job.training.optimizer), false),
            "matches: 'flat' reads its input flattened in the order height, width, channels");
}

TEST(Explain, NamesWhatIsWrongWithAWeightedSumOfLosses) {
  const TestFolder folder;
  const auto with = [](const std::string& sum) {
    return ir::parse(
               "workload two(x: f32[N,4], y: i32[N], t: f32[N,3]) {\n"
               "  h = linear(x; weight=body.weight[5,4], bias=body.bias[5])\n  r = tanh(h)\n"
               "  logits = linear(r; weight=head.weight[3,5])\n  place = linear(r; weight=aux.weight[3,5])\n"
               "  main = softmax_cross_entropy(logits, y) ignore_index=0\n  aux = mse(place, t)\n" +
               sum + "}\n")
        .value();
  };
  const std::string weighted =
      "  share = constant() value=0.3\n  part = mul(aux, share)\n  loss = add(main, part)\n";
  const GateJob job = job_of(with(weighted), folder);
  const Reference reference = make_reference(job).value();
  const auto said = [&](const Evaluate& evaluate) {
    return explain(job, reference, answer_by(job, reference, evaluate, by(job.training.optimizer)), false);
  };
  EXPECT_EQ(said(plain_evaluation(job.workload)), "");
  EXPECT_EQ(said(plain_evaluation(with("  loss = add(main, aux)\n"))),
            "matches: the loss 'aux' without its weight");
  std::string zero = weighted;
  EXPECT_EQ(said(plain_evaluation(with(zero.replace(zero.find("0.3"), 3, "0")))),
            "matches: the loss 'aux' left out");
  EXPECT_EQ(said([&](const referee::Weights& weights, const referee::Inputs& batch) {
              return referee::evaluate(job.workload, weights, batch, {.deviations = {.counts_ignored = true}})
                  .value();
            }),
            "matches: ignored targets that count in the mean's divisor");
}

TEST(Explain, NamesACtcThatDividesRowsByTheirLengths) {
  const TestFolder folder;
  const auto workload = ir::parse(
      "workload speech(x: f32[N,7,3], y: i32[N,3]) {\n"
      "  z = linear(x; weight=head.weight[4,3], bias=head.bias[4])\n  loss = ctc(z, y)\n}\n");
  const GateJob job = job_of(workload.value(), folder);
  const Reference reference = make_reference(job).value();
  const auto by_length = [&](const referee::Weights& weights, const referee::Inputs& batch) {
    return referee::evaluate(job.workload, weights, batch, {.deviations = {.ctc_by_length = true}}).value();
  };
  EXPECT_EQ(explain(job, reference, answer_by(job, reference, by_length, by(job.training.optimizer)), false),
            "matches: a CTC loss that divides each row by its number of labels");
}

TEST(Explain, NamesLstmGatesThatAreReadInAnotherOrder) {
  const TestFolder folder;
  ir::Builder sequence("sequence");
  const auto words = sequence.input("x", {ir::DType::kF32, {ir::kBatch, 5, 3}});
  const auto target = sequence.input("y", {ir::DType::kI32, {ir::kBatch, 5}});
  const ir::Workload workload = sequence
                                    .finish(sequence.softmax_cross_entropy(
                                        sequence.linear(sequence.lstm(words, "lstm", 4), "out", 3), target))
                                    .value();
  const GateJob job = job_of(workload, folder);
  const Reference lstm = make_reference(job).value();
  // Keras, TensorFlow 1: i, f, o, g and i, g, f, o.
  for (const auto& [words_expected, order] :
       {std::pair<const char*, std::array<size_t, 4>>{"matches: LSTM gates in the order i, f, o, g",
                                                      {0, 1, 3, 2}},
        {"matches: LSTM gates in the order i, g, f, o", {0, 2, 1, 3}},
        {"matches: LSTM gates in the order o, i, f, g", {3, 0, 1, 2}}}) {
    const Evaluate evaluate = [&](const referee::Weights& weights, const referee::Inputs& batch) {
      // The block k that is given is taken for the gate order[k].
      const auto turn = [&](const referee::Weights& from, bool back) {
        referee::Weights to = from;
        for (size_t p = 0; p < from.size(); ++p) {
          if (!job.workload.parameters[p].name.starts_with("lstm.") || from[p].data.empty()) continue;
          const size_t size = from[p].data.size() / 4;
          for (size_t k = 0; k < 4; ++k) {
            for (size_t i = 0; i < size; ++i) {
              const size_t given = k * size + i, used = order[k] * size + i;
              to[p].data[back ? given : used] = from[p].data[back ? used : given];
            }
          }
        }
        return to;
      };
      auto e = referee::evaluate(job.workload, turn(weights, false), batch).value();
      e.gradients = turn(e.gradients, true);
      return e;
    };
    EXPECT_EQ(explain(job, lstm, answer_by(job, lstm, evaluate, by(job.training.optimizer)), false),
              words_expected);
  }
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
    EXPECT_EQ(explain(job, reference, answer_of(job, reference, job.workload, c.theirs), false), c.expected);
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
    for (size_t p = 0; p < answer.updated.size(); ++p)
      EXPECT_LT(tensor::relative_distance(answer.updated[p], reference.updated[p]), 1e-12)
          << "the first update";
    EXPECT_EQ(explain(job, reference, answer, false), c.expected);
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
  EXPECT_EQ(explain(job, reference, with_momentum(0.1, true), false),
            "matches: running variance from the unbiased batch variance");
  EXPECT_EQ(explain(job, reference, with_momentum(0.1, false), true),
            "matches: running variance from the biased batch variance");
  EXPECT_EQ(explain(job, reference, with_momentum(0.1, true), true), "");
  for (const bool unbiased : {false, true}) {
    const std::string form = unbiased ? ", from the unbiased batch variance" : "";
    EXPECT_EQ(explain(job, reference, with_momentum(0.01, unbiased), false),
              "matches: BatchNorm momentum 0.01 (weight of the new batch; Keras writes 0.99)" + form);
    EXPECT_EQ(explain(job, reference, with_momentum(0.9, unbiased), false),
              "matches: BatchNorm momentum 0.9 (weight of the new batch; Keras writes 0.1)" + form);
    EXPECT_EQ(explain(job, reference, with_momentum(0.0, unbiased), false),
              "matches: running statistics that are never updated");
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
}  // namespace bakeoff
