#include "lab/gate_dropout.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <optional>

#include "base/files.h"
#include "ir/verify.h"
#include "lab/gate.h"
#include "lab/inputs.h"
#include "tensor/rng.h"
#include "tensor/safetensors.h"

namespace bakeoff::lab {
namespace {

using tensor::Tensor;

constexpr int64_t kDirections = 8;
constexpr int64_t kDraws = 256;        // rows that a contender draws at least, where eight steps suffice
constexpr int64_t kGradientSteps = 6;  // of the referee
constexpr double kInfinity = std::numeric_limits<double>::infinity();
// In standard errors. A normal deviate is beyond 6 once in 5e8; a mean of a few hundred squares has a longer
// tail. The spread between steps is known from few of them, and gradients vary along few directions.
constexpr double kLimit = 7;
constexpr double kGradientLimit = 8;

// Sums of powers.
class Sample {
 public:
  void add(double x) {
    ++count_;
    const double d = x - mean_;
    mean_ += d / count_;
    squares_ += d * (x - mean_);
  }
  Drawn drawn() const { return {mean_, count_ > 1 ? squares_ / (count_ - 1) : 0, count_}; }

 private:
  double count_ = 0, mean_ = 0, squares_ = 0;
};

// How many standard errors two means are apart. Rounding in float32 stands for a spread that is zero.
double deviation(const Drawn& ours, const Drawn& theirs) {
  if (!std::isfinite(theirs.mean) || !std::isfinite(theirs.variance)) return kInfinity;
  const double rounding = 1e-4 * std::max(std::abs(ours.mean), 1e-12);
  const double error = ours.variance / ours.count + theirs.variance / theirs.count + rounding * rounding;
  return std::abs(ours.mean - theirs.mean) / std::sqrt(error);
}

// Row `row` of a prediction, along fixed directions of random signs: kDirections numbers. The same directions
// for a workload, whoever computed the prediction.
std::vector<double> along_directions(const Tensor& prediction, int64_t rows, int64_t row) {
  const size_t size = prediction.data.size() / static_cast<size_t>(rows);
  const double* const x = prediction.data.data() + static_cast<size_t>(row) * size;
  std::vector<double> sums(kDirections, 0.0);
  for (size_t i = 0; i < size; ++i) {
    const uint64_t bits = tensor::mix(i + 1);
    for (size_t d = 0; d < sums.size(); ++d) sums[d] += ((bits >> d) & 1) != 0 ? x[i] : -x[i];
  }
  for (double& sum : sums) sum /= std::sqrt(static_cast<double>(size));
  return sums;
}

// The loss of each row by itself; empty where the loss is not computed from a prediction and an input.
std::vector<double> losses_of_rows(const ir::Workload& workload, const referee::Inputs& batch,
                                   const Tensor& prediction) {
  const auto types = ir::infer(workload);
  if (!types || workload.computes_target()) return {};
  const ir::Node& loss = workload.nodes.back();
  const auto target = static_cast<size_t>(loss.inputs[1]);
  ir::Workload alone;
  ir::Type type = (*types)[static_cast<size_t>(workload.prediction())];
  alone.inputs = {{"prediction", type}, {"target", workload.inputs[target].type}};
  ir::Node node = loss;
  node.inputs = {0, 1};
  alone.nodes = {node};
  if (!ir::infer(alone)) return {};
  const int64_t rows = tensor::shape_of(batch[target])[0];
  const auto row_of = [&](const auto& all, int64_t row) {
    auto one = all;
    const size_t size = all.data.size() / static_cast<size_t>(rows);
    one.shape[0] = 1;
    const auto begin = all.data.begin() + static_cast<long>(static_cast<size_t>(row) * size);
    one.data.assign(begin, begin + static_cast<long>(size));
    return tensor::AnyTensor(std::move(one));
  };
  if (prediction.shape.empty() || prediction.shape[0] != rows) return {};
  std::vector<double> losses;
  for (int64_t row = 0; row < rows; ++row) {
    const auto one = std::visit([&](const auto& all) { return row_of(all, row); }, batch[target]);
    const auto e = referee::evaluate(alone, {}, {row_of(prediction, row), one}, {.gradients = false});
    if (!e) return {};
    losses.push_back(e->loss);
  }
  return losses;
}

// By distinct row and direction.
struct Predictions {
  std::vector<std::vector<Sample>> directions;
  std::vector<std::pair<int64_t, std::vector<double>>> rows;  // distinct row, its numbers

  explicit Predictions(int64_t distinct) : directions(static_cast<size_t>(distinct), std::vector<Sample>(kDirections)) {}
  void add(const Tensor& prediction, int64_t batch) {
    const auto distinct = static_cast<int64_t>(directions.size());
    for (int64_t row = 0; row < batch; ++row) {
      auto numbers = along_directions(prediction, batch, row);
      for (size_t d = 0; d < numbers.size(); ++d)
        directions[static_cast<size_t>(row % distinct)][d].add(numbers[d]);
      rows.emplace_back(row % distinct, std::move(numbers));
    }
  }
  // Mean squared distance from the referee's mean, in units of its spread.
  Drawn spread(const std::vector<std::vector<Drawn>>& reference) const {
    Sample all;
    for (const auto& [distinct, numbers] : rows) {
      double sum = 0;
      for (size_t d = 0; d < numbers.size(); ++d) {
        const Drawn& r = reference[static_cast<size_t>(distinct)][d];
        sum += (numbers[d] - r.mean) * (numbers[d] - r.mean) / std::max(r.variance, 1e-300);
      }
      all.add(sum / static_cast<double>(numbers.size()));
    }
    return all.drawn();
  }
};

// The first rows of the data, repeated.
Status write_rows(const GateJob& job, int64_t distinct, const fs::path& file) {
  TRY(const auto data, tensor::SafetensorsFile::open(job.data));
  tensor::NamedTensors named;
  for (const auto& entry : data.entries()) {
    TRY(const auto bytes, data.bytes(entry.name));
    if (entry.shape.empty() || entry.shape[0] < 1) continue;
    const size_t size = bytes.size() / static_cast<size_t>(entry.shape[0]);
    tensor::RawTensor raw{.dtype = entry.dtype, .shape = entry.shape, .bytes = {}};
    raw.shape[0] = job.training.batch;
    for (int64_t row = 0; row < job.training.batch; ++row)
      raw.bytes += bytes.substr(static_cast<size_t>(row % distinct) * size, size);
    named.emplace_back(entry.name, std::move(raw));
  }
  return tensor::write_safetensors(file, named);
}

double squared_distance(const Tensor& a, const Tensor& b) {
  if (a.shape != b.shape || a.data.size() != b.data.size()) return kInfinity;
  double sum = 0;
  for (size_t i = 0; i < a.data.size(); ++i) sum += (a.data[i] - b.data[i]) * (a.data[i] - b.data[i]);
  return std::isfinite(sum) ? sum : kInfinity;
}

// Adds b / count.
void add_share(Tensor& a, const Tensor& b, double count) {
  if (a.data.empty()) a = tensor::zeros(b.shape);
  for (size_t i = 0; i < a.data.size() && i < b.data.size(); ++i) a.data[i] += b.data[i] / count;
}

struct ContenderDraws {
  std::optional<Predictions> predictions = {};
  Sample loss = {};
  std::vector<Tensor> outputs = {};  // the first two
  referee::Weights gradients = {};   // mean
  std::string shape = {};            // of a prediction that has another
};

bool take_draws(Worker& worker, const GateJob& job, const Reference& reference,
                const GateContender& contender, ContenderDraws& draws, Parity& parity) {
  const DropoutReference& r = reference.dropout;
  const fs::path out = job.folder / (contender.script.stem().string() + ".dropout.safetensors");
  Texts ignored;
  worker.build({.script = contender.script,
                .weights = reference.weights_file,
                .data = r.data,
                .layout = contender.layout},
               ignored);
  draws.predictions.emplace(r.distinct);
  draws.gradients.resize(job.workload.parameters.size());
  for (int64_t step = 0; step < r.steps; ++step) {
    if (!worker.parity(0, job.training.batch, {}, out)) {
      parity.failure = worker.failure();
      return false;
    }
    const auto file = tensor::SafetensorsFile::open(out);
    std::error_code code;
    fs::remove(out, code);
    if (!file) {
      parity.failure = Failure{"parity", file.error().message, {}};
      return false;
    }
    const auto get = [&](const std::string& name) {
      auto read = file->read(name);
      return read ? std::move(*read) : Tensor{};
    };
    Tensor output = get("output");
    const Tensor loss = get("loss");
    if (output.shape != reference.at.prediction.shape) {
      draws.shape = tensor::to_text(output.shape);
      return true;
    }
    draws.predictions->add(output, job.training.batch);
    draws.loss.add(loss.data.empty() ? std::nan("") : loss.data[0]);
    if (draws.outputs.size() < 2) draws.outputs.push_back(std::move(output));
    for (size_t p = 0; p < draws.gradients.size(); ++p) {
      if (ir::trainable(job.workload.parameters[p]))
        add_share(draws.gradients[p], get("grad/" + job.workload.parameters[p].name),
                  static_cast<double>(r.steps));
    }
  }
  return true;
}

// Collects the worst of all comparisons, in shares of their limits.
struct Worst {
  ParityCheck check{.what = "dropout", .tolerance = kLimit, .passed = true};
  void compare(const std::string& what, double error, double limit) {
    if (std::isnan(error)) error = kInfinity;
    if (check.tensor.empty() || error / limit > check.error / check.tolerance)
      check.tensor = what, check.error = error, check.tolerance = limit;
    check.passed = check.passed && error <= limit;
  }
};

double gradients_apart(const GateJob& job, const DropoutReference& r, const referee::Weights& seen,
                       std::string& where) {
  double largest = 0, worst = 0;
  for (const Tensor& g : r.gradients) largest = std::max(largest, tensor::norm(g));
  const double share = 1.0 / static_cast<double>(r.steps) + 1.0 / static_cast<double>(r.gradient_steps);
  for (size_t p = 0; p < r.gradients.size(); ++p) {
    if (!ir::trainable(job.workload.parameters[p])) continue;
    const double rounding = 1e-3 * std::max(tensor::norm(r.gradients[p]), 1e-3 * largest);
    const double expected = share * r.gradient_squares[p] + rounding * rounding;
    const double off = std::sqrt(squared_distance(seen[p], r.gradients[p]) / std::max(expected, 1e-300));
    if (off > worst) worst = off, where = job.workload.parameters[p].name;
  }
  return worst;
}

std::string explain_draws(const GateJob& job, const DropoutReference& r, const ContenderDraws& draws,
                          const Drawn& spread, const Worst& worst) {
  // Rows that differ in their masks alone.
  const Tensor& first = draws.outputs[0];
  const size_t size = first.data.size() / static_cast<size_t>(job.training.batch);
  bool alike = true;
  for (size_t i = 0; i < first.data.size() && alike; ++i) {
    const double twin = first.data[i % (size * static_cast<size_t>(r.distinct))];
    alike = std::abs(first.data[i] - twin) <= 1e-5 * std::max(1.0, std::abs(twin));
  }
  if (alike) return "no dropout, or one mask for all rows: rows that differ in their masks alone are predicted alike";
  if (draws.outputs.size() > 1 && draws.outputs[0] == draws.outputs[1])
    return "two training steps drew the same masks";
  if (worst.check.tensor.find("spread") != std::string::npos) {
    return fmt::format("the masks spread predictions {:.2f} times as far as the recipe's: another rate, another "
                       "place, or another scale of what is kept",
                       std::sqrt(spread.mean / std::max(r.spread.mean, 1e-300)));
  }
  return "";
}

}  // namespace

bool has_dropout(const ir::Workload& workload) {
  return std::any_of(workload.nodes.begin(), workload.nodes.end(), [](const ir::Node& node) {
    return node.op == ir::Op::kDropout && node.real("rate") > 0;
  });
}

Result<DropoutReference> draw_dropout(const GateJob& job, const referee::Weights& weights) {
  DropoutReference r;
  const int64_t batch = job.training.batch;
  if (!has_dropout(job.workload) || batch > job.rows) return r;
  r.distinct = batch >= 64 ? 4 : batch >= 16 ? 2 : 1;
  r.steps = std::clamp<int64_t>((kDraws + batch - 1) / batch, 2, 8);
  const fs::path file = job.folder / "gate_dropout.safetensors";
  CHECK_OK(write_rows(job, r.distinct, file));
  TRY(const auto inputs, read_inputs(job.workload, file, job.training.input_divisor, 0, batch));
  Predictions predictions(r.distinct);
  Sample loss;
  const int64_t steps = std::max(kGradientSteps, std::min<int64_t>((2 * kDraws + batch - 1) / batch, 16));
  std::vector<referee::Weights> gradients;
  for (int64_t step = 0; step < steps; ++step) {
    const referee::DropoutMasks masks{.seed = job.training.seed, .step = static_cast<uint64_t>(step)};
    TRY(auto e, referee::evaluate(job.workload, weights, inputs,
                                  {.gradients = step < kGradientSteps, .dropout = masks}));
    predictions.add(e.prediction, batch);
    for (const double one : losses_of_rows(job.workload, inputs, e.prediction)) loss.add(one);
    if (step < kGradientSteps) gradients.push_back(std::move(e.gradients));
  }
  for (const auto& row : predictions.directions) {
    auto& made = r.directions.emplace_back();
    for (const Sample& sample : row) made.push_back(sample.drawn());
  }
  r.spread = predictions.spread(r.directions);
  r.loss = loss.drawn();
  r.gradients.resize(weights.size());
  r.gradient_squares.assign(weights.size(), 0);
  r.gradient_steps = kGradientSteps;
  for (size_t p = 0; p < weights.size(); ++p) {
    if (!ir::trainable(job.workload.parameters[p])) continue;
    for (const auto& one : gradients) add_share(r.gradients[p], one[p], kGradientSteps);
    for (const auto& one : gradients)
      r.gradient_squares[p] += squared_distance(one[p], r.gradients[p]) / (kGradientSteps - 1);
  }
  r.data = file;
  return r;
}

void prove_dropout(Worker& worker, const GateJob& job, const Reference& reference,
                   const GateContender& contender, Parity& parity) {
  const DropoutReference& r = reference.dropout;
  if (r.data.empty()) return;
  ContenderDraws draws;
  if (!take_draws(worker, job, reference, contender, draws, parity)) return;
  Worst worst;
  std::string explanation;
  if (!draws.shape.empty()) {
    worst.compare("dropout: prediction", kInfinity, kLimit);
    explanation = fmt::format("with dropout the prediction has shape {}, the recipe's has {}", draws.shape,
                              tensor::to_text(reference.at.prediction.shape));
  } else {
    const bool same = draws.outputs.size() > 1 && draws.outputs[0] == draws.outputs[1];
    worst.compare("dropout: masks of two steps", same ? kInfinity : 0, kLimit);
    for (size_t row = 0; row < r.directions.size(); ++row) {
      for (size_t d = 0; d < r.directions[row].size(); ++d)
        worst.compare("dropout: mean of predictions",
                      deviation(r.directions[row][d], draws.predictions->directions[row][d].drawn()), kLimit);
    }
    const Drawn spread = draws.predictions->spread(r.directions);
    worst.compare("dropout: spread of predictions", deviation(r.spread, spread), kLimit);
    if (r.loss.count > 0) {
      // A step's loss is the mean over its rows.
      Drawn loss = draws.loss.drawn();
      loss.count *= static_cast<double>(job.training.batch);
      loss.variance = r.loss.variance;
      worst.compare("dropout: loss", deviation(r.loss, loss), kLimit);
    }
    std::string where;
    const double apart = gradients_apart(job, r, draws.gradients, where);
    worst.compare("dropout: grad/" + where, apart, kGradientLimit);
    if (!worst.check.passed) explanation = explain_draws(job, r, draws, spread, worst);
  }
  parity.checks.push_back(worst.check);
  if (worst.check.passed || !parity.diverges_at.empty()) return;
  parity.diverges_at = worst.check.tensor;
  parity.divergence = worst.check.error;
  if (parity.explanation.empty()) parity.explanation = explanation;
}

}  // namespace bakeoff::lab
