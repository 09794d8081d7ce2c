#include "parity/proof_variants.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/files.h"
#include "data/batch_hashes.h"
#include "emit/emit.h"
#include "evidence/precision.h"
#include "referee/generation.h"
#include "tensor/safetensors.h"

namespace bakeoff {
namespace {

using tensor::Tensor;

// Limits beyond which rounding is no explanation. Gradients through the batch norms of a ResNet-50 differ by
// 0.48 to 0.58 in bfloat16, in every framework, and their norm by 3%. Gradients of another batch differ by
// about 1.4, missing gradients by 1.0, and a forgotten scale changes the norm.
constexpr double kFarLogits = 0.1, kFarLoss = 0.1, kFarGradients = 0.8, kFarNorm = 0.25, kFarLosses = 0.25;
constexpr const char* kNorm = " gradient norm";

std::string group_of(const ContenderStart& contender) {
  return emit::precision_group(contender.contender.settings);
}

// What a worker reports of one batch at the gate's weights. What it did not report is missing.
struct Step {
  Tensor logits = {}, words = {};  // of one that generates
  std::optional<double> loss = {};
  std::vector<Tensor> gradients = {};  // by ParamId
};

Step step_of(const GateJob& job, const tensor::SafetensorsFile& file) {
  const auto tensor = [&](const std::string& name) {
    auto read = file.read(name);
    return read ? std::move(*read) : Tensor{};
  };
  Step step;
  if (const Tensor loss = tensor("loss"); !loss.data.empty()) step.loss = loss.data[0];
  if (job.training.generates()) step.logits = tensor("output"), step.words = tensor("words");
  for (const ir::Parameter& p : job.workload.parameters) step.gradients.push_back(tensor("grad/" + p.name));
  return step;
}

// All gradients as one vector: the norm of the difference, and the difference of the norms, both divided by
// the norm in float32.
struct Apart {
  double vector = std::numeric_limits<double>::infinity();
  double norm = std::numeric_limits<double>::infinity();
};

Apart apart_of_gradients(const GateJob& job, const std::vector<Tensor>& twin,
                         const std::vector<Tensor>& variant) {
  double apart = 0, all = 0, own = 0;
  for (size_t id = 0; id < job.workload.parameters.size(); ++id) {
    if (!ir::trainable(job.workload.parameters[id])) continue;
    const Tensor &expected = twin[id], &seen = variant[id];
    if (seen.data.size() != expected.data.size() || seen.shape != expected.shape || seen.data.empty())
      return {};
    for (size_t i = 0; i < expected.data.size(); ++i) {
      const double d = seen.data[i] - expected.data[i];
      apart += d * d;
      all += expected.data[i] * expected.data[i];
      own += seen.data[i] * seen.data[i];
    }
  }
  all = std::max(all, 1e-300);
  if (!std::isfinite(apart)) return {};
  return {std::sqrt(apart / all), relative(std::sqrt(own), std::sqrt(all))};
}

void add(Parity& parity, const ParityCheck& check) {
  parity.checks.push_back(check);
  parity.checks.back().passed = check.error <= check.tolerance;
  if (parity.checks.back().passed || !parity.diverges_at.empty()) return;
  parity.diverges_at = check.what;
  parity.divergence = check.error;
  parity.explanation = "further from float32 than rounding explains";
}

// One batch at the gate's weights, without dropout. Nothing where the worker fails, or its file.
std::optional<Step> take_step(Worker& worker, const GateJob& job, const Reference& reference,
                              const ContenderStart& contender, Parity& parity) {
  const fs::path out = job.folder / (contender.script.stem().string() + ".variant.safetensors");
  Texts effective;
  worker.build({.script = contender.script,
                .weights = reference.weights_file,
                .data = job.data,
                .layout = contender.layout,
                .dropout = !has_dropout(job.workload),
                .scenario = job.training.scenario},
               effective);
  if (job.training.generates()) {
    const auto first = worker.run(1, Stage::kFirstStep);
    if (!first) return std::nullopt;
    parity.first_step_cold_ns = first->burst.ns;
    parity.effective = effective;
  }
  if (!worker.parity(0, job.training.batch, {}, out)) return std::nullopt;
  const auto file = tensor::SafetensorsFile::open(out);
  if (!file) {
    parity.failure = Failure{Stage::kParity, file.error().message, {}};
    return std::nullopt;
  }
  const Step step = step_of(job, *file);
  std::error_code code;
  fs::remove(out, code);
  return step;
}

// `loss` and `gradients`: those of the float32 counterpart.
void compare_step(const GateJob& job, const std::string& group, std::optional<double> loss,
                  const std::vector<Tensor>& gradients, const Step& variant, Parity& parity) {
  const bool losses = loss && variant.loss;
  add(parity, {.what = group + kLoss,
               .tensor = kAgainst,
               .error = losses ? relative(*variant.loss, *loss) : std::numeric_limits<double>::infinity(),
               .tolerance = kFarLoss});
  const Apart apart = apart_of_gradients(job, gradients, variant.gradients);
  add(parity,
      {.what = group + kGradients, .tensor = kAgainst, .error = apart.vector, .tolerance = kFarGradients});
  add(parity, {.what = group + kNorm, .tensor = kAgainst, .error = apart.norm, .tolerance = kFarNorm});
}

// The two largest logits of a row may each be as far off as all are.
void compare_answers(const GateJob& job, const Reference& reference, const std::string& group,
                     const Step& variant, Parity& parity) {
  const double apart = tensor::relative_distance(variant.logits, reference.at.prediction);
  add(parity, {.what = group + kLogits, .tensor = kAgainst, .error = apart, .tolerance = kFarLogits});
  const std::vector<int64_t> words(variant.words.data.begin(), variant.words.data.end());
  const auto gap =
      referee::greedy_gap(job.workload, reference.weights, reference.batch, words, job.training.generation);
  add(parity, {.what = group + " words",
               .tensor = "below the likeliest",
               .error = gap ? *gap : std::numeric_limits<double>::infinity(),
               .tolerance = 10 * std::min(apart, kFarLogits)});
}

// What the float32 counterpart computes from the gate's weights: as-is it need not be the model of the
// recipe.
std::optional<Step> step_of_twin(const GateJob& job, const Reference& reference,
                                 const ContenderStart& contender, Parity& parity) {
  const ContenderStart twin = twin_of(contender);
  const auto worker = Worker::start(twin.worker);
  worker->import();
  auto step = take_step(*worker, job, reference, twin, parity);
  if (!worker->ok()) parity.failure = worker->failure();
  return step;
}

// The first training steps, as they will be timed but without dropout, which every framework draws anew.
void compare_steps(Worker& worker, const GateJob& job, const Reference& reference,
                   const ContenderStart& contender, Parity& parity) {
  parity.effective.clear();
  worker.build({.script = contender.script,
                .weights = reference.initial_file,
                .data = job.data,
                .layout = contender.layout,
                .dropout = !has_dropout(job.workload)},
               parity.effective);
  const auto losses = worker.losses(job.steps);
  if (!losses) return;
  parity.losses = losses->losses;
  parity.first_step_cold_ns = losses->first_ns;
  ParityCheck worst{.what = group_of(contender) + " losses", .tolerance = kFarLosses};
  for (size_t k = 0; k < losses->losses.size(); ++k) {
    const double error = relative(losses->losses[k], reference.losses32[k]);
    if (!worst.tensor.empty() && error <= worst.error) continue;
    worst.tensor = fmt::format("loss of step {}", k);
    worst.error = error;
  }
  add(parity, worst);
  if (const auto seen = ask_batches(worker, job)) check_batches(reference, *seen, parity);
}

}  // namespace

double relative(double value, double reference) {
  if (!std::isfinite(value)) return std::numeric_limits<double>::infinity();
  return std::abs(value - reference) / std::max(std::abs(reference), 1e-300);
}

bool is_variant(const ContenderStart& contender) { return !contender.twin_script.empty(); }

std::optional<Failure> no_such_precision(const Contender& contender, const std::string& device) {
  if (!emit::precision_group(contender.settings).ends_with("+tf32") || !device.starts_with("cpu"))
    return std::nullopt;
  return Failure{Stage::kPrecision, "there is no TF32 on a CPU", {}};
}

ContenderStart twin_of(const ContenderStart& contender) {
  if (!is_variant(contender)) return contender;
  ContenderStart twin = contender;
  twin.script = contender.twin_script;
  twin.layout = contender.twin_layout;
  twin.worker.options = contender.twin_options;
  return twin;
}

std::optional<std::vector<std::string>> ask_batches(Worker& worker, const GateJob& job) {
  const int64_t count = batches_to_compare(job.workload, job.training, job.rows);
  return count == 0 ? std::nullopt : worker.batches(count, row_shapes(job.workload));
}

void check_batches(const Reference& reference, const std::vector<std::string>& seen, Parity& parity) {
  const bool last = !reference.batches_last.empty() && !seen.empty() && seen[0] == reference.batches_last[0];
  const ParityCheck check = compare_batches(last ? reference.batches_last : reference.batches, seen);
  parity.checks.push_back(check);
  if (check.passed) return;
  // This explains every other difference.
  parity.explanation =
      fmt::format("the input pipeline delivers other rows, or in another order, from {} on", check.tensor);
  if (!parity.diverges_at.empty()) return;
  parity.diverges_at = check.tensor;
  parity.divergence = check.error;
}

void prove_variant(const GateJob& job, const Reference& reference, const ContenderStart& contender,
                   Parity& parity) {
  if (!is_variant(contender) || parity.failure) return;
  const auto worker = Worker::start(contender.worker);
  const auto imported = worker->import();
  const std::string device =
      imported && imported->effective.contains("device") ? imported->effective.at("device") : "";
  parity.failure = no_such_precision(contender.contender, device);
  const bool as_is = job.training.track == ir::Track::kAsIs;
  std::optional<Step> twin;  // as-is only; otherwise the counterpart has proven to equal the reference
  if (as_is && !parity.failure) twin = step_of_twin(job, reference, contender, parity);
  if (!parity.failure) {
    const auto step = take_step(*worker, job, reference, contender, parity);
    const std::string group = group_of(contender);
    if (step && job.training.generates())
      compare_answers(job, reference, group, *step, parity);
    else if (step && twin)
      compare_step(job, group, twin->loss, twin->gradients, *step, parity);
    else if (step && !as_is)
      compare_step(job, group, reference.at.loss, reference.at.gradients, *step, parity);
    if (worker->ok() && !as_is && !job.training.generates())
      compare_steps(*worker, job, reference, contender, parity);
    if (!worker->ok()) parity.failure = worker->failure();
  }
  if (imported) parity.effective.insert(imported->effective.begin(), imported->effective.end());
}

ParityCheck compare_batches(const std::vector<std::string>& expected, const std::vector<std::string>& seen) {
  ParityCheck check{.what = "batches", .tensor = fmt::format("{} batches", expected.size()), .passed = true};
  for (size_t k = 0; k < expected.size(); ++k) {
    if (k < seen.size() && seen[k] == expected[k]) continue;
    check.tensor = fmt::format("batch {}", k);
    check.error = std::numeric_limits<double>::infinity();
    check.passed = false;
    return check;
  }
  return check;
}

}  // namespace bakeoff
