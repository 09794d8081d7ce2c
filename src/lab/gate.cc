#include "lab/gate.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/files.h"
#include "lab/batch_hashes.h"
#include "lab/explain.h"
#include "lab/gate_variants.h"
#include "lab/inputs.h"
#include "referee/init.h"
#include "referee/optimizer.h"
#include "referee/train.h"
#include "tensor/safetensors.h"

namespace bakeoff::lab {
namespace {

using tensor::Tensor;

constexpr double kLeast = 1e-300;  // where everything is zero, zero is right

double relative(double value, double reference) {
  if (!std::isfinite(value)) return std::numeric_limits<double>::infinity();
  return std::abs(value - reference) / std::max(std::abs(reference), 1e-300);
}

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

// Collects the comparisons of one group; keeps the worst and remembers the first that diverges anywhere.
class Group {
 public:
  Group(Parity& parity, std::string what, double tolerance)
      : parity_(parity), check_{.what = std::move(what), .tolerance = tolerance, .passed = true} {}
  ~Group() {
    if (!check_.tensor.empty()) parity_.checks.push_back(check_);
  }
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;

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

// Outputs of layers that the contender offered, in graph order.
void compare_activations(const GateJob& job, const Dump& dump, const Reference& reference, Group& group,
                         const Tolerances& tolerances) {
  for (size_t n = 0; n < job.workload.nodes.size(); ++n) {
    const ir::Node& node = job.workload.nodes[n];
    if (node.params.empty()) continue;
    const std::string& parameter = job.workload.parameters[static_cast<size_t>(node.params[0].param)].name;
    const std::string layer = parameter.substr(0, parameter.rfind('.'));
    const std::string name = "activation/" + layer;
    if (dump.file.find(name) == nullptr) continue;
    const auto value = static_cast<size_t>(job.workload.output_of(static_cast<int>(n)));
    const auto* expected = std::get_if<Tensor>(&reference.at.activations[value]);
    if (expected == nullptr || dump.get(name).shape != expected->shape) continue;
    group.compare("output of " + layer, tensor::relative_distance(dump.get(name), *expected),
                  tolerances.output64);
  }
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

void compare_gradients(const GateJob& job, const Reference& reference, const Answer& answer, Group& group) {
  double largest = 0;
  for (const Tensor& g : reference.at.gradients) largest = std::max(largest, tensor::norm(g));
  for (size_t id = 0; id < answer.gradients.size(); ++id) {
    if (!ir::trainable(job.workload.parameters[id])) continue;
    const Tensor& expected = reference.at.gradients[id];
    const double scale = std::max({tensor::norm(expected), 1e-6 * largest, kLeast});
    group.compare("grad/" + job.workload.parameters[id].name,
                  distance(answer.gradients[id], expected) / scale);
  }
}

void compare_updates(const GateJob& job, const Reference& reference, const Answer& answer, Group& group) {
  double largest = 0;
  for (size_t id = 0; id < reference.updated.size(); ++id) {
    largest = std::max(largest, tensor::norm(difference(reference.updated[id], reference.weights[id])));
  }
  for (size_t id = 0; id < answer.updated.size(); ++id) {
    if (!ir::trainable(job.workload.parameters[id])) continue;
    const double step = tensor::norm(difference(reference.updated[id], reference.weights[id]));
    // A step is the difference of two parameters: it is known to the parameters' own rounding.
    const double scale = std::max({step, 1e-6 * largest, 1e-7 * tensor::norm(reference.weights[id]), kLeast});
    group.compare("update/" + job.workload.parameters[id].name,
                  distance(answer.updated[id], reference.updated[id]) / scale);
  }
}

void compare_buffers(const GateJob& job, const Reference& reference, const Answer& answer, bool unbiased,
                     Group& group) {
  const auto& expected = unbiased ? reference.at.running.unbiased : reference.at.running.biased;
  for (size_t id = 0; id < answer.buffers.size(); ++id) {
    if (ir::trainable(job.workload.parameters[id])) continue;
    const double scale = std::max(tensor::norm(expected[id]), 1e-6);
    group.compare("buffer/" + job.workload.parameters[id].name,
                  distance(answer.buffers[id], expected[id]) / scale);
  }
}

// What a known mistake would have given: BatchNorm with the statistics of the batch.
std::string explain_prediction(const GateJob& job, const Reference& reference, const Answer& answer) {
  const auto training = referee::evaluate(job.workload, reference.weights, reference.batch,
                                          {.train = true, .gradients = false});
  const bool same =
      training && tensor::relative_distance(answer.prediction, training->prediction) <= Tolerances().output64;
  return same ? "matches: the model in training mode, BatchNorm with the statistics of the batch" : "";
}

void compare_prediction(const GateJob& job, const Reference& reference, const Dump& dump,
                        const Answer& answer, Parity& parity, const Tolerances& t) {
  Group group(parity, "float64 prediction", t.output64);
  compare_activations(job, dump, reference, group, t);
  group.compare("prediction", tensor::relative_distance(answer.prediction, reference.at.prediction));
  if (!group.passed()) parity.explanation = explain_prediction(job, reference, answer);
}

void compare_all(const GateJob& job, const Reference& reference, const GateContender& contender,
                 const Dump& dump, const Answer& answer, Parity& parity, const Tolerances& t) {
  bool model = true, update = true, buffers = true;
  {
    Group group(parity, "float64 prediction", t.output64);
    compare_activations(job, dump, reference, group, t);
    group.compare("prediction", tensor::relative_distance(answer.prediction, reference.at.prediction));
    model = group.passed();
  }
  {
    Group group(parity, "float64 loss", t.loss64);
    group.compare("loss", relative(answer.loss, reference.at.loss));
    model = model && group.passed();
  }
  {
    Group group(parity, "float64 gradients", t.gradient64);
    compare_gradients(job, reference, answer, group);
    model = model && group.passed();
  }
  {
    Group group(parity, "optimizer update", t.update64);
    compare_updates(job, reference, answer, group);
    update = group.passed();
  }
  {
    Group group(parity, "running statistics", t.buffer64);
    compare_buffers(job, reference, answer, contender.unbiased_running_var, group);
    buffers = group.passed();
  }
  std::vector<std::string> why;
  if (!model) why.push_back(explain_model(job, reference, answer));
  if (!update) why.push_back(explain_update(job, reference, answer));
  if (!buffers) why.push_back(explain_buffers(job, reference, answer, contender.unbiased_running_var));
  std::erase(why, "");
  parity.explanation = fmt::format("{}", fmt::join(why, "; "));
}

// By a worker that has built the contender as it will be timed.
void prove_prediction32(Worker& worker, const GateJob& job, const Reference& reference,
                        const GateContender& contender, Parity& parity, const Tolerances& tolerances) {
  const fs::path out = job.folder / (contender.script.stem().string() + ".parity32.safetensors");
  const auto first = worker.run(1, "first step");
  if (!first || !worker.parity(0, job.training.batch, {}, out)) {
    parity.failure = worker.failure();
    return;
  }
  parity.first_step_cold_ns = first->burst.ns;
  auto file = tensor::SafetensorsFile::open(out);
  if (!file) {
    parity.failure = Failure{"parity", file.error().message, {}};
    return;
  }
  const Tensor prediction = Dump{std::move(*file)}.get("output");
  Group group(parity, "float32 prediction", tolerances.output32);
  group.compare("prediction", tensor::relative_distance(prediction, reference.prediction32));
  std::error_code ignored;
  fs::remove(out, ignored);
}

}  // namespace

bool keeps_compilations(const Contender& contender) {
  const auto compile = contender.settings.find("compile");
  if (compile != contender.settings.end() && compile->second != "off") return true;
  const auto backend = contender.settings.find("backend");
  const auto jit = contender.settings.find("jit_compile");
  return backend != contender.settings.end() && backend->second == "torch" &&
         jit != contender.settings.end() && jit->second == "true";
}

void prove_in(Worker& worker, const GateJob& job, const Reference& reference, const GateContender& contender,
              bool train, Parity& parity, const Tolerances& tolerances) {
  const fs::path out = job.folder / (contender.script.stem().string() + ".parity.safetensors");
  Texts effective64;
  worker.build({.script = contender.script,
                .weights = reference.weights_file,
                .data = job.data,
                .layout = contender.layout,
                .dropout = job.training.predicts(),  // which must be without effect there
                .predict = job.training.predicts()},
               effective64);
  const fs::path gradients = job.training.predicts() ? fs::path() : reference.gradients_file;
  if (!worker.parity(0, job.training.batch, gradients, out)) {
    parity.failure = worker.failure();
    return;
  }
  auto file = tensor::SafetensorsFile::open(out);
  if (!file) {
    parity.failure = Failure{"parity", file.error().message, {}};
    return;
  }
  const Dump dump{std::move(*file)};
  Answer answer = read_answer(job.workload, dump);
  if (job.training.predicts()) {
    compare_prediction(job, reference, dump, answer, parity, tolerances);
  } else {
    compare_all(job, reference, contender, dump, answer, parity, tolerances);
  }
  std::error_code ignored;
  fs::remove(out, ignored);
  if (!train || job.training.predicts()) return;
  const auto losses = worker.losses(kSteps64);
  if (!losses) {
    parity.failure = worker.failure();
    return;
  }
  answer.losses64 = losses->losses;
  Group group(parity, "float64 training steps", tolerances.losses64);
  for (size_t k = 0; k < losses->losses.size(); ++k) {
    group.compare(fmt::format("loss of step {}", k), relative(losses->losses[k], reference.losses64[k]));
  }
  if (!group.passed() && parity.explanation.empty())
    parity.explanation = explain_losses(job, reference, answer);
}

Parity prove_float64(const GateJob& job, const Reference& reference, const GateContender& contender,
                     const Tolerances& tolerances) {
  Parity parity{.contender = contender.contender.id};
  WorkerSpec spec = contender.worker;
  spec.dtype = "float64";
  const auto worker = Worker::start(spec);
  if (const auto imported = worker->import()) {
    parity.effective = imported->effective, parity.versions = imported->versions;
  }
  // Compiling the float64 step anew would cost such a one 20 s and prove nothing more.
  const bool train = job.training.track == ir::Track::kEqualised && !keeps_compilations(contender.contender);
  prove_in(*worker, job, reference, contender, train, parity, tolerances);
  worker->close();
  return parity;
}

void prove_float32(const GateJob& job, const Reference& reference, const GateContender& contender,
                   Parity& parity, const Tolerances& tolerances) {
  WorkerSpec spec = contender.worker;
  spec.dtype = "float32";
  const auto worker = Worker::start(spec);
  const auto imported = worker->import();
  if (imported) parity.effective = imported->effective, parity.versions = imported->versions;
  worker->build({.script = contender.script,
                 .weights = reference.initial_file,
                 .data = job.data,
                 .layout = contender.layout,
                 .dropout = job.training.predicts(),
                 .predict = job.training.predicts()},
                parity.effective);
  if (job.training.predicts()) {
    prove_prediction32(*worker, job, reference, contender, parity, tolerances);
  } else if (const auto losses = worker->losses(job.steps)) {
    parity.losses = losses->losses;
    parity.first_step_cold_ns = losses->first_ns;
    Group group(parity, "float32 losses", tolerances.losses32_first);
    for (size_t k = 0; k < losses->losses.size(); ++k) {
      group.compare(fmt::format("float32 loss of step {}", k),
                    relative(losses->losses[k], reference.losses32[k]),
                    tolerances.losses32_first + static_cast<double>(k) * tolerances.losses32_growth);
    }
    if (!is_variant(contender)) prove_batches(*worker, job, reference, parity);
    if (!worker->ok()) parity.failure = worker->failure();
  } else {
    parity.failure = worker->failure();
  }
  worker->close();
}

}  // namespace bakeoff::lab
