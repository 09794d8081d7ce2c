#include "parity/proof.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <string_view>

#include "base/files.h"
#include "causes/explain.h"
#include "data/batch_hashes.h"
#include "data/inputs.h"
#include "ir/verify.h"
#include "parity/proof_dropout.h"
#include "parity/proof_variants.h"
#include "referee/generation.h"
#include "referee/init.h"
#include "referee/optimizer.h"
#include "referee/train.h"
#include "reference/rounding.h"
#include "tensor/safetensors.h"

namespace bakeoff {
namespace {

using tensor::Tensor;

// The most that a float32 training may be away from the exact one, however much it amplifies rounding: a loss, and all
// parameters relative to their moves.
constexpr double kMostAmplified = 0.1, kMostMoved = 0.3;
constexpr double kNoiseFactor = 10;  // of what rounding does to parameters, by the referee's estimate
constexpr double kLeast = 1e-300;    // where everything is zero, zero is right

// norm(a - b), infinite where shapes differ or an element is no number.
double distance(const Tensor& a, const Tensor& b) {
  if (a.shape != b.shape) return std::numeric_limits<double>::infinity();
  double sum = 0;
  for (size_t i = 0; i < a.data.size(); ++i) sum += (a.data[i] - b.data[i]) * (a.data[i] - b.data[i]);
  return std::isfinite(sum) ? std::sqrt(sum) : std::numeric_limits<double>::infinity();
}

Tensor difference(const Tensor& a, const Tensor& b) {
  Tensor d = a;
  for (size_t i = 0; i < d.data.size() && i < b.data.size(); ++i) d.data[i] -= b.data[i];
  return d;
}

// Collects the comparisons of one check; keeps the worst and remembers the first that diverges anywhere.
class Comparisons {
 public:
  Comparisons(Parity& parity, std::string what, double tolerance)
      : parity_(parity), check_{.what = std::move(what), .tolerance = tolerance, .passed = true} {}
  ~Comparisons() {
    if (!check_.tensor.empty()) parity_.checks.push_back(check_);
  }
  Comparisons(const Comparisons&) = delete;
  Comparisons& operator=(const Comparisons&) = delete;

  void compare(const std::string& tensor, double error) { compare(tensor, error, check_.tolerance); }
  // With a tolerance of its own; the worst is the one that uses most of it.
  void compare(const std::string& tensor, double error, double tolerance) {
    if (std::isnan(error)) error = std::numeric_limits<double>::infinity();
    const bool passed = error <= tolerance;
    const double share = error / tolerance;
    if (check_.tensor.empty() || share > worst_) {
      check_.tensor = tensor, check_.error = error, check_.tolerance = tolerance;
      worst_ = share;
    }
    check_.passed = check_.passed && passed;
    if (!passed && parity_.diverges_at.empty()) {
      parity_.diverges_at = tensor;
      parity_.divergence = error;
    }
  }
  bool passed() const { return check_.passed; }

 private:
  Parity& parity_;
  ParityCheck check_;
  double worst_ = -1;
};

// What a contender wrote, read back by name.
struct Dump {
  tensor::SafetensorsFile file;
  // A missing tensor reads as an empty one, which is infinitely far from everything.
  Tensor get(const std::string& name) const {
    if (file.find(name) == nullptr) return {};
    auto tensor = file.read(name);
    return tensor ? std::move(*tensor) : Tensor{};
  }
};

// As NCHW where it is NHWC, batch first where time is: what is compared is a layer's output, not its layout.
Tensor arranged_as(const Tensor& tensor, const tensor::Shape& shape) {
  if (tensor.shape == shape) return tensor;
  const size_t rank = shape.size();
  if (tensor.shape.size() != rank) return tensor;
  for (const std::vector<size_t>& axes : {std::vector<size_t>{0, 3, 1, 2}, {1, 0, 2}}) {
    bool fits = axes.size() == rank;
    for (size_t a = 0; fits && a < rank; ++a) fits = tensor.shape[axes[a]] == shape[a];
    if (!fits) continue;
    Tensor out{.shape = shape, .data = std::vector<double>(tensor.data.size())};
    std::vector<size_t> strides(rank, 1), at(rank, 0);
    for (size_t a = rank - 1; a-- > 0;)
      strides[a] = strides[a + 1] * static_cast<size_t>(tensor.shape[a + 1]);
    for (double& x : out.data) {
      size_t from = 0;
      for (size_t a = 0; a < rank; ++a) from += at[a] * strides[axes[a]];
      x = tensor.data[from];
      for (size_t a = rank; a-- > 0 && ++at[a] == static_cast<size_t>(shape[a]);) at[a] = 0;
    }
    return out;
  }
  return tensor;
}

std::string layer_of(const ir::Workload& workload, const ir::Node& node) {
  const std::string& parameter = workload.parameters[static_cast<size_t>(node.params[0].param)].name;
  return parameter.substr(0, parameter.rfind('.'));
}

// The first layer, in graph order, whose output differs, among those that the contender reports. A layer that
// is used more than once, or fused with the next one, reports another output than the recipe's node: it is
// skipped if a later layer agrees.
std::string first_wrong_layer(const GateJob& job, const Dump& dump, const Reference& reference) {
  std::map<std::string, int> uses;
  for (const ir::Node& node : job.workload.nodes) {
    if (!node.params.empty()) ++uses[layer_of(job.workload, node)];
  }
  std::string first;
  for (size_t n = 0; n < job.workload.nodes.size(); ++n) {
    const ir::Node& node = job.workload.nodes[n];
    if (node.params.empty() || uses[layer_of(job.workload, node)] > 1) continue;
    const std::string layer = layer_of(job.workload, node);
    if (dump.file.find("activation/" + layer) == nullptr) continue;
    const auto value = static_cast<size_t>(job.workload.output_of(static_cast<int>(n)));
    const auto* expected = std::get_if<Tensor>(&reference.at.activations[value]);
    if (expected == nullptr) continue;
    const Tensor seen = arranged_as(dump.get("activation/" + layer), expected->shape);
    if (seen.shape != expected->shape) continue;
    const bool same = tensor::relative_distance(seen, *expected) <= Tolerances().output64;
    if (same)
      first.clear();
    else if (first.empty())
      first = layer;
  }
  return first;
}

// Repeats the request with the outputs of layers, to find where a wrong prediction begins. Empty: unknown.
std::string locate(Worker& worker, const GateJob& job, const Reference& reference,
                   const ContenderStart& contender) {
  const fs::path out = job.folder / (contender.script.stem().string() + ".layers.safetensors");
  std::string layer;
  if (worker.parity(0, job.training.batch, {}, out, true)) {
    if (auto file = tensor::SafetensorsFile::open(out))
      layer = first_wrong_layer(job, Dump{std::move(*file)}, reference);
  }
  std::error_code ignored;
  fs::remove(out, ignored);
  return layer;
}

Answer read_answer(const ir::Workload& workload, const Dump& dump) {
  Answer answer;
  const Tensor loss = dump.get("loss");
  answer.prediction = dump.get("output");
  answer.loss = loss.data.empty() ? std::numeric_limits<double>::quiet_NaN() : loss.data[0];
  for (const ir::Parameter& p : workload.parameters) {
    answer.gradients.push_back(dump.get("grad/" + p.name));
    answer.updated.push_back(dump.get("update/" + p.name));
    answer.buffers.push_back(dump.get("buffer/" + p.name));
  }
  return answer;
}

void compare_gradients(const GateJob& job, const Reference& reference, const Answer& answer,
                       Comparisons& comparisons) {
  double largest = 0;
  for (const Tensor& g : reference.at.gradients) largest = std::max(largest, tensor::norm(g));
  for (size_t id = 0; id < answer.gradients.size(); ++id) {
    if (!ir::trainable(job.workload.parameters[id])) continue;
    const Tensor& expected = reference.at.gradients[id];
    comparisons.compare("grad/" + job.workload.parameters[id].name,
                        distance(answer.gradients[id], expected) / gradient_scale(expected, largest));
  }
}

void compare_updates(const GateJob& job, const Reference& reference, const Answer& answer,
                     Comparisons& comparisons) {
  double largest = 0;
  for (size_t id = 0; id < reference.updated.size(); ++id) {
    largest = std::max(largest, tensor::norm(difference(reference.updated[id], reference.weights[id])));
  }
  for (size_t id = 0; id < answer.updated.size(); ++id) {
    if (!ir::trainable(job.workload.parameters[id])) continue;
    const double step = tensor::norm(difference(reference.updated[id], reference.weights[id]));
    // A step is the difference of two parameters: it is known to the parameters' own rounding.
    const double scale = std::max({step, 1e-6 * largest, 1e-7 * tensor::norm(reference.weights[id]), kLeast});
    comparisons.compare("update/" + job.workload.parameters[id].name,
                        distance(answer.updated[id], reference.updated[id]) / scale);
  }
}

void compare_buffers(const GateJob& job, const Reference& reference, const Answer& answer, bool unbiased,
                     Comparisons& comparisons) {
  const auto& expected = unbiased ? reference.at.running.unbiased : reference.at.running.biased;
  for (size_t id = 0; id < answer.buffers.size(); ++id) {
    if (ir::trainable(job.workload.parameters[id])) continue;
    const double scale = std::max(tensor::norm(expected[id]), 1e-6);
    comparisons.compare("buffer/" + job.workload.parameters[id].name,
                        distance(answer.buffers[id], expected[id]) / scale);
  }
}

// The result of a known mistake: BatchNorm with the statistics of the batch.
std::string explain_prediction(const GateJob& job, const Reference& reference, const Answer& answer) {
  const auto training = referee::evaluate(job.workload, reference.weights, reference.batch,
                                          {.train = true, .gradients = false});
  const bool same =
      training && tensor::relative_distance(answer.prediction, training->prediction) <= Tolerances().output64;
  return same ? "matches: the model in training mode, BatchNorm with the statistics of the batch" : "";
}

// "the prediction has shape [8,3,1], the recipe's has [8,3]"; empty where shapes agree.
std::string shape_words(const std::string& what, const Tensor& seen, const Tensor& expected) {
  if (seen.shape == expected.shape && seen.data.size() == expected.data.size()) return "";
  if (seen.data.empty() && !expected.data.empty()) return what + " is missing from the answer";
  return fmt::format("{} has shape {}, the recipe's has {}", what, tensor::to_text(seen.shape),
                     tensor::to_text(expected.shape));
}

// Of the columns [begin, end) of each row.
Tensor columns(const Tensor& all, int64_t begin, int64_t end) {
  const int64_t rows = all.shape[0], width = all.shape[1];
  Tensor part = tensor::zeros({rows, end - begin});
  for (int64_t row = 0; row < rows; ++row)
    std::copy_n(all.data.begin() + row * width + begin, end - begin, part.data.begin() + row * (end - begin));
  return part;
}

// Of several outputs side by side the largest distance of one: a large one does not hide what is wrong in another.
double prediction_distance(const ir::Workload& workload, const Tensor& seen, const Tensor& expected) {
  const std::vector<ir::ValueId> ids = workload.predictions();
  const auto types = ir::infer(workload);
  if (ids.size() == 1 || !types || seen.shape != expected.shape)
    return tensor::relative_distance(seen, expected);
  double worst = 0;
  int64_t begin = 0;
  for (const ir::ValueId id : ids) {
    const ir::Shape& shape = (*types)[static_cast<size_t>(id)].shape;
    const int64_t end = begin + ir::product(shape, 1, shape.size());
    const double error = tensor::relative_distance(columns(seen, begin, end), columns(expected, begin, end));
    if (!(error <= worst)) worst = error;  // NaN stays
    if (std::isnan(worst)) return worst;
    begin = end;
  }
  return worst;
}

void compare_prediction(const ir::Workload& workload, const Reference& reference, const Answer& answer,
                        Parity& parity, const Tolerances& t) {
  Comparisons comparisons(parity, "float64 prediction", t.output64);
  comparisons.compare("prediction",
                      prediction_distance(workload, answer.prediction, reference.at.prediction));
}

// Scenario "generate": whether each word that was chosen is the likeliest one; rounding may decide between equals.
void compare_words(const GateJob& job, const referee::Weights& weights, const Reference& reference,
                   const Dump& dump, Comparisons& comparisons, double tolerance) {
  constexpr double kNone = std::numeric_limits<double>::infinity();
  std::vector<int64_t> words;
  for (const double word : dump.get("words").data) words.push_back(static_cast<int64_t>(word));
  const auto gap =
      referee::greedy_gap(job.workload, weights, reference.batch, words, job.training.generation);
  // The two largest logits of a row may each be wrong by the tolerance.
  comparisons.compare("words", gap ? *gap : kNone, 10 * tolerance);
}

// False where prediction, loss or gradients differ.
bool compare_one_step(const GateJob& job, const Reference& reference, const ContenderStart& contender,
                      const Answer& answer, Parity& parity, const Tolerances& t) {
  bool model = true;
  compare_prediction(job.workload, reference, answer, parity, t);
  model = parity.checks.back().passed;
  {
    Comparisons comparisons(parity, "float64 loss", t.loss64);
    comparisons.compare("loss", relative(answer.loss, reference.at.loss));
    model = model && comparisons.passed();
  }
  {
    Comparisons comparisons(parity, "float64 gradients", t.gradient64);
    compare_gradients(job, reference, answer, comparisons);
    model = model && comparisons.passed();
  }
  {
    Comparisons comparisons(parity, "optimizer update", t.update64);
    compare_updates(job, reference, answer, comparisons);
  }
  {
    Comparisons comparisons(parity, "running statistics", t.buffer64);
    compare_buffers(job, reference, answer, contender.unbiased_running_var, comparisons);
  }
  return model;
}

// The layer that the gradients indicate: the backward pass comes from the loss, so the last parameter in
// graph order that differs is the first one that it reached.
std::string gradients_say(const GateJob& job, const Reference& reference, const Answer& answer,
                          const Tolerances& t) {
  double largest = 0;
  for (const Tensor& g : reference.at.gradients) largest = std::max(largest, tensor::norm(g));
  std::string last;
  bool agree_after = false;
  for (const ir::Node& node : job.workload.nodes) {
    for (const ir::Slot& slot : node.params) {
      const auto id = static_cast<size_t>(slot.param);
      if (!ir::trainable(job.workload.parameters[id])) continue;
      const Tensor& expected = reference.at.gradients[id];
      const bool same =
          distance(answer.gradients[id], expected) / gradient_scale(expected, largest) <= t.gradient64;
      if (!same) last = job.workload.parameters[id].name;
      agree_after = same;
    }
  }
  return last.empty() || !agree_after ? ""
                                      : fmt::format("the gradients of all parameters after {} agree", last);
}

// Error of the parameters after training steps, divided by how far they should have moved: sums over
// elements.
struct Moves {
  const referee::Weights& from;
  const referee::Weights& expected;
  const std::vector<double>& noise;
  // How far a training is away, by ParamId, in which every value is rounded; asked for where the noise does not
  // explain enough. Null: nothing is rounded.
  std::function<const std::vector<double>&()> rounded = {};

  // Of parameter `id`, the larger of both.
  double noise_with_rounding(size_t id) const { return std::max(noise[id], rounded()[id]); }
};

// Each parameter by itself.
void compare_each_move(const GateJob& job, const Dump& dump, const Moves& moves, double limit,
                       Comparisons& comparisons) {
  double moved = 0, count = 0;
  for (size_t id = 0; id < moves.expected.size(); ++id) {
    if (!ir::trainable(job.workload.parameters[id])) continue;
    moved += sum_apart(moves.expected[id], moves.from[id]);
    count += static_cast<double>(moves.expected[id].data.size());
  }
  const double mean = moved / std::max(count, 1.0);  // of an element of the whole model
  for (size_t id = 0; id < moves.expected.size(); ++id) {
    const ir::Parameter& p = job.workload.parameters[id];
    if (!ir::trainable(p)) continue;
    const Tensor& expected = moves.expected[id];
    // The error of a parameter that should hardly move is divided by the mean move of all parameters.
    const double scale = std::max({sum_apart(expected, moves.from[id]),
                                   1e-4 * mean * static_cast<double>(expected.data.size()), kLeast});
    const double error = sum_apart(dump.get(p.name), expected) / scale;
    double allowed = limit + kNoiseFactor * moves.noise[id] / scale;
    if (error > allowed && moves.rounded)
      allowed = limit + kNoiseFactor * moves.noise_with_rounding(id) / scale;
    comparisons.compare("moved/" + p.name, error, allowed);
  }
}

// All parameters together: if a ReLU or a maximum lies on an edge, float32 rounding moves single parameters
// far away, in honest frameworks too.
struct AllMoves {
  double error = 0, allowed = 0;
  double by_rounding = 0;  // what rounding would allow if there were no kMostMoved
};

AllMoves measure_all_moves(const GateJob& job, const Dump& dump, const Moves& moves, double limit) {
  double moved = 0, apart = 0, noise = 0;
  const auto each = [&](const auto& visit) {
    for (size_t id = 0; id < moves.expected.size(); ++id) {
      if (ir::trainable(job.workload.parameters[id])) visit(id);
    }
  };
  each([&](size_t id) {
    moved += sum_apart(moves.expected[id], moves.from[id]);
    apart += sum_apart(dump.get(job.workload.parameters[id].name), moves.expected[id]);
    noise += moves.noise[id];
  });
  moved = std::max(moved, kLeast);
  AllMoves all{.error = apart / moved, .allowed = limit + kNoiseFactor * noise / moved};
  all.by_rounding = all.allowed;
  if (all.error > all.allowed && moves.rounded) {
    noise = 0;
    each([&](size_t id) { noise += moves.noise_with_rounding(id); });
    all.by_rounding = limit + kNoiseFactor * noise / moved;
    all.allowed = std::min(all.by_rounding, std::max(all.allowed, kMostMoved));
  }
  return all;
}

// What the worker has written, which is removed.
std::optional<Dump> take_dump(const fs::path& out, Parity& parity) {
  auto file = tensor::SafetensorsFile::open(out);
  std::error_code ignored;
  fs::remove(out, ignored);  // what is open stays readable
  if (file) return Dump{std::move(*file)};
  parity.failure = Failure{Stage::kParity, file.error().message, {}};
  return std::nullopt;
}

// The worker's current parameters, under canonical names.
// Whether the contender stands where the referee does after these steps: it makes whole calls alone. What a
// script of the user's own says of its calls takes no check away.
bool made_whole_calls(const ContenderStart& contender, size_t steps) {
  return !contender.contender.own_script.empty() ||
         static_cast<int64_t>(steps) % std::max<int64_t>(1, contender.steps_per_call) == 0;
}

std::optional<Dump> state_of(Worker& worker, const GateJob& job, const ContenderStart& contender,
                             Parity& parity) {
  const fs::path out = job.folder / (contender.script.stem().string() + ".state.safetensors");
  if (worker.state(out)) return take_dump(out, parity);
  parity.failure = worker.failure();
  return std::nullopt;
}

std::optional<Dump> proof_of(Worker& worker, const GateJob& job, const fs::path& gradients,
                             const fs::path& out, Parity& parity) {
  if (!worker.parity(0, job.training.batch, gradients, out)) {
    parity.failure = worker.failure();
    return std::nullopt;
  }
  return take_dump(out, parity);
}

// By a worker that has built the contender as it will be timed.
void prove_prediction32(Worker& worker, const GateJob& job, const Reference& reference,
                        const ContenderStart& contender, Parity& parity, const Tolerances& tolerances) {
  const fs::path out = job.folder / (contender.script.stem().string() + ".parity32.safetensors");
  const auto first = worker.run(1, Stage::kFirstStep);
  if (!first || !worker.parity(0, job.training.batch, {}, out)) {
    parity.failure = worker.failure();
    return;
  }
  parity.first_step_cold_ns = first->burst.ns;
  const auto dump = take_dump(out, parity);
  if (!dump) return;
  Comparisons comparisons(parity, "float32 prediction", tolerances.output32);
  comparisons.compare("prediction",
                      prediction_distance(job.workload, dump->get("output"), reference.prediction32));
  if (job.training.generates())
    compare_words(job, reference.initial, reference, *dump, comparisons, tolerances.output32);
}

// The averages of the weights after the float64 steps, under the names "ema/<parameter>".
void compare_averages(const GateJob& job, const Reference& reference, const Dump& state, Parity& parity,
                      const Tolerances& t) {
  if (reference.average64.empty()) return;
  Comparisons comparisons(parity, "average of weights", t.moved64);
  for (size_t id = 0; id < reference.average64.size(); ++id) {
    const ir::Parameter& p = job.workload.parameters[id];
    if (!ir::trainable(p)) continue;
    const double moved = std::max(sum_apart(reference.after64[id], reference.weights[id]), kLeast);
    const double least = 1e-4 * tensor::norm(reference.weights[id]);
    const double error = sum_apart(state.get("ema/" + p.name), reference.average64[id]);
    const double scale = std::max(moved, least);
    comparisons.compare("average/" + p.name, error / scale,
                        t.moved64 + kNoiseFactor * reference.noise64[id] / scale);
  }
}

// Learning rates far beyond the steps that are trained, by the contender's own schedule.
bool compare_rates(Worker& worker, const GateJob& job, const Reference& reference, Parity& parity,
                   const Tolerances& t) {
  const ir::Optimizer& optimizer = job.training.optimizer;
  if (!optimizer.schedule.varies()) return true;
  const std::vector<int64_t> steps = steps_to_compare(optimizer.schedule);
  const auto rates = worker.rates(steps);
  if (!worker.ok()) {
    parity.failure = worker.failure();
    return false;
  }
  Comparisons comparisons(parity, "learning rates", t.rate);
  const auto trained = static_cast<int64_t>(reference.losses64.size());
  if (!rates || rates->size() != steps.size()) {
    // Its own training steps have shown all of the schedule, or else nothing shows the rest.
    if (trained > optimizer.schedule.corners().back() + 1) return true;
    comparisons.compare("learning rates", std::numeric_limits<double>::infinity());
    parity.explanation = fmt::format(
        "it does not show its learning rates beyond the {} steps that were compared; docs/training.md says how a "
        "script does",
        trained);
    return true;
  }
  for (size_t k = 0; k < steps.size(); ++k) {
    comparisons.compare(fmt::format("learning rate of step {}", steps[k]),
                        std::abs((*rates)[k] - optimizer.rate(steps[k])) / optimizer.lr);
  }
  return true;
}

// What no proof can show is said: clipping that never acted.
void note_clipping(const GateJob& job, const Reference& reference, Parity& parity) {
  if (!job.training.optimizer.clips() || reference.clipped64 > 0) return;
  parity.checks.push_back(
      {.what = "clipping",
       .tensor = "it never acted: gradients stayed below the limit, at larger weights too",
       .passed = true});
}

// Losses and parameters of training steps in float64. False: the worker failed.
bool prove_steps64(Worker& worker, const GateJob& job, const Reference& reference,
                   const ContenderStart& contender, Answer& answer, Parity& parity,
                   const Tolerances& tolerances) {
  const auto losses = worker.losses(static_cast<int64_t>(reference.losses64.size()));
  if (!losses) {
    parity.failure = worker.failure();
    return false;
  }
  const auto state = state_of(worker, job, contender, parity);
  if (!state) return false;
  answer.losses64 = losses->losses;
  if (made_whole_calls(contender, losses->losses.size()))
    for (const ir::Parameter& p : job.workload.parameters) answer.after64.push_back(state->get(p.name));
  {
    Comparisons comparisons(parity, "float64 training steps", tolerances.losses64);
    for (size_t k = 0; k < losses->losses.size(); ++k) {
      comparisons.compare(fmt::format("loss of step {}", k),
                          relative(losses->losses[k], reference.losses64[k]));
    }
  }
  if (made_whole_calls(contender, losses->losses.size())) {
    Comparisons comparisons(parity, "float64 parameters", tolerances.moved64);
    const Moves moves{reference.weights, reference.after64, reference.noise64};
    compare_each_move(job, *state, moves, tolerances.moved64, comparisons);
  }
  if (made_whole_calls(contender, losses->losses.size()))
    compare_averages(job, reference, *state, parity, tolerances);
  note_clipping(job, reference, parity);
  return compare_rates(worker, job, reference, parity, tolerances);
}

// From the weights of the float64 proofs, at their batch.
void build_at_gate_weights(Worker& worker, const GateJob& job, const Reference& reference,
                           const ContenderStart& contender, const std::string& dtype) {
  const bool predicts = job.training.predicts();
  Texts effective;
  worker.build({.script = contender.script,
                .weights = reference.weights_file,
                .data = job.data,
                .layout = contender.layout,
                // Off if the recipe has dropout. If it has none, or predicts, dropout may have no effect.
                .dropout = predicts || !has_dropout(job.workload),
                .scenario = job.training.scenario,
                .dtype = dtype,
                .batch = job.cut ? job.training.batch : 0},
               effective);
}

}  // namespace

void prove_in(Worker& worker, const GateJob& job, const Reference& reference, const ContenderStart& contender,
              bool train, Parity& parity, const Tolerances& tolerances, const std::string& dtype) {
  const bool predicts = job.training.predicts();
  const fs::path out = job.folder / (contender.script.stem().string() + ".parity.safetensors");
  build_at_gate_weights(worker, job, reference, contender, dtype);
  const auto dump = proof_of(worker, job, predicts ? fs::path() : reference.gradients_file, out, parity);
  if (!dump) return;
  Answer answer = read_answer(job.workload, *dump);
  bool model = true;
  if (predicts) {
    compare_prediction(job.workload, reference, answer, parity, tolerances);
    model = parity.checks.back().passed;
    if (job.training.generates()) {
      Comparisons comparisons(parity, "float64 words", tolerances.output64);
      compare_words(job, reference.weights, reference, *dump, comparisons, tolerances.output64);
    }
  } else {
    model = compare_one_step(job, reference, contender, answer, parity, tolerances);
  }
  if (train && !predicts && !prove_steps64(worker, job, reference, contender, answer, parity, tolerances))
    return;
  if (parity.diverges_at.empty() || job.cut) return;  // the whole batch decides, and is explained
  if (!parity.explanation.empty()) return;
  if (parity.diverges_at == "prediction") {
    const std::string words = shape_words("the prediction", answer.prediction, reference.at.prediction);
    const std::string layer =
        words.empty() && !job.training.generates() ? locate(worker, job, reference, contender) : "";
    if (!layer.empty()) parity.diverges_at = "output of " + layer;
    parity.explanation = words;
  }
  if (!parity.explanation.empty()) return;
  parity.explanation = predicts ? explain_prediction(job, reference, answer)
                                : explain(job, reference, answer, contender.unbiased_running_var);
  if (parity.explanation.empty() && !model && !predicts)
    parity.explanation = gradients_say(job, reference, answer, tolerances);
  if (parity.explanation.empty()) parity.explanation = "no known cause reproduces the contender's results";
}

namespace {

// Answers to the requests of proof 3. What is missing could not be had.
struct Answers32 {
  Losses losses = {};
  std::optional<Dump> state = {}, step = {};
  std::optional<std::vector<std::string>> batches = {};
};

std::optional<Answers32> ask_steps32(Worker& worker, const GateJob& job, const ContenderStart& contender,
                                     Parity& parity) {
  const auto losses = worker.losses(job.steps);
  if (!losses) return std::nullopt;
  Answers32 answers{.losses = *losses};
  if (made_whole_calls(contender, answers.losses.losses.size()))
    answers.state = state_of(worker, job, contender, parity);
  if (!is_variant(contender)) answers.batches = ask_batches(worker, job);
  if (!worker.ok()) return answers;
  const fs::path out = job.folder / (contender.script.stem().string() + ".parity32.safetensors");
  answers.step = proof_of(worker, job, {}, out, parity);
  return answers;
}

// Prediction and gradients of the first batch in float32: a contender that rounds to fewer bits differs more.
void compare_output32(const GateJob& job, const Reference& reference, const Answer& answer, Parity& parity,
                      const Tolerances& t) {
  Comparisons comparisons(parity, "float32 prediction", t.output32);
  const double error = tensor::relative_distance(answer.prediction, reference.at32.prediction);
  // Rounding is measured only where the fixed tolerance does not do.
  const double allowed =
      error <= t.output32
          ? t.output32
          : std::max(t.output32, t.rounding_factor * rounding_distance(job, reference).prediction);
  comparisons.compare("float32 prediction", error, allowed);
}

// The error of a float32 gradient, and what a distance relative to the gradient's own norm is on the same scale.
struct Error32 {
  size_t id = 0;
  double error = 0, per_norm = 1;
};

std::vector<Error32> errors32(const GateJob& job, const referee::Evaluation& at, const Answer& answer) {
  double largest = 0;
  for (const Tensor& g : at.gradients) largest = std::max(largest, tensor::norm(g));
  std::vector<Error32> errors;
  for (size_t id = 0; id < answer.gradients.size(); ++id) {
    if (!ir::trainable(job.workload.parameters[id])) continue;
    const double norm = std::max(tensor::norm(at.gradients[id]), kLeast);
    // Of a gradient that is zero by mathematics (a bias before BatchNorm) rounding is all there is: a long
    // sum of terms as large as others' that cancel.
    const double scale = norm <= 1e-6 * largest ? largest : std::max(norm, 3e-2 * largest);
    errors.push_back({id, distance(answer.gradients[id], at.gradients[id]) / scale, norm / scale});
  }
  return errors;
}

double allowed32(const Error32& e, const std::vector<double>& distances, const Tolerances& t) {
  return std::max(t.gradient32, t.rounding_factor * distances[e.id] * e.per_norm);
}

// `rounds`: whose rounding widens the limits; null: nothing does.
void compare_gradients32(const GateJob& job, const referee::Evaluation& at, const Answer& answer,
                         const Reference* rounds, Parity& parity, const Tolerances& t) {
  Comparisons comparisons(parity, kGradients32, t.gradient32);
  for (const Error32& e : errors32(job, at, answer)) {
    const bool wider = rounds != nullptr && e.error > t.gradient32;
    comparisons.compare("float32 grad/" + job.workload.parameters[e.id].name, e.error,
                        wider ? allowed32(e, rounding_distance(job, *rounds).gradients, t) : t.gradient32);
  }
}

// Whether gradients differ, and by no more than ReLUs explain whose input is exactly zero: at initial weights biases
// are zero, and so is what a convolution makes of the empty part of a picture, but on GPUs where cuDNN transforms it.
bool zeros_explain(const GateJob& job, const Reference& reference, const Answer& answer,
                   const Tolerances& t) {
  bool differs = false;
  for (const Error32& e : errors32(job, reference.at32, answer)) {
    if (e.error <= t.gradient32 || e.error <= allowed32(e, rounding_distance(job, reference).gradients, t))
      continue;
    if (!(e.error <= allowed32(e, zeros_distance(job, reference), t))) return false;
    differs = true;
  }
  return differs;
}

// Why a contender that is right in float64 differs in float32 at `where` (Parity::diverges_at).
std::string explain_float32(const GateJob& job, const Reference& reference, std::string_view where) {
  const bool after_steps = where.starts_with("float32 loss") || where.starts_with("moved/");
  if (after_steps && job.training.track == ir::Track::kEqualised) {
    const std::vector<double>& losses = rounded_path(job, reference).losses;
    const double most = losses.empty() ? 0 : *std::max_element(losses.begin(), losses.end());
    if (most > kMostAmplified / kNoiseFactor) {
      return fmt::format(
          "it equals the recipe in float64; in float32 the recipe's training amplifies rounding too much to be "
          "compared: a loss of the referee's own float32 training is {:.1g} away from the exact one within {} "
          "steps. A lower learning rate or a larger batch makes it comparable",
          most, losses.size());
    }
  }
  return "it equals the recipe in float64, but differs more in float32 than rounding to float32 explains: "
         "lower precision (bfloat16, float16, TF32), or a different computation in float32 only";
}

// Parameters after float32 steps. Where the recipe amplifies rounding so much that all steps cannot be compared, and the
// contender is no further away than rounding explains, `again` trains as many steps anew as can be.
void compare_parameters32(const GateJob& job, const Reference& reference, const Dump& state,
                          const std::function<std::optional<Dump>(int64_t)>& again, Parity& parity,
                          const Tolerances& t) {
  const auto compare = [&](const std::string& what, const Dump& dump, const Moves& moves,
                           const AllMoves& all) {
    Comparisons comparisons(parity, what, t.moved32);
    comparisons.compare("moved/all parameters", all.error, all.allowed);
    compare_each_move(job, dump, moves, t.moved32_each, comparisons);
  };
  const Moves moves{reference.initial, reference.after32, reference.noise32,
                    [&]() -> const std::vector<double>& { return rounded_path(job, reference).after; }};
  const AllMoves all = measure_all_moves(job, state, moves, t.moved32);
  if (all.error > all.allowed && all.error <= all.by_rounding) {
    const FirstSteps& first = comparable_steps(job, reference, (kMostMoved - t.moved32) / kNoiseFactor);
    if (first.steps > 0 && first.steps < job.steps) {
      const auto dump = again(first.steps);
      if (!dump) return;
      const Moves fewer{reference.initial, first.after, first.noise,
                        [&]() -> const std::vector<double>& { return first.rounded; }};
      compare(fmt::format("float32 after {} step{}", first.steps, first.steps == 1 ? "" : "s"), *dump, fewer,
              measure_all_moves(job, *dump, fewer, t.moved32));
      return;
    }
  }
  compare("float32 parameters", state, moves, all);
}

void compare_steps32(const GateJob& job, const Reference& reference, const Answers32& answers,
                     const std::function<std::optional<Dump>(int64_t)>& again, Parity& parity,
                     const Tolerances& t) {
  const std::vector<double>& losses = answers.losses.losses;
  parity.losses = losses;
  parity.first_step_cold_ns = answers.losses.first_ns;
  {
    Comparisons comparisons(parity, "float32 losses", t.losses32_first);
    double amplified = 0;  // by the largest step so far
    for (size_t k = 0; k < losses.size(); ++k) {
      const double error = relative(losses[k], reference.losses32[k]);
      double allowed = t.losses32_first + static_cast<double>(k) * t.losses32_growth;
      if (error > allowed && k > 0) {
        const RoundedPath& path = rounded_path(job, reference);
        for (size_t i = 0; i <= k && i < path.losses.size(); ++i)
          amplified = std::max(amplified, path.losses[i]);
        allowed = std::max(allowed, std::min(kNoiseFactor * amplified, kMostAmplified));
      }
      parity.loss_limits.push_back(allowed);
      comparisons.compare(fmt::format("float32 loss of step {}", k), error, allowed);
    }
  }
  if (answers.state) compare_parameters32(job, reference, *answers.state, again, parity, t);
  if (answers.batches) check_batches(reference, *answers.batches, parity);
}

}  // namespace

Proof::Proof(const ContenderStart& contender)
    : parity{.contender = contender.contender.id}, contender_(contender) {
  start();
}

void Proof::start() {
  worker_ = Worker::start(contender_.worker);
  imported_ = worker_->import();
  if (!worker_->ok()) parity.failure = worker_->failure();
  if (imported_) parity.effective = imported_->effective, parity.versions = imported_->versions;
}

void Proof::float64(const GateJob& job, const Reference& reference, const Tolerances& tolerances) {
  if (parity.failure) return;
  const bool train = job.training.track == ir::Track::kEqualised;
  job64_ = &job, reference64_ = &reference;
  prove_in(*worker_, job, reference, contender_, train, parity, tolerances);
}

void Proof::float32(const GateJob& job, const Reference& reference, const Tolerances& tolerances,
                    const std::function<bool()>& wait) {
  if (parity.failure) return;
  if (!worker_->ok()) start();  // a layer was to be found, and the worker could not tell its output
  if (parity.failure) return;
  parity.effective = imported_->effective;
  const bool predicts = job.training.predicts(), right = parity.diverges_at.empty();
  const auto build = [&] {
    worker_->build({.script = contender_.script,
                    .weights = reference.initial_file,
                    .data = job.data,
                    .layout = contender_.layout,
                    .dropout = predicts || !has_dropout(job.workload),
                    .scenario = job.training.scenario},
                   parity.effective);
  };
  const auto again = [&](int64_t steps) {
    build();
    return worker_->losses(steps) ? state_of(*worker_, job, contender_, parity) : std::nullopt;
  };
  build();
  std::optional<Answers32> answers;
  if (!predicts) answers = ask_steps32(*worker_, job, contender_, parity);
  if (wait && !wait()) return;
  if (predicts) prove_prediction32(*worker_, job, reference, contender_, parity, tolerances);
  if (answers) {
    std::optional<Answer> step, elsewhere;
    if (answers->step) step = read_answer(job.workload, *answers->step);
    if (step && job64_ != nullptr && zeros_explain(job, reference, *step, tolerances)) {
      build_at_gate_weights(*worker_, *job64_, *reference64_, contender_, "float32");
      const fs::path out = job.folder / (contender_.script.stem().string() + ".parity32.safetensors");
      if (const auto dump = proof_of(*worker_, *job64_, {}, out, parity))
        elsewhere = read_answer(job64_->workload, *dump);
    }
    compare_steps32(job, reference, *answers, again, parity, tolerances);
    if (step) compare_output32(job, reference, *step, parity, tolerances);
    if (elsewhere) {
      compare_gradients32(*job64_, reference64_->at, *elsewhere, nullptr, parity, tolerances);
    } else if (step) {
      compare_gradients32(job, reference.at32, *step, &reference, parity, tolerances);
    }
  }
  if (!predicts && right && !parity.diverges_at.empty() && parity.explanation.empty())
    parity.explanation = explain_float32(job, reference, parity.diverges_at);
  if (!worker_->ok()) parity.failure = worker_->failure();
  if (!parity.failure && !predicts) prove_dropout(*worker_, job, reference, contender_, parity);
}

}  // namespace bakeoff
