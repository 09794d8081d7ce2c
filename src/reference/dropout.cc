// Which function computes which statistic of the header:
//
//   predictions    along_directions (8 directions of random signs), Predictions (mean and spread);
//                  BatchNumbers (spread by position, rows of one step together)
//   loss           losses_of_rows
//   gradients      learn and gradients_apart (mean), gradient_spread, along_mean
//   statistics     learn_moves (mean move), moved (a step along it)
//   single rows    row_numbers: zeros, and shares of the squared norm
//
// Most statistics need the mean and variance of a direction, or of a gradient's element. draw_dropout()
// learns these from some steps of the referee, then measures further steps of the referee by them. Steps
// must not be measured by a mean that they are part of: their distances would be too small. The contender's
// steps are measured by the same learned numbers. So with right masks both sides are samples of one
// distribution, whatever error the learned numbers have.
//
// Worst keeps the comparison that uses the largest share of its limit. If that is more than half, the
// contender takes three times as many steps again, and all are compared: the statistic of wrong masks grows
// with the steps, that of chance does not.

#include "reference/dropout.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "base/files.h"
#include "data/inputs.h"
#include "ir/cost.h"
#include "ir/dropout.h"
#include "ir/verify.h"
#include "stats/distributions.h"
#include "tensor/rng.h"

namespace bakeoff {
namespace {

using tensor::Tensor;

constexpr size_t kDirections = 8;
constexpr int64_t kDraws = 256;  // rows that a contender draws at least, where eight steps suffice
// Of the referee at least, to learn what gradients are like, and as many again to compare with.
constexpr int64_t kLeastSteps = 6;
constexpr int64_t kManySteps = 32;   // from here on variances of a number of steps are compared too
constexpr double kArithmetic = 2e9;  // FLOPs that the steps of a contender may take, if there are kLeastSteps
constexpr double kElements = 2e7;    // and elements of gradients that travel
constexpr double kInfinity = std::numeric_limits<double>::infinity();
// In standard errors. A normal deviate is beyond 6 once in 5e8; a mean of a few hundred squares has a longer
// tail. The spread between steps is known from few of them, and gradients vary along few directions.
constexpr double kLimit = 7;
constexpr double kGradientLimit = 8;
// Where a number uses more than this share of its limit a contender takes this many times as many steps
// again.
constexpr double kSuspicious = 0.5;
constexpr int64_t kMore = 3;
constexpr double kRounding = 1e-4;  // of a number of a step in float32, relative
constexpr double kChance =
    1e-10;  // of a t-test; a proof holds some hundreds of them, of numbers with skewed tails

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
// for all predictions of a workload.
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

// The loss of each row by itself, of which a step's is the mean: where a step's is the sum, times the rows. Empty where
// the loss is not computed from a prediction and an input.
std::vector<double> losses_of_rows(const ir::Workload& workload, const referee::Inputs& batch,
                                   const Tensor& prediction) {
  const auto types = ir::infer(workload);
  const ir::Node& loss = workload.first_loss();
  if (!types || ir::ignore_index(loss) || ir::loss_terms(workload).size() > 1 ||
      &loss != &workload.nodes.back() || !workload.is_input(loss.inputs[1]))
    return {};
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
  const double parts = loss.word("reduction") == "sum" ? static_cast<double>(rows) : 1;
  std::vector<double> losses;
  for (int64_t row = 0; row < rows; ++row) {
    const auto one = std::visit([&](const auto& all) { return row_of(all, row); }, batch[target]);
    const auto e = referee::evaluate(alone, {}, {row_of(prediction, row), one}, {.gradients = false});
    if (!e) return {};
    losses.push_back(parts * e->loss);
  }
  return losses;
}

// By distinct row and direction.
struct Predictions {
  std::vector<std::vector<Sample>> directions;
  std::vector<std::pair<int64_t, std::vector<double>>> rows;  // distinct row, its numbers

  explicit Predictions(int64_t distinct)
      : directions(static_cast<size_t>(distinct), std::vector<Sample>(kDirections)) {}
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

double squared_distance(const Tensor& a, const Tensor& b) {
  if (a.shape != b.shape || a.data.size() != b.data.size()) return kInfinity;
  double sum = 0;
  for (size_t i = 0; i < a.data.size(); ++i) sum += (a.data[i] - b.data[i]) * (a.data[i] - b.data[i]);
  return std::isfinite(sum) ? sum : kInfinity;
}

// Share of elements that are zero, or as good as. `noise`: what rounding in float32 may leave of a zero. Where a whole
// gradient cancels in some rows, as in graph attention, nothing else is left of it.
double zeros(const Tensor& t, double noise) {
  const double size = static_cast<double>(std::max<size_t>(t.data.size(), 1));
  const double least = std::max(1e-6 * tensor::norm(t) / std::sqrt(size), noise);
  const auto count =
      std::count_if(t.data.begin(), t.data.end(), [&](double x) { return std::abs(x) <= least; });
  return static_cast<double>(count) / size;
}

// Mean squared distance from the mean, each element in units of its own variance. An element that hardly
// varies is held against the others.
double gradient_spread(const Tensor& seen, const Tensor& mean, const Tensor& variance) {
  if (seen.shape != mean.shape) return kInfinity;
  double all = 0;
  for (const double v : variance.data) all += v;
  const double least = std::max(0.1 * all / static_cast<double>(variance.data.size()), 1e-300);
  double sum = 0;
  for (size_t i = 0; i < seen.data.size(); ++i) {
    const double d = seen.data[i] - mean.data[i];
    sum += d * d / (variance.data[i] + least);
  }
  return sum / static_cast<double>(seen.data.size());
}

// Distance from the mean along the mean, in units of the mean.
double along_mean(const Tensor& seen, const Tensor& mean) {
  double product = 0, square = 0;
  for (size_t i = 0; i < seen.data.size() && i < mean.data.size(); ++i) {
    product += (seen.data[i] - mean.data[i]) * mean.data[i];
    square += mean.data[i] * mean.data[i];
  }
  return std::abs(product) / std::max(square, 1e-300);
}

// Trained parameters whose gradient is not zero by mathematics.
template <class Visit>
void for_each_moved(const ir::Workload& workload, const DropoutReference& r, const Visit& visit) {
  for (size_t p = 0; p < workload.parameters.size(); ++p) {
    if (ir::trainable(workload.parameters[p]) && !r.idle[p]) visit(p, "grad/" + workload.parameters[p].name);
  }
}

// Those whose gradient the masks change: a head of another loss may stand beside all dropout.
template <class Visit>
void for_each_drawn(const ir::Workload& workload, const DropoutReference& r, const Visit& visit) {
  for_each_moved(workload, r, [&](size_t p, const std::string& name) {
    if (!r.steady[p]) visit(p, name);
  });
}

// The running statistics that a step moves.
template <class Visit>
void for_each_statistic(const ir::Workload& workload, const DropoutReference& r, const Visit& visit) {
  for (size_t p = 0; p < r.moves.size(); ++p) {
    if (!r.moves[p].data.empty() && tensor::norm(r.moves[p]) > 0) visit(p, workload.parameters[p].name);
  }
}

// How far each has moved along its mean move, in units of that move.
std::vector<double> moved(const GateJob& job, const DropoutReference& r, const referee::Weights& statistics) {
  std::vector<double> all;
  for_each_statistic(job.workload, r, [&](size_t p, const std::string&) {
    const Tensor& move = r.moves[p];
    const bool there = p < statistics.size() && statistics[p].data.size() == move.data.size();
    double product = there ? 0 : std::nan("");
    for (size_t i = 0; there && i < move.data.size(); ++i)
      product += (statistics[p].data[i] - r.statistics[p].data[i]) * move.data[i];
    all.push_back(product / (tensor::norm(move) * tensor::norm(move)));
  });
  return all;
}

std::vector<std::string> moved_names(const ir::Workload& workload, const DropoutReference& r) {
  std::vector<std::string> names;
  for_each_statistic(workload, r,
                     [&](size_t, const std::string& name) { names.push_back("move of " + name); });
  return names;
}

// Numbers of one step of a whole batch.
class BatchNumbers {
 public:
  BatchNumbers(const GateJob& job, const DropoutReference& r) : job_(job), r_(r) {}

  std::vector<std::string> names() const {
    std::vector<std::string> all{"rows of one step together"};
    for (int64_t place = 0; place < places(); ++place) all.push_back(fmt::format("spread at row {}", place));
    for_each_drawn(job_.workload, r_, [&](size_t, const std::string& name) {
      all.push_back("spread of " + name);
      all.push_back(name + " along its mean");
    });
    return all;
  }

  std::vector<double> of(const DropoutStep& step) const {
    const int64_t batch = job_.training.batch;
    std::vector<std::vector<double>> sums(static_cast<size_t>(r_.distinct),
                                          std::vector<double>(kDirections, 0.0));
    std::vector<Sample> places_seen(static_cast<size_t>(places()));
    for (int64_t row = 0; row < batch; ++row) {
      const auto numbers = along_directions(step.prediction, batch, row);
      const auto kind = static_cast<size_t>(row % r_.distinct);
      double square = 0;
      for (size_t d = 0; d < kDirections; ++d) {
        const Drawn& mean = r_.directions[kind][d];
        const double off = (numbers[d] - mean.mean) / std::sqrt(std::max(mean.variance, 1e-300));
        sums[kind][d] += off, square += off * off;
      }
      places_seen[static_cast<size_t>(row * places() / batch)].add(square / kDirections);
    }
    // About 1 if the masks of rows are independent; about batch / distinct if all rows have one mask.
    double together = 0;
    for (const auto& of_kind : sums) {
      for (const double sum : of_kind) together += sum * sum;
    }
    const double count = static_cast<double>(batch) * kDirections;
    std::vector<double> all{together / count};
    for (const Sample& place : places_seen) all.push_back(place.drawn().mean);
    for_each_drawn(job_.workload, r_, [&](size_t p, const std::string&) {
      all.push_back(gradient_spread(step.gradients[p], r_.gradients[p], r_.variances[p]));
      all.push_back(along_mean(step.gradients[p], r_.gradients[p]));
    });
    return all;
  }

 private:
  int64_t places() const { return std::min<int64_t>(job_.training.batch, 32); }
  const GateJob& job_;
  const DropoutReference& r_;
};

// Numbers of one step of a single row: none changes where all gradients are scaled alike.
std::vector<std::string> row_names(const ir::Workload& workload, const DropoutReference& r) {
  std::vector<std::string> names;
  for_each_moved(workload, r, [&](size_t, const std::string& name) {
    names.push_back("zeros in " + name);
    names.push_back("share of " + name);
  });
  return names;
}

std::vector<double> row_numbers(const ir::Workload& workload, const DropoutReference& r,
                                const DropoutStep& step) {
  const auto square = [](const Tensor& t) { return tensor::norm(t) * tensor::norm(t); };
  double sum = 1e-300;
  for (const Tensor& g : step.gradients) sum += square(g);
  std::vector<double> all;
  for_each_moved(workload, r, [&](size_t p, const std::string&) {
    all.push_back(zeros(step.gradients[p], 1e-6 * std::sqrt(sum)));
    all.push_back(square(step.gradients[p]) / sum);
  });
  return all;
}

// Standard errors between two means whose spread is estimated from both together; as many as a normal deviate
// of the same chance has. `least`: what rounding may make of the difference.
double t_test(const Drawn& a, const Drawn& b, double least) {
  if (!std::isfinite(b.mean) || !std::isfinite(b.variance)) return kInfinity;
  const double degrees = a.count + b.count - 2;
  const double variance = ((a.count - 1) * a.variance + (b.count - 1) * b.variance) / degrees;
  const double error = variance * (1 / a.count + 1 / b.count) + least * least;
  return std::abs(a.mean - b.mean) / std::sqrt(error);
}

double t_limit(double degrees) { return -stats::student_quantile(degrees, kChance / 2); }

struct ContenderDraws {
  std::optional<Predictions> predictions = {};
  Sample loss = {};
  std::vector<Tensor> outputs = {};  // the first two
  referee::Weights gradients = {};   // their sum
  StepNumbers batches = {}, rows = {}, moved = {};
  std::string shape = {};  // of a prediction that has another
};

void add(Tensor& a, const Tensor& b) {
  if (a.data.empty()) a = tensor::zeros(b.shape);
  for (size_t i = 0; i < a.data.size() && i < b.data.size(); ++i) a.data[i] += b.data[i];
}

Status take_batches(const GateJob& job, const DropoutReference& r, const DropoutSteps& steps, int64_t count,
                    ContenderDraws& draws) {
  const BatchNumbers numbers(job, r);
  if (!draws.predictions) draws.predictions.emplace(r.distinct);
  draws.gradients.resize(job.workload.parameters.size());
  draws.batches.names = numbers.names();
  draws.moved.names = moved_names(job.workload, r);
  for (int64_t k = 0; k < count; ++k) {
    TRY(DropoutStep step, steps(job.training.batch));
    if (step.prediction.shape != r.shape) {
      draws.shape = tensor::to_text(step.prediction.shape);
      return Done{};
    }
    draws.predictions->add(step.prediction, job.training.batch);
    draws.loss.add(step.loss);
    draws.batches.steps.push_back(numbers.of(step));
    draws.moved.steps.push_back(moved(job, r, step.statistics));
    for_each_moved(job.workload, r,
                   [&](size_t p, const std::string&) { add(draws.gradients[p], step.gradients[p]); });
    if (draws.outputs.size() < 2) draws.outputs.push_back(std::move(step.prediction));
  }
  return Done{};
}

// False: it cannot. A training step may be written for one batch size alone: then whole batches have to do.
bool take_rows(const GateJob& job, const DropoutReference& r, const DropoutSteps& steps, int64_t count,
               ContenderDraws& draws) {
  for (int64_t k = 0; k < count; ++k) {
    const auto step = steps(1);
    if (!step) return false;
    draws.rows.steps.push_back(row_numbers(job.workload, r, *step));
  }
  draws.rows.names = row_names(job.workload, r);
  return true;
}

// Collects the worst of all comparisons, in shares of their limits.
struct Worst {
  ParityCheck check{.what = "dropout", .tolerance = kLimit, .passed = true};
  void compare(const std::string& what, double error, double limit) {
    if (std::isnan(error)) error = kInfinity;
    if (check.tensor.empty() || error / limit > check.error / check.tolerance)
      check.tensor = "dropout: " + what, check.error = error, check.tolerance = limit;
    check.passed = check.passed && error <= limit;
  }
  void compare(const StepNumbers& ours, const StepNumbers& theirs) {
    if (ours.steps.size() < 2 || theirs.steps.empty()) return;
    const double degrees = static_cast<double>(ours.steps.size() + theirs.steps.size()) - 2;
    const double limit = t_limit(degrees);
    const bool many = std::min(ours.steps.size(), theirs.steps.size()) >= kManySteps;
    for (size_t n = 0; n < ours.names.size(); ++n) {
      Sample a, b, a2, b2;
      for (const auto& step : ours.steps) a.add(step[n]);
      for (const auto& step : theirs.steps) b.add(step[n]);
      const double centre = a.drawn().mean;
      const double rounding = kRounding * std::max(std::abs(centre), 1e-9);
      compare(ours.names[n], t_test(a.drawn(), b.drawn(), rounding), limit);
      if (!many) continue;
      for (const auto& step : ours.steps) a2.add((step[n] - centre) * (step[n] - centre));
      for (const auto& step : theirs.steps) b2.add((step[n] - centre) * (step[n] - centre));
      // A number that no mask changes varies by the rounding of float32, and not at all in the referee.
      const double least = std::max(rounding * rounding, kRounding * std::max(a2.drawn().mean, 1e-9));
      compare("variance of " + ours.names[n], t_test(a2.drawn(), b2.drawn(), least), limit);
    }
  }
};

// Of the mean over steps, the worst parameter.
double gradients_apart(const GateJob& job, const DropoutReference& r, const ContenderDraws& draws,
                       std::string& where) {
  double largest = 0, worst = 0;
  for (const Tensor& g : r.gradients) largest = std::max(largest, tensor::norm(g));
  const double steps = static_cast<double>(draws.batches.steps.size());
  const double share = 1 / steps + 1 / static_cast<double>(r.gradient_steps);
  for_each_moved(job.workload, r, [&](size_t p, const std::string& name) {
    double spread = 0;
    for (const double v : r.variances[p].data) spread += v;
    const double rounding = 1e-3 * std::max(tensor::norm(r.gradients[p]), 1e-3 * largest);
    const double expected = share * spread + rounding * rounding;
    Tensor mean = draws.gradients[p];
    for (double& x : mean.data) x /= steps;
    const double off = std::sqrt(squared_distance(mean, r.gradients[p]) / std::max(expected, 1e-300));
    if (off > worst) worst = off, where = name;
  });
  return worst;
}

std::string explain_draws(const GateJob& job, const DropoutReference& r, const ContenderDraws& draws,
                          const Worst& worst) {
  // Rows that differ in their masks alone.
  const Tensor& first = draws.outputs[0];
  const size_t size = first.data.size() / static_cast<size_t>(job.training.batch);
  bool alike = true;
  for (size_t i = 0; i < first.data.size() && alike; ++i) {
    const double twin = first.data[i % (size * static_cast<size_t>(r.distinct))];
    alike = std::abs(first.data[i] - twin) <= 1e-5 * std::max(1.0, std::abs(twin));
  }
  if (alike)
    return "no dropout, or one mask for all rows: rows that differ in their masks alone are predicted alike";
  if (draws.outputs.size() > 1 && draws.outputs[0] == draws.outputs[1])
    return "two training steps drew the same masks";
  const std::string& what = worst.check.tensor;
  if (what.find("spread of predictions") != std::string::npos) {
    return fmt::format(
        "the masks spread predictions {:.2f} times as far as the recipe's: another rate, another "
        "place, or another scale of what is kept",
        std::sqrt(draws.predictions->spread(r.directions).mean / std::max(r.spread.mean, 1e-300)));
  }
  return "masks of another rate, another place or another scale than the recipe's, or masks that go together";
}

void compare_draws(const GateJob& job, const DropoutReference& r, const ContenderDraws& draws,
                   bool unbiased_variance, Worst& worst) {
  const bool same = draws.outputs.size() > 1 && draws.outputs[0] == draws.outputs[1];
  worst.compare("masks of two steps", same ? kInfinity : 0, kLimit);
  for (size_t row = 0; row < r.directions.size(); ++row) {
    for (size_t d = 0; d < r.directions[row].size(); ++d)
      worst.compare("mean of predictions",
                    deviation(r.directions[row][d], draws.predictions->directions[row][d].drawn()), kLimit);
  }
  worst.compare("spread of predictions", deviation(r.spread, draws.predictions->spread(r.directions)),
                kLimit);
  if (r.loss.count > 0) {
    // A step's loss is the mean over its rows.
    Drawn loss = draws.loss.drawn();
    loss.count *= static_cast<double>(job.training.batch);
    loss.variance = r.loss.variance;
    worst.compare("loss", deviation(r.loss, loss), kLimit);
  }
  std::string where;
  const double apart = gradients_apart(job, r, draws, where);
  worst.compare(where, apart, kGradientLimit);
  worst.compare(r.batches, draws.batches);
  worst.compare(r.rows, draws.rows);
  worst.compare(unbiased_variance ? r.moved_unbiased : r.moved_biased, draws.moved);
}

// How many steps a contender takes: many of a small network, where each draws few masks.
void plan_steps(const GateJob& job, DropoutReference& r) {
  const int64_t batch = job.training.batch;
  double elements = 1;
  for (const ir::Parameter& p : job.workload.parameters)
    elements += static_cast<double>(tensor::elements(p.shape));
  const auto cost = ir::step_cost(job.workload, job.training);
  const double flops = cost ? static_cast<double>(cost->flops()) : kArithmetic;
  const auto within = [&](double arithmetic) {
    return static_cast<int64_t>(
        std::min({kArithmetic / std::max(arithmetic, 1.0), kElements / elements, 256.0}));
  };
  r.steps =
      std::max(std::clamp<int64_t>((kDraws + batch - 1) / batch, 2, 8), std::min<int64_t>(within(flops), 64));
  r.compared_steps = std::clamp(within(flops), r.steps, (1 + kMore) * r.steps);
  // BatchNorm knows no single row.
  if (!job.workload.has(ir::Op::kBatchNorm))
    r.single_steps = std::max<int64_t>(within(flops / static_cast<double>(batch)), 4);
}

// Mean and variance of every element of the gradients, step by step.
void learn(DropoutReference& r, const referee::Weights& gradients) {
  const double n = static_cast<double>(++r.gradient_steps);
  for (size_t p = 0; p < gradients.size(); ++p) {
    auto &mean = r.gradients[p], &squares = r.variances[p];
    if (mean.data.empty()) mean = tensor::zeros(gradients[p].shape), squares = mean;
    for (size_t i = 0; i < gradients[p].data.size(); ++i) {
      const double d = gradients[p].data[i] - mean.data[i];
      mean.data[i] += d / n;
      squares.data[i] += d * (gradients[p].data[i] - mean.data[i]);
    }
  }
}

// Adds a step's running statistics to the mean move, of `count` steps.
void learn_moves(const ir::Workload& workload, DropoutReference& r, const referee::RunningStatistics& running,
                 double count) {
  for (size_t p = 0; p < workload.parameters.size(); ++p) {
    if (ir::trainable(workload.parameters[p])) continue;
    if (r.moves[p].data.empty()) r.moves[p] = tensor::zeros(r.statistics[p].shape);
    for (size_t i = 0; i < running.biased[p].data.size(); ++i)
      r.moves[p].data[i] += (running.biased[p].data[i] - r.statistics[p].data[i]) / count;
  }
}

// A gradient that is zero by mathematics (the bias of an attention's keys) is rounding alone.
void note_idle(DropoutReference& r) {
  constexpr double kIdle = 1e-6;
  std::vector<double> sizes;
  for (size_t p = 0; p < r.gradients.size(); ++p) {
    double squares = tensor::norm(r.gradients[p]) * tensor::norm(r.gradients[p]);
    for (const double v : r.variances[p].data) squares += v;
    sizes.push_back(std::sqrt(squares));
  }
  const double largest = sizes.empty() ? 0 : *std::max_element(sizes.begin(), sizes.end());
  for (size_t p = 0; p < sizes.size(); ++p) {
    r.idle.push_back(sizes[p] <= kIdle * largest);
    double spread = 0;
    for (const double v : r.variances[p].data) spread += v;
    r.steady.push_back(std::sqrt(spread) <= kIdle * tensor::norm(r.gradients[p]));
  }
}

}  // namespace

bool has_dropout(const ir::Workload& workload) {
  return std::any_of(workload.nodes.begin(), workload.nodes.end(),
                     [](const ir::Node& node) { return ir::drops(node) && node.real("rate") > 0; });
}

Result<DropoutReference> draw_dropout(const GateJob& job, const referee::Weights& weights) {
  DropoutReference r;
  const int64_t batch = job.training.batch;
  if (!has_dropout(job.workload) || batch > job.rows) return r;
  r.distinct = batch >= 64 ? 4 : batch >= 16 ? 2 : 1;
  plan_steps(job, r);
  const fs::path file = job.folder / "gate_dropout.safetensors";
  CHECK_OK(copy_rows(job.data, batch, r.distinct, file));
  uint64_t drawn = 0;  // steps
  const auto draw = [&](const referee::Inputs& inputs) {
    const referee::DropoutMasks masks{.seed = job.training.seed, .step = drawn++};
    return referee::evaluate(job.workload, weights, inputs, {.dropout = masks});
  };
  TRY(const auto inputs, read_inputs(job.workload, file, job.training.input_divisor, 0, batch));
  const int64_t count = std::max(r.steps, kLeastSteps);
  Sample loss;
  Predictions learned(r.distinct), compared(r.distinct);
  r.gradients.resize(weights.size()), r.variances.resize(weights.size()), r.moves.resize(weights.size());
  r.statistics = weights;
  // Learn: directions of predictions, elements of gradients, the mean move of running statistics.
  for (int64_t step = 0; step < count; ++step) {
    TRY(const auto e, draw(inputs));
    learned.add(e.prediction, batch);
    r.shape = e.prediction.shape;
    for (const double one : losses_of_rows(job.workload, inputs, e.prediction)) loss.add(one);
    learn(r, e.gradients);
    learn_moves(job.workload, r, e.running, static_cast<double>(count));
  }
  for (auto& of_parameter : r.variances) {
    for (double& v : of_parameter.data) v /= static_cast<double>(count - 1);
  }
  note_idle(r);
  for (const auto& row : learned.directions) {
    auto& made = r.directions.emplace_back();
    for (const Sample& sample : row) made.push_back(sample.drawn());
  }
  const BatchNumbers numbers(job, r);
  r.batches.names = numbers.names();
  r.moved_biased.names = r.moved_unbiased.names = moved_names(job.workload, r);
  // Measure further steps by what was learned.
  for (int64_t step = 0; step < std::max(r.compared_steps, kLeastSteps); ++step) {
    TRY(auto e, draw(inputs));
    compared.add(e.prediction, batch);
    for (const double one : losses_of_rows(job.workload, inputs, e.prediction)) loss.add(one);
    r.moved_biased.steps.push_back(moved(job, r, e.running.biased));
    r.moved_unbiased.steps.push_back(moved(job, r, e.running.unbiased));
    r.batches.steps.push_back(numbers.of({std::move(e.prediction), e.loss, std::move(e.gradients)}));
  }
  r.spread = compared.spread(r.directions);
  r.loss = loss.drawn();
  // Statistics of single rows need no learned numbers.
  TRY(const auto row, read_inputs(job.workload, file, job.training.input_divisor, 0, 1));
  r.rows.names = row_names(job.workload, r);
  for (int64_t step = 0; step < (1 + kMore) * r.single_steps; ++step) {
    TRY(auto e, draw(row));
    r.rows.steps.push_back(row_numbers(job.workload, r, {{}, e.loss, std::move(e.gradients)}));
  }
  r.data = file;
  return r;
}

Result<ParityCheck> compare_dropout(const GateJob& job, const DropoutReference& r, const DropoutSteps& steps,
                                    bool unbiased_variance, std::string& explanation) {
  ContenderDraws draws;
  CHECK_OK(take_batches(job, r, steps, r.steps, draws));
  Worst worst;
  if (!draws.shape.empty()) {
    worst.compare("prediction", kInfinity, kLimit);
    explanation = fmt::format("with dropout the prediction has shape {}, the recipe's has {}", draws.shape,
                              tensor::to_text(r.shape));
    return worst.check;
  }
  const bool single = take_rows(job, r, steps, r.single_steps, draws);
  compare_draws(job, r, draws, unbiased_variance, worst);
  if (worst.check.passed && worst.check.error > kSuspicious * worst.check.tolerance) {
    CHECK_OK(take_batches(job, r, steps, kMore * r.steps, draws));
    if (single) take_rows(job, r, steps, kMore * r.single_steps, draws);
    worst = {};
    compare_draws(job, r, draws, unbiased_variance, worst);
  }
  if (!worst.check.passed) explanation = explain_draws(job, r, draws, worst);
  return worst.check;
}

}  // namespace bakeoff
