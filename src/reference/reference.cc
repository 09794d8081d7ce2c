// What the gate compares every contender with: the referee's own numbers, and the files that contenders start
// from.
//
// A fixed tolerance would accuse honest frameworks wherever a model amplifies rounding, and forgive wrong
// ones where it does not. So the referee computes everything a second time with each value rounded to
// float32: what separates the two is the distance that rounding explains for this model and this batch. ReLUs
// need more: an input that rounding moves across 0 opens or closes one, so edges are tried all open and all
// closed, and the larger distance counts. Where the referee itself fails at that, nothing is forgiven.

#include "reference/reference.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <set>
#include <span>

#include "base/files.h"
#include "data/batch_hashes.h"
#include "data/inputs.h"
#include "ir/cost.h"
#include "plan/weights.h"
#include "proc/interrupt.h"
#include "referee/generation.h"
#include "referee/init.h"
#include "referee/optimizer.h"
#include "referee/train.h"
#include "reference/rounding.h"
#include "tensor/safetensors.h"

namespace bakeoff {
namespace {

using tensor::Tensor;

constexpr double kWidestEdge = 1e-2;  // of a value's root mean square

// Every parameter's distance from where rounding alone would have taken it.
std::vector<double> apart(const referee::Weights& a, const referee::Weights& b) {
  std::vector<double> all;
  for (size_t p = 0; p < a.size(); ++p) all.push_back(sum_apart(a[p], b[p]));
  return all;
}

// A training by the referee in float64, and how far rounding alone would have taken it.
struct Path {
  std::vector<double> losses = {};
  referee::Weights after = {};
  std::vector<double> noise = {};
  referee::Weights average = {};
  int64_t clipped = 0;
};

Result<Path> follow(const GateJob& job, const referee::Weights& from,
                    std::span<const referee::Inputs> batches, const referee::Evaluation& first,
                    const GradientNoise& noise, bool single, const Stop& stop) {
  NoisyTwin twin(job.training.optimizer, from, noise, single);
  int64_t clipped = 0;
  const auto watch = [&](size_t, const referee::Evaluation& e) {
    clipped += referee::clipping_acts(job.training.optimizer, e.gradients);
    twin.step(e.gradients);
  };
  TRY(auto run, referee::train(job.workload, job.training.optimizer, from, batches,
                               {.first = &first, .watch = watch, .stop = stop}));
  Path path{.losses = std::move(run.losses), .after = std::move(run.weights)};
  path.noise = apart(path.after, twin.weights());
  path.average = std::move(run.state.average), path.clipped = clipped;
  return path;
}

// Where the referee fails, which it does not where it computed at32, the distance stays: nothing is forgiven then.
void add_distance(const GateJob& job, const Reference& r, referee::Edges edges,
                  const std::vector<double>& edge_of, RoundingDistance& distance) {
  const auto rounded = referee::evaluate(job.workload, r.initial, r.batch,
                                         {.round_to_float32 = true, .edges = edges, .edge_of = edge_of});
  if (!rounded) return;
  distance.prediction =
      std::max(distance.prediction, tensor::relative_distance(rounded->prediction, r.at32.prediction));
  for (size_t p = 0; p < rounded->gradients.size(); ++p) {
    const auto& exact = r.at32.gradients[p];
    if (!exact.data.empty())
      distance.gradients[p] =
          std::max(distance.gradients[p], tensor::relative_distance(rounded->gradients[p], exact));
  }
}

// How near to an edge rounding decides: deep networks, batch norms above all, amplify what earlier layers lost, so each
// value has its own distance from the exact one, of which an element may have four times the mean.
std::vector<double> edges_by_rounding(const GateJob& job, const Reference& r) {
  referee::EvalOptions options{.gradients = false, .activations = true};
  const auto exact = referee::evaluate(job.workload, r.initial, r.batch, options);
  options.round_to_float32 = true;
  const auto rounded = referee::evaluate(job.workload, r.initial, r.batch, options);
  if (!exact || !rounded) return {};
  std::vector<double> edges(exact->activations.size(), referee::kEdge);
  for (size_t id = 0; id < edges.size(); ++id) {
    const auto *a = std::get_if<Tensor>(&rounded->activations[id]),
               *b = std::get_if<Tensor>(&exact->activations[id]);
    if (a != nullptr && b != nullptr)
      edges[id] = std::clamp(4 * tensor::relative_distance(*a, *b), referee::kEdge, kWidestEdge);
  }
  return edges;
}

// With every ReLU that lies on an edge open, and closed: an honest framework is on some of their sides.
RoundingDistance measure_rounding(const GateJob& job, const Reference& r) {
  RoundingDistance distance{.gradients = std::vector<double>(r.initial.size())};
  const std::vector<double> edge_of = edges_by_rounding(job, r);
  for (const auto edges : {referee::Edges::kOpen, referee::Edges::kClosed})
    add_distance(job, r, edges, edge_of, distance);
  return distance;
}

Status follow_rounded(const GateJob& job, const Reference& r, referee::Edges edges, RoundedPath& path) {
  TRY(const auto batches, read_batches(job.workload, job.training, job.data, job.rows, job.steps));
  NoisyTwin twin(job.training.optimizer, r.initial, kNoise32, true);
  for (size_t k = 0; k < batches.size(); ++k) {
    TRY(const auto e, referee::evaluate(job.workload, twin.weights(), batches[k],
                                        {.round_to_float32 = true, .edges = edges}));
    const double exact = r.losses32[k];
    path.losses[k] = std::max(path.losses[k], std::abs(e.loss - exact) / std::max(std::abs(exact), 1e-300));
    twin.step(e.gradients);
  }
  const std::vector<double> ends = apart(twin.weights(), r.after32);
  for (size_t p = 0; p < ends.size(); ++p) path.after[p] = std::max(path.after[p], ends[p]);
  return Done{};
}

Status follow_comparable(const GateJob& job, const Reference& r, double share, FirstSteps& best) {
  const ir::Optimizer& optimizer = job.training.optimizer;
  TRY(const auto batches, read_batches(job.workload, job.training, job.data, job.rows, job.steps));
  NoisyTwin exact(optimizer, r.initial, {}, false), noisy(optimizer, r.initial, kNoise32, true);
  std::array twins = {NoisyTwin(optimizer, r.initial, kNoise32, true),
                      NoisyTwin(optimizer, r.initial, kNoise32, true)};
  constexpr std::array kSides = {referee::Edges::kOpen, referee::Edges::kClosed};
  for (size_t k = 0; k < batches.size(); ++k) {
    if (proc::interrupted()) return Error{"interrupted"};
    for (size_t side = 0; side < twins.size(); ++side) {
      TRY(const auto e, referee::evaluate(job.workload, twins[side].weights(), batches[k],
                                          {.round_to_float32 = true, .edges = kSides[side]}));
      twins[side].step(e.gradients);
    }
    TRY(const auto e, referee::evaluate(job.workload, exact.weights(), batches[k]));
    exact.step(e.gradients), noisy.step(e.gradients);
    FirstSteps now{.steps = static_cast<int64_t>(k) + 1,
                   .after = exact.weights(),
                   .noise = apart(noisy.weights(), exact.weights()),
                   .rounded = apart(twins[0].weights(), exact.weights())};
    const auto closed = apart(twins[1].weights(), exact.weights()), moves = apart(exact.weights(), r.initial);
    double away = 0, moved = 0;
    for (size_t p = 0; p < moves.size(); ++p) {
      now.rounded[p] = std::max(now.rounded[p], closed[p]);
      away += std::max(now.noise[p], now.rounded[p]), moved += moves[p];
    }
    if (!(away <= share * moved)) break;
    if (now.steps % job.per_call == 0) best = std::move(now);
  }
  return Done{};
}

// As many as in float32 where they are cheap.
int64_t steps_in_float64(const GateJob& job) {
  const auto cost = ir::step_cost(job.workload, job.training);
  const bool cheap = cost && cost->flops() * job.steps <= kCheapFlops64;
  int64_t steps = cheap ? std::max(job.steps, kSteps64) : kSteps64;
  const ir::Schedule& schedule = job.training.optimizer.schedule;
  if (cost && schedule.varies()) {
    const int64_t affordable = std::min(kMostSteps64, kCheapFlops64 / std::max<int64_t>(cost->flops(), 1));
    steps = std::max(steps, std::min(schedule.corners().back() + 2, affordable));
  }
  return (steps + job.per_call - 1) / job.per_call * job.per_call;
}

}  // namespace

Result<std::optional<GateJob>> cut_job(const GateJob& job) {
  const auto cost = ir::step_cost(job.workload, job.training);
  const int64_t batch = job.training.batch;
  if (!cost || cost->flops() <= kStepFlops64 || job.workload.has(ir::Op::kBatchNorm))
    return std::optional<GateJob>();
  const auto share = static_cast<double>(kStepFlops64) / static_cast<double>(cost->flops());
  GateJob cut = job;
  cut.training.batch = std::max(kLeastRows64, static_cast<int64_t>(static_cast<double>(batch) * share));
  cut.training.batch = (cut.training.batch + job.devices - 1) / job.devices * job.devices;
  if (2 * cut.training.batch > batch) return std::optional<GateJob>();
  cut.cut = true;
  cut.rows = std::min(job.rows, batch);
  cut.folder = job.folder / "cut";
  cut.data = cut.folder / "data.safetensors";
  CHECK_OK(make_folder(cut.folder));
  CHECK_OK(copy_rows(job.data, cut.rows, cut.rows, cut.data));
  return std::optional(std::move(cut));
}

Result<Reference> start_reference(const GateJob& job) {
  Reference r;
  r.weights_file = job.folder / "gate_weights.safetensors";
  r.gradients_file = job.folder / "gate_gradients.safetensors";
  r.initial_file = job.folder / "gate_initial.safetensors";
  TRY(r.initial, write_initial_weights(job.workload, job.training.seed, job.weights, r.initial_file));
  TRY(r.weights,
      rounded(job.workload, referee::perturbed(job.workload, r.initial, job.training.seed), r.weights_file));
  TRY(r.batch, read_inputs(job.workload, job.data, job.training.input_divisor, 0, job.training.batch));
  return r;
}

std::vector<int64_t> steps_to_compare(const ir::Schedule& schedule) {
  std::set<int64_t> all = {0, 1};
  int64_t before = 0;
  for (const int64_t corner : schedule.corners()) {
    for (const int64_t step : {(before + corner) / 2, corner - 1, corner, corner + 1})
      all.insert(std::max<int64_t>(step, 0));
    before = corner;
  }
  all.insert(2 * before + 10);
  return {all.begin(), all.end()};
}

// Multiplies the weights of proofs 1 and 2 until clipping changes the gradients of the first batch: a proof
// in which it never acts is none. Where no factor does, they stay.
Status make_clipping_act(const GateJob& job, Reference& r) {
  const ir::Optimizer& optimizer = job.training.optimizer;
  if (!optimizer.clips()) return Done{};
  for (const double factor : {1.0, 2.0, 4.0, 8.0, 16.0}) {
    referee::Weights weights = r.weights;
    for (size_t p = 0; p < weights.size(); ++p) {
      if (!ir::trainable(job.workload.parameters[p])) continue;
      for (double& w : weights[p].data) w *= factor;  // a power of two: still a float32
    }
    TRY(const auto e, referee::evaluate(job.workload, weights, r.batch));
    if (!std::isfinite(e.loss)) break;
    if (!referee::clipping_acts(optimizer, e.gradients)) continue;
    TRY(r.weights, rounded(job.workload, std::move(weights), r.weights_file));
    break;
  }
  return Done{};
}

Result<Reference> make_reference64(const GateJob& job, const Stop& stop) {
  TRY(Reference r, start_reference(job));
  if (!job.training.predicts()) CHECK_OK(make_clipping_act(job, r));
  const bool predicts = job.training.predicts();
  TRY(r.at, referee::evaluate(job.workload, r.weights, r.batch,
                              {.train = !predicts, .gradients = !predicts, .activations = true}));
  if (job.training.generates())
    r.at.prediction = referee::chosen_from(r.at.prediction, job.training.generation);
  if (predicts) return r;
  r.given = referee::clipped(job.training.optimizer, r.at.gradients);
  CHECK_OK(write_parameters(job.workload, r.given, tensor::DType::kF64, true, r.gradients_file));
  r.updated = r.weights;
  auto state = referee::initial_state(r.weights);
  referee::step(job.training.optimizer, r.at.gradients, state, r.updated);
  if (job.training.track == ir::Track::kAsIs) return r;
  TRY(const auto batches,
      read_batches(job.workload, job.training, job.data, job.rows, steps_in_float64(job)));
  TRY(Path path, follow(job, r.weights, batches, r.at, kNoise64, false, stop));
  r.losses64 = std::move(path.losses), r.after64 = std::move(path.after);
  r.average64 = std::move(path.average), r.clipped64 = path.clipped;
  r.noise64 = std::move(path.noise);
  return r;
}

Status add_reference32(const GateJob& job, Reference& r, const Stop& stop) {
  if (job.training.predicts()) {
    TRY(auto at32, referee::evaluate(job.workload, r.initial, r.batch, {.train = false, .gradients = false}));
    r.prediction32 = std::move(at32.prediction);
    if (job.training.generates())
      r.prediction32 = referee::chosen_from(r.prediction32, job.training.generation);
    return Done{};
  }
  if (job.training.track == ir::Track::kAsIs) return Done{};
  TRY(r.at32, referee::evaluate(job.workload, r.initial, r.batch));
  TRY(const auto batches, read_batches(job.workload, job.training, job.data, job.rows, job.steps));
  TRY(Path path, follow(job, r.initial, batches, r.at32, kNoise32, true, stop));
  r.losses32 = std::move(path.losses), r.after32 = std::move(path.after);
  r.noise32 = std::move(path.noise);
  TRY(r.dropout, draw_dropout(job, r.weights));
  const int64_t compared = batches_to_compare(job.workload, job.training, job.rows);
  TRY(r.batches, batch_hashes(job.workload, job.training, job.data, job.rows, compared));
  const auto& inputs = job.workload.inputs;
  if (std::any_of(inputs.begin(), inputs.end(),
                  [](const ir::Input& input) { return alike_with_channels_last(input.type.shape); })) {
    TRY(r.batches_last,
        batch_hashes(job.workload, job.training, job.data, job.rows, compared, AlikeRows::kChannelsLast));
  }
  return Done{};
}

Result<Reference> make_reference(const GateJob& job) {
  TRY(Reference r, make_reference64(job));
  CHECK_OK(add_reference32(job, r));
  return r;
}

const RoundingDistance& rounding_distance(const GateJob& job, const Reference& r) {
  std::call_once(r.rounding->once, [&] { r.rounding->distance = measure_rounding(job, r); });
  return r.rounding->distance;
}

const std::vector<double>& zeros_distance(const GateJob& job, const Reference& r) {
  std::call_once(r.rounding->once_zeros, [&] {
    RoundingDistance distance{.gradients = std::vector<double>(r.initial.size())};
    add_distance(job, r, referee::Edges::kOpenAtZero, {}, distance);
    r.rounding->zeros = std::move(distance.gradients);
  });
  return r.rounding->zeros;
}

const FirstSteps& comparable_steps(const GateJob& job, const Reference& r, double share) {
  std::call_once(r.rounding->once_first, [&] {
    FirstSteps best;
    if (follow_comparable(job, r, share, best)) r.rounding->first = std::move(best);
  });
  return r.rounding->first;
}

const RoundedPath& rounded_path(const GateJob& job, const Reference& r) {
  std::call_once(r.rounding->once_path, [&] {
    RoundedPath path{.losses = std::vector<double>(r.losses32.size()),
                     .after = std::vector<double>(r.after32.size())};
    bool known = true;
    for (const auto edges : {referee::Edges::kOpen, referee::Edges::kClosed})
      known = known && follow_rounded(job, r, edges, path);
    if (!known)
      path = {.losses = std::vector<double>(r.losses32.size()),
              .after = std::vector<double>(r.after32.size())};
    r.rounding->path = std::move(path);
  });
  return r.rounding->path;
}

}  // namespace bakeoff
