// Some ways are enumerated: the 23 other orders of an LSTM's gates, usual divisors of inputs, usual limits
// of clipping. Others have one unknown number. It is computed from the contender's answer, so one way
// replaces a search:
//
//   a penalty l on the weights adds l w to the gradients    l by least squares of (theirs - exact) on w
//   all gradients are scaled, or clipped to a norm          the quotient of the norms; the norm itself
//   gradients are clipped to values                         the largest value
//   another learning rate                                   least squares of their first update on the recipe's
//
// A fit alone proves nothing: every wrong answer has some quotient of norms. A way explains a contender
// only if it reproduces the whole answer (causes/explain.h).
//
// Layouts of weights. A port that reads a weight in another order computes with permuted numbers. `to_use`
// permutes the canonical weights for the evaluation, `back` returns gradients to canonical places by the
// inverse permutation.

#include "causes/ways.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <set>

#include "base/texts.h"
#include "causes/variants.h"
#include "ir/op_table.h"
#include "ir/verify.h"

namespace bakeoff {
namespace {

using ir::Op;
using referee::Weights;
using tensor::Tensor;

constexpr double kTiny = 1e-300;

size_t at(ir::ParamId id) { return static_cast<size_t>(id); }

double norm_of_all(const Weights& all) {
  double sum = 0;
  for (const Tensor& t : all) sum += tensor::norm(t) * tensor::norm(t);
  return std::sqrt(sum);
}

void scale(Weights& all, double factor) {
  for (Tensor& t : all) {
    for (double& x : t.data) x *= factor;
  }
}

// ---- the layout of weights

// order[i]: which element of the given data stands in place i.
WeightsChange gather(ir::ParamId id, std::vector<size_t> order) {
  return [id, order = std::move(order)](Weights& all) {
    Tensor& t = all[at(id)];
    if (t.data.size() != order.size()) return;
    const std::vector<double> from = t.data;
    for (size_t i = 0; i < order.size(); ++i) t.data[i] = from[order[i]];
  };
}
WeightsChange scatter(ir::ParamId id, std::vector<size_t> order) {
  return [id, order = std::move(order)](Weights& all) {
    Tensor& t = all[at(id)];
    if (t.data.size() != order.size()) return;
    const std::vector<double> from = t.data;
    for (size_t i = 0; i < order.size(); ++i) t.data[order[i]] = from[i];
  };
}

struct Reordering {
  std::vector<WeightsChange> to_use, back;
  void add(ir::ParamId id, const std::vector<size_t>& order) {
    to_use.push_back(gather(id, order));
    back.push_back(scatter(id, order));
  }
  static WeightsChange all(std::vector<WeightsChange> changes) {
    return [changes = std::move(changes)](Weights& w) {
      for (const WeightsChange& change : changes) change(w);
    };
  }
  void put(ModelWay& way) const { way.to_use = all(to_use), way.back = all(back); }
};

// A linear layer that reads what was flattened from channels first as if it were channels last.
void add_flatten_order(const ir::Workload& workload, std::vector<ModelWay>& ways) {
  const auto types = ir::infer(workload);
  if (!types) return;
  for (size_t n = 0; n < workload.nodes.size(); ++n) {
    const ir::Node& flatten = workload.nodes[n];
    if (flatten.op != Op::kFlatten) continue;
    const ir::Shape& from = (*types)[at(flatten.inputs[0])].shape;
    if (from.size() != 4) continue;
    const auto channels = static_cast<size_t>(from[1]), height = static_cast<size_t>(from[2]),
               width = static_cast<size_t>(from[3]);
    if (channels == 1 || height * width == 1) continue;
    for (ir::ValueId value = workload.output_of(static_cast<int>(n));;) {
      const auto readers = ir::consumers(workload, value);
      if (readers.empty()) break;
      const ir::Node& reader = workload.nodes[static_cast<size_t>(readers[0])];
      if (reader.op == Op::kDropout || reader.op == Op::kRelu) {
        value = workload.output_of(readers[0]);
        continue;
      }
      if (reader.op != Op::kLinear) break;
      const ir::ParamId weight = reader.param("weight");
      const auto outputs = static_cast<size_t>(workload.parameters[at(weight)].shape[0]);
      std::vector<size_t> order;
      for (size_t o = 0; o < outputs; ++o) {
        for (size_t c = 0; c < channels; ++c) {
          for (size_t p = 0; p < height * width; ++p)
            order.push_back(o * channels * height * width + p * channels + c);
        }
      }
      Reordering reordering;
      reordering.add(weight, order);
      ModelWay way{.words = fmt::format("'{}' reads its input flattened in the order height, width, channels",
                                        flatten.output),
                   .workload = workload};
      reordering.put(way);
      ways.push_back(std::move(way));
      break;
    }
  }
}

// The gates of every LSTM in another order than i, f, g, o, and a forget bias of one.
void add_lstm_ways(const ir::Workload& workload, std::vector<ModelWay>& ways) {
  std::vector<const ir::Node*> layers;
  for (const ir::Node& node : workload.nodes) {
    if (node.op == Op::kLstm) layers.push_back(&node);
  }
  if (layers.empty()) return;
  const char names[] = {'i', 'f', 'g', 'o'};
  std::array<size_t, 4> order = {0, 1, 2, 3};
  while (std::next_permutation(order.begin(), order.end())) {
    Reordering reordering;
    for (const ir::Node* node : layers) {
      for (const ir::Slot& slot : node->params) {
        const ir::Shape& shape = workload.parameters[at(slot.param)].shape;
        const auto size = static_cast<size_t>(ir::elements(shape)) / 4;
        std::vector<size_t> places(4 * size);
        // Block k of what is given is taken for gate order[k].
        for (size_t k = 0; k < 4; ++k) {
          for (size_t i = 0; i < size; ++i) places[order[k] * size + i] = k * size + i;
        }
        reordering.add(slot.param, places);
      }
    }
    ModelWay way{.words = fmt::format("LSTM gates in the order {}, {}, {}, {}", names[order[0]],
                                      names[order[1]], names[order[2]], names[order[3]]),
                 .workload = workload};
    reordering.put(way);
    ways.push_back(std::move(way));
  }
  for (const double extra : {1.0, -1.0}) {
    ModelWay way{.words = fmt::format("LSTM forget bias {:+g}", extra), .workload = workload};
    std::vector<ir::ParamId> biases;
    for (const ir::Node* node : layers) {
      if (node->has("bias")) biases.push_back(node->param("bias"));
    }
    if (biases.empty()) continue;
    way.to_use = [biases, extra](Weights& w) {
      for (const ir::ParamId id : biases) {
        const size_t units = w[at(id)].data.size() / 4;
        for (size_t i = units; i < 2 * units; ++i) w[at(id)].data[i] += extra;
      }
    };
    ways.push_back(std::move(way));
  }
}

// ---- inputs, loss, attention

void add_input_scaling(const ir::Workload& workload, const ir::Training& training,
                       std::vector<ModelWay>& ways) {
  const bool floats = std::any_of(workload.inputs.begin(), workload.inputs.end(),
                                  [](const ir::Input& input) { return input.type.dtype == ir::DType::kF32; });
  if (!floats) return;
  const auto add = [&](const std::string& words, double factor, double shift) {
    ModelWay way{.words = words, .workload = workload};
    std::set<ir::ValueId> targets;
    for (const ir::Node& node : workload.nodes) {
      if (ir::is_loss(node.op)) targets.insert(node.inputs[1]);
    }
    way.inputs = [=](referee::Inputs& inputs) {
      for (size_t i = 0; i < inputs.size(); ++i) {
        auto* values = std::get_if<Tensor>(&inputs[i]);
        if (values == nullptr || targets.contains(static_cast<ir::ValueId>(i))) continue;
        for (double& x : values->data) x = factor * x + shift;
      }
    };
    ways.push_back(std::move(way));
  };
  const double divisor = training.input_divisor;
  if (divisor != 1) {
    add(fmt::format("inputs that are not divided by {:g}", divisor), divisor, 0);
    add(fmt::format("inputs that are divided by {:g} twice", divisor), 1 / divisor, 0);
    for (const double other : {256.0, 128.0, 127.5, 127.0, 100.0}) {
      if (other != divisor) add(fmt::format("inputs divided by {:g}", other), divisor / other, 0);
    }
  } else {
    for (const double other : {255.0, 256.0, 127.5})
      add(fmt::format("inputs divided by {:g}", other), 1 / other, 0);
  }
  add("inputs x as 2 x - 1", 2, -1);
  add("inputs x as x - 0.5", 1, -0.5);
  add("inputs x as 1 - x", -1, 1);
  add("inputs normalised by MNIST's mean 0.1307 and deviation 0.3081", 1 / 0.3081, -0.1307 / 0.3081);
}

void add_attention_ways(const ir::Workload& workload, std::vector<ModelWay>& ways) {
  const auto types = ir::infer(workload);
  double width = 0, heads = 0;
  for (const ir::Node& node : workload.nodes) {
    if (node.op != Op::kAttention || !types) continue;
    const ir::Shape& q = (*types)[at(node.inputs[0])].shape;
    heads = static_cast<double>(q[2]), width = static_cast<double>(q[3]);
  }
  if (width == 0) return;
  const std::pair<const char*, double> scales[] = {
      {"attention without its scale 1 / sqrt D", std::sqrt(width)},
      {"attention scaled by 1 / D instead of 1 / sqrt D", 1 / std::sqrt(width)},
      {"attention scaled by the root of the model's width instead of a head's", 1 / std::sqrt(heads)}};
  for (const auto& [words, factor] : scales) {
    if (factor != 1)
      ways.push_back({.words = words, .workload = workload, .deviations = {.attention_scale = factor}});
  }
  const auto changed = [&](const char* words, auto change) {
    ModelWay way{.words = words, .workload = workload};
    for (ir::Node& node : way.workload.nodes) {
      if (node.op == Op::kAttention) change(node);
    }
    if (way.workload != workload && ir::infer(way.workload)) ways.push_back(std::move(way));
  };
  changed("attention without its padding mask", [](ir::Node& node) {
    if (node.inputs.size() == 4) node.inputs.pop_back();
  });
  changed("attention without its causal mask",
          [](ir::Node& node) { ir::set_attribute(node, "causal", false); });
  changed("attention with a causal mask", [](ir::Node& node) { ir::set_attribute(node, "causal", true); });
}

// ---- gradients

// Fits gradients g + l w: what a penalty on the weights adds.
std::optional<double> fitted_penalty(const GateJob& job, const Reference& reference, const Answer& answer,
                                     bool matrices_only) {
  double product = 0, square = 0;
  for (size_t p = 0; p < answer.gradients.size(); ++p) {
    const Tensor &w = reference.weights[p], &g = reference.at.gradients[p], &seen = answer.gradients[p];
    if (!ir::trainable(job.workload.parameters[p]) || seen.data.size() != w.data.size()) continue;
    if (matrices_only && w.shape.size() < 2) continue;
    for (size_t i = 0; i < w.data.size(); ++i) {
      product += (seen.data[i] - g.data[i]) * w.data[i];
      square += w.data[i] * w.data[i];
    }
  }
  if (!(square > 0) || !std::isfinite(product) || std::abs(product / square) < 1e-12) return std::nullopt;
  return product / square;
}

void add_penalties(const GateJob& job, const Reference& reference, const Answer& answer,
                   std::vector<ModelWay>& ways) {
  for (const bool matrices : {false, true}) {
    const auto fitted = fitted_penalty(job, reference, answer, matrices);
    if (!fitted) continue;
    const double l = *fitted;
    const auto counts = [matrices](const Tensor& w) { return !matrices || w.shape.size() >= 2; };
    const auto parameters = job.workload.parameters;
    const auto add = [=](Weights& gradients, const Weights& weights) {
      for (size_t p = 0; p < gradients.size(); ++p) {
        if (gradients[p].data.empty() || !counts(weights[p])) continue;
        for (size_t i = 0; i < gradients[p].data.size(); ++i) gradients[p].data[i] += l * weights[p].data[i];
      }
    };
    const auto penalty = [=](const Weights& weights) {
      double sum = 0;
      for (size_t p = 0; p < weights.size(); ++p) {
        if (!ir::trainable(parameters[p]) || !counts(weights[p])) continue;
        for (const double w : weights[p].data) sum += w * w;
      }
      return l / 2 * sum;
    };
    const std::string of = matrices ? "of weights without biases" : "of all parameters";
    ways.push_back({.words = fmt::format("{:g} times the parameters added to the gradients, {}", l, of),
                    .workload = job.workload,
                    .gradients = add});
    ways.push_back({.words = fmt::format("a penalty of {:g} times the squares in the loss, {}", l / 2, of),
                    .workload = job.workload,
                    .gradients = add,
                    .penalty = penalty,
                    .after_prediction = true});
  }
}

void add_gradient_ways(const GateJob& job, const Reference& reference, const Answer& answer,
                       std::vector<ModelWay>& ways) {
  const Weights& exact = reference.at.gradients;
  const auto add = [&](std::string words, auto change) {
    ways.push_back({.words = std::move(words),
                    .workload = job.workload,
                    .gradients = [change](Weights& g, const Weights&) { change(g); }});
  };
  const double all = norm_of_all(exact), seen = norm_of_all(answer.gradients);
  if (all > 0 && seen > 0 && std::isfinite(seen) && std::abs(seen / all - 1) > 1e-9) {
    const double factor = seen / all;
    add(fmt::format("all gradients multiplied by {:g}", factor), [factor](Weights& g) { scale(g, factor); });
    if (factor < 1)
      add(fmt::format("gradients clipped to a norm of {:g}", seen),
          [seen](Weights& g) { scale(g, std::min(1.0, seen / std::max(norm_of_all(g), kTiny))); });
  }
  double largest = 0;
  for (const Tensor& g : answer.gradients) {
    for (const double x : g.data) largest = std::max(largest, std::abs(x));
  }
  if (largest > 0 && std::isfinite(largest))
    add(fmt::format("gradients clipped to values of at most {:g}", largest), [largest](Weights& g) {
      for (Tensor& t : g) {
        for (double& x : t.data) x = std::clamp(x, -largest, largest);
      }
    });
  for (const double limit : {0.01, 0.1, 0.25, 0.5, 1.0, 5.0}) {
    add(fmt::format("the gradient of each parameter clipped to a norm of {:g}", limit), [limit](Weights& g) {
      for (Tensor& t : g) {
        const double own = tensor::norm(t);
        for (double& x : t.data) x *= std::min(1.0, limit / std::max(own, kTiny));
      }
    });
  }
  std::vector<size_t> missing;
  std::vector<std::string> names;
  for (size_t p = 0; p < answer.gradients.size(); ++p) {
    if (!ir::trainable(job.workload.parameters[p]) || tensor::norm(exact[p]) == 0) continue;
    if (!answer.gradients[p].data.empty() && tensor::norm(answer.gradients[p]) != 0) continue;
    missing.push_back(p), names.push_back(job.workload.parameters[p].name);
  }
  if (!missing.empty())
    add(fmt::format("no gradient reaches {}", join(names, ", ")), [missing](Weights& g) {
      for (const size_t p : missing) std::fill(g[p].data.begin(), g[p].data.end(), 0.0);
    });
  ways.push_back({.words = "gradients that are not zeroed: each step adds to those before",
                  .workload = job.workload,
                  .accumulates = true});
}

void add_device_ways(const GateJob& job, std::vector<ModelWay>& ways) {
  const auto devices = static_cast<double>(job.devices);
  if (job.devices == 1) return;
  for (const auto& [words, factor] : {std::pair("gradients averaged over {} devices twice", 1 / devices),
                                      std::pair("gradients of {} devices added up, not averaged", devices)}) {
    ways.push_back({.words = fmt::format(fmt::runtime(words), job.devices),
                    .workload = job.workload,
                    .gradients = [factor](Weights& gradients, const Weights&) {
                      for (Tensor& gradient : gradients)
                        for (double& g : gradient.data) g *= factor;
                    }});
  }
}

}  // namespace

std::vector<ModelWay> model_ways(const GateJob& job, const Reference& reference, const Answer& answer) {
  std::vector<ModelWay> ways;
  for (Variant& v : model_variants(job.workload, job.training)) {
    const bool late = v.words.find("softmax before") == 0 || v.words.find("the loss reduced") == 0;
    ways.push_back(
        {.words = std::move(v.words), .workload = std::move(v.workload), .after_prediction = late});
  }
  if (job.workload.has(Op::kSoftmaxCrossEntropy)) {
    for (const double s : {0.1, 0.05, 0.2, 0.01, 0.15, 0.3})
      ways.push_back({.words = fmt::format("label smoothing {:g}", s),
                      .workload = job.workload,
                      .deviations = {.label_smoothing = s}});
  }
  if (std::ranges::any_of(job.workload.nodes,
                          [](const ir::Node& n) { return ir::ignore_index(n).has_value(); }))
    ways.push_back({.words = "ignored targets that count in the mean's divisor",
                    .workload = job.workload,
                    .deviations = {.counts_ignored = true}});
  if (job.workload.has(Op::kCtc))
    ways.push_back({.words = "a CTC loss that divides each row by its number of labels",
                    .workload = job.workload,
                    .deviations = {.ctc_by_length = true}});
  ways.push_back({.words = "the model in inference mode: BatchNorm with its running statistics",
                  .workload = job.workload,
                  .inference = true});
  add_input_scaling(job.workload, job.training, ways);
  add_flatten_order(job.workload, ways);
  add_lstm_ways(job.workload, ways);
  add_attention_ways(job.workload, ways);
  add_penalties(job, reference, answer, ways);
  add_device_ways(job, ways);
  add_gradient_ways(job, reference, answer, ways);
  return ways;
}

std::vector<OptimizerWay> optimizer_ways(const GateJob& job, const Reference& reference,
                                         const Answer& answer) {
  std::vector<OptimizerWay> ways;
  const ir::Optimizer& base = job.training.optimizer;
  for (Variant& v : optimizer_variants(job.workload, job.training))
    ways.push_back({.words = std::move(v.words), .optimizer = std::move(v.training.optimizer)});
  const bool adam = base.kind == ir::OptimizerKind::kAdam || base.kind == ir::OptimizerKind::kAdamW;
  const auto twist = [&](std::string words, Twist kind, double amount = 0) {
    ways.push_back({.words = std::move(words), .optimizer = base, .twist = kind, .amount = amount});
  };
  if (adam) {
    twist("no bias correction", Twist::kNoBiasCorrection);
    twist("NAdam", Twist::kNadam);
    twist("NAdam with a constant beta1", Twist::kNadamPlain);
    twist("AMSGrad", Twist::kAmsgrad);
    twist("AMSGrad on the corrected second moment", Twist::kAmsgradHat);
  }
  if (base.kind == ir::OptimizerKind::kSgd && base.momentum != 0) {
    for (const double d : {base.momentum, 0.1, 0.5, 0.9}) {
      twist(fmt::format("dampening {:g}", d), Twist::kDampening, d);
      twist(fmt::format("dampening {:g} from the first step on", d), Twist::kDampened, d);
    }
  }
  if (base.kind == ir::OptimizerKind::kRmsprop) twist("centered RMSprop", Twist::kCentered);
  for (const double limit : {0.001, 0.01, 0.1, 0.25, 0.5, 1.0, 2.0, 5.0, 10.0}) {
    twist(fmt::format("gradients clipped to values of at most {:g}", limit), Twist::kClipValue, limit);
    twist(fmt::format("gradients clipped to a norm of {:g}", limit), Twist::kClipNorm, limit);
    twist(fmt::format("the gradient of each parameter clipped to a norm of {:g}", limit), Twist::kClipNorms,
          limit);
  }
  // Every optimizer's first update is proportional to the learning rate: the rate that fits best.
  double product = 0, square = 0;
  for (size_t p = 0; p < answer.updated.size(); ++p) {
    const auto &from = reference.weights[p].data, &to = reference.updated[p].data,
               &theirs = answer.updated[p].data;
    if (!ir::trainable(job.workload.parameters[p]) || theirs.size() != from.size()) continue;
    for (size_t i = 0; i < from.size(); ++i) {
      product += (theirs[i] - from[i]) * (to[i] - from[i]);
      square += (to[i] - from[i]) * (to[i] - from[i]);
    }
  }
  if (square > 0 && std::isfinite(product) && std::abs(product / square - 1) > 1e-9) {
    OptimizerWay way{.optimizer = base};
    way.optimizer.lr *= product / square;
    way.words = fmt::format("learning rate {:g}", way.optimizer.lr);
    ways.push_back(std::move(way));
  }
  return ways;
}

Result<referee::Evaluation> evaluate_way(const ModelWay& way, const referee::Weights& weights,
                                         const referee::Inputs& batch, bool gradients) {
  Weights used;
  if (way.to_use) used = weights, way.to_use(used);
  referee::Inputs inputs;
  if (way.inputs) inputs = batch, way.inputs(inputs);
  TRY(auto e,
      referee::evaluate(way.workload, way.to_use ? used : weights, way.inputs ? inputs : batch,
                        {.train = !way.inference, .gradients = gradients, .deviations = way.deviations}));
  if (way.penalty) e.loss += way.penalty(weights);
  if (gradients && way.back) way.back(e.gradients);
  if (gradients && way.gradients) way.gradients(e.gradients, weights);
  return e;
}

WayOptimizer::WayOptimizer(const OptimizerWay& way, const referee::Weights& weights)
    : way_(way), state_(referee::initial_state(weights)) {
  for (const Tensor& w : weights) third_.push_back(tensor::zeros(w.shape));
}

namespace {

// Gives whether the update itself is the recipe's.
bool clip(const OptimizerWay& way, Weights& gradients) {
  switch (way.twist) {
    case Twist::kNone:
      return true;
    case Twist::kClipValue:
      for (Tensor& g : gradients) {
        for (double& x : g.data) x = std::clamp(x, -way.amount, way.amount);
      }
      return true;
    case Twist::kClipNorm:
      scale(gradients, std::min(1.0, way.amount / std::max(norm_of_all(gradients), kTiny)));
      return true;
    case Twist::kClipNorms:
      for (Tensor& g : gradients) {
        const double own = tensor::norm(g);
        for (double& x : g.data) x *= std::min(1.0, way.amount / std::max(own, kTiny));
      }
      return true;
    default:
      return false;
  }
}

// An element's state: first and second moment, and a maximum or a mean.
struct Moments {
  double &m, &v, &x;
};

// Adam's corrections of bias at step t, and Nadam's momenta.
struct Schedule {
  double t = 0;
  double c1 = 0, c2 = 0;
  double mu = 0, next_mu = 0;
  double product = 0;  // of mu up to this step
};

double root(const ir::Optimizer& o, double v) {
  return o.eps_form == ir::EpsForm::kInside ? std::sqrt(v + o.eps) : std::sqrt(v) + o.eps;
}

// Each gives what the learning rate multiplies.
double sgd(const OptimizerWay& way, bool first_step, double g, const Moments& at) {
  const ir::Optimizer& o = way.optimizer;
  const double kept = way.twist == Twist::kDampening && first_step ? 1 : 1 - way.amount;
  at.m = o.momentum * at.m + kept * g;
  return o.nesterov ? g + o.momentum * at.m : at.m;
}

double rmsprop(const ir::Optimizer& o, double g, const Moments& at) {
  at.v = o.rho * at.v + (1 - o.rho) * g * g;
  at.x = o.rho * at.x + (1 - o.rho) * g;
  const double u = g / root(o, std::max(at.v - at.x * at.x, 0.0));
  return o.momentum != 0 ? at.m = o.momentum * at.m + u : u;
}

double adam(const OptimizerWay& way, const Schedule& s, double g, const Moments& at) {
  const ir::Optimizer& o = way.optimizer;
  auto& [m, v, x] = at;
  m = o.beta1 * m + (1 - o.beta1) * g;
  v = o.beta2 * v + (1 - o.beta2) * g * g;
  const auto divisor = [&](double second) {
    const bool hat = o.eps_form == ir::EpsForm::kHat;
    return hat ? (std::sqrt(second) + o.eps) / std::sqrt(s.c2) : root(o, second / s.c2);
  };
  switch (way.twist) {
    case Twist::kNoBiasCorrection:
      return m / root(o, v);
    case Twist::kNadam:
      return (s.next_mu * m / (1 - s.product * s.next_mu) + (1 - s.mu) * g / (1 - s.product)) / divisor(v);
    case Twist::kNadamPlain:
      return (o.beta1 * m / (1 - std::pow(o.beta1, s.t + 1)) + (1 - o.beta1) * g / s.c1) / divisor(v);
    case Twist::kAmsgrad:
      x = std::max(x, v);
      return m / s.c1 / divisor(x);
    default:
      x = std::max(x, v / s.c2);
      return m / s.c1 / root(o, x);
  }
}

}  // namespace

void WayOptimizer::step(referee::Weights gradients, referee::Weights& weights) {
  const ir::Optimizer& o = way_.optimizer;
  ++steps_;
  if (clip(way_, gradients)) return referee::step(o, gradients, state_, weights);
  const auto t = static_cast<double>(steps_);
  const bool decoupled = o.kind == ir::OptimizerKind::kAdamW || o.decay_form == ir::DecayForm::kDecoupled;
  Schedule schedule{.t = t, .c1 = 1 - std::pow(o.beta1, t), .c2 = 1 - std::pow(o.beta2, t)};
  schedule.mu = o.beta1 * (1 - 0.5 * std::pow(0.96, t * 0.004));
  schedule.next_mu = o.beta1 * (1 - 0.5 * std::pow(0.96, (t + 1) * 0.004));
  schedule.product = momentum_product_ *= schedule.mu;
  const auto direction = [&](double g, const Moments& at) {
    if (o.kind == ir::OptimizerKind::kSgd) return sgd(way_, steps_ == 1, g, at);
    if (o.kind == ir::OptimizerKind::kRmsprop) return rmsprop(o, g, at);
    return adam(way_, schedule, g, at);
  };
  for (size_t p = 0; p < weights.size(); ++p) {
    if (gradients[p].data.empty()) continue;
    for (size_t i = 0; i < weights[p].data.size(); ++i) {
      double& w = weights[p].data[i];
      const double g = gradients[p].data[i] + (decoupled ? 0 : o.weight_decay * w);
      const double u = direction(g, {state_.first[p].data[i], state_.second[p].data[i], third_[p].data[i]});
      w -= o.lr * (u + (decoupled ? o.weight_decay * w : 0));
    }
  }
}

}  // namespace bakeoff
