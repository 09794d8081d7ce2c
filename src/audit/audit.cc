#include "audit/audit.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>

#include "data/inputs.h"
#include "emit/emit.h"
#include "ir/cost.h"
#include "ir/dropout.h"
#include "ir/verify.h"
#include "proc/interrupt.h"
#include "referee/generation.h"
#include "referee/optimizer.h"
#include "stats/distributions.h"
#include "stats/trimmed.h"
#include "tensor/rng.h"
#include "tensor/safetensors.h"

namespace bakeoff {
namespace {

using tensor::Tensor;

constexpr double kFloat = 6e-8;         // half a unit in the last place of float32, relative
constexpr int64_t kSmall = 4096;        // elements of a parameter that is nudged
constexpr int64_t kMostNudged = 16384;  // elements, of all of them
constexpr double kNudge = 0.1;          // standard deviation
constexpr double kSums = 2e-6;          // relative: by what sums of products are off in float32
constexpr double kSpare = 8;            // times what that makes of a burst, at most
// Runs of the referee that show what rounding makes of a burst: rounded as float32 rounds; and all, at most.
constexpr uint64_t kFineRuns = 4, kNoisyRuns = 16;
constexpr int64_t kKeptBytes = 1 << 28;  // of outputs of a burst, by runners
constexpr int64_t kMostOutputs = 256;    // that are computed again, of a small network
constexpr int64_t kFewestOutputs = 16;   // of a large one
constexpr double kOutputFlops = 2e10;    // that this takes, if there are more than the fewest
// Operations on float64 numbers that the referee makes in a second and thread (mnist_cnn: 7 to 11 GFLOP/s).
constexpr double kRefereeFlops = 8e9;
// Runs of the referee where steps draw random numbers; more of them where a burst looks odd: so many standard
// deviations away.
constexpr size_t kDraws = 8, kMoreDraws = 32;
constexpr double kLooksOdd = 4;

// The referee's own burst.
struct Expected {
  std::vector<double> losses = {};  // of the timed steps
  referee::Weights before = {};     // nudged, before the first timed step
  referee::Weights after = {};
  std::vector<double> path = {};  // by ParamId: the lengths of all its updates
  // By ParamId: how far the lead-in took it, where the recipe has a schedule; else 0. At the end of one that falls
  // to nothing a burst moves nothing, and what float32 has made of the lead-in is all that there is to compare.
  std::vector<double> lead = {};
  // Whether a parameter's gradient is zero by mathematics, as that of a bias before BatchNorm: what rounding
  // leaves of it, some optimizers divide by itself.
  std::vector<bool> idle = {};
};

struct Continue {
  // Every gradient is taken at weights that are off by this share at most: the rounding of float32 sums.
  double rounding = 0;
  uint64_t rounding_seed = 0;
  std::optional<uint64_t> dropout_seed = {};
};

void note_idle(const referee::Weights& gradients, std::vector<bool>& idle) {
  constexpr double kIdle = 1e-6;
  double largest = 0;
  for (const Tensor& g : gradients) largest = std::max(largest, tensor::norm(g));
  idle.resize(gradients.size(), true);
  for (size_t id = 0; id < gradients.size(); ++id)
    idle[id] = idle[id] && tensor::norm(gradients[id]) <= kIdle * largest;
}

void add(const Nudge& nudge, referee::Weights& weights) {
  for (size_t id = 0; id < weights.size(); ++id) {
    for (size_t i = 0; i < nudge[id].data.size(); ++i) weights[id].data[i] += nudge[id].data[i];
  }
}

double distance(const Tensor& a, const Tensor& b) {
  if (a.data.size() != b.data.size()) return std::numeric_limits<double>::infinity();
  double sum = 0;
  for (size_t i = 0; i < a.data.size(); ++i) sum += (a.data[i] - b.data[i]) * (a.data[i] - b.data[i]);
  return std::isfinite(sum) ? std::sqrt(sum) : std::numeric_limits<double>::infinity();
}

Result<Expected> continue_from(const AuditGround& ground, const ShownBurst& shown, const Continue& how,
                               const std::function<bool()>& stop) {
  const size_t count = ground.initial.size();
  Expected expected{
      .after = ground.initial, .path = std::vector<double>(count), .lead = std::vector<double>(count)};
  const bool varies = ground.training.optimizer.schedule.varies();
  referee::Weights& weights = expected.after;
  tensor::Rng rng(how.rounding_seed);
  const auto displaced = [&] {
    referee::Weights moved = weights;
    for (Tensor& weight : moved) {
      for (double& w : weight.data) w *= 1 + how.rounding * rng.uniform(-1, 1);
    }
    return moved;
  };
  referee::OptimizerState state = referee::initial_state(weights);
  const int64_t whole = ground.rows / ground.training.batch;
  for (int64_t k = 0; k < shown.lead + shown.steps; ++k) {
    if (stop()) return Error{.message = "stopped"};
    if (k == shown.lead) {
      for (size_t id = 0; varies && id < count; ++id)
        expected.lead[id] = distance(weights[id], ground.initial[id]);
      add(shown.nudge, weights);
      expected.before = weights;
    }
    const int64_t first = (shown.position + k) % whole * ground.training.batch;
    TRY(const referee::Inputs batch, read_inputs(ground.workload, ground.data, ground.training.input_divisor,
                                                 first, ground.training.batch));
    referee::EvalOptions options;
    if (how.dropout_seed)
      options.dropout = referee::DropoutMasks{.seed = *how.dropout_seed, .step = static_cast<uint64_t>(k)};
    TRY(const referee::Evaluation e,
        referee::evaluate(ground.workload, how.rounding > 0 ? displaced() : weights, batch, options));
    if (k >= shown.lead) expected.losses.push_back(e.loss);
    note_idle(e.gradients, expected.idle);
    const referee::Weights from = weights;
    referee::step(ground.training.optimizer, e.gradients, state, weights);
    for (size_t id = 0; (varies || k >= shown.lead) && id < count; ++id)
      expected.path[id] += distance(weights[id], from[id]);
  }
  return expected;
}

double sum_of(const Tensor& tensor) {
  double sum = 0;
  for (const double x : tensor.data) sum += x;
  return sum;
}

double spread_of(const std::vector<double>& values) { return std::sqrt(stats::variance(values)); }

double apart(double value, double reference) {
  if (!std::isfinite(value)) return std::numeric_limits<double>::infinity();
  return std::abs(value - reference) / std::max(std::abs(reference), 1e-3);
}

// The distance of all trained parameters from the referee's, as a share of how far these moved in the burst.
double moved_apart(const ir::Workload& workload, const referee::Weights& seen, const Expected& expected) {
  double off = 0, way = 0;
  for (size_t id = 0; id < seen.size(); ++id) {
    if (!ir::trainable(workload.parameters[id]) || expected.idle[id]) continue;
    const double d = distance(seen[id], expected.after[id]);
    const double m = std::max(distance(expected.after[id], expected.before[id]), expected.lead[id]);
    off += d * d;
    way += m * m;
  }
  return std::sqrt(off) / std::max(std::sqrt(way), 1e-300);
}

// What a worker showed, against what the referee made of the same burst.
class Judge {
 public:
  Judge(const AuditGround& ground, const ShownBurst& shown, const std::function<bool()>& stop)
      : ground_(ground), shown_(shown), stop_(stop) {
    audit_.burst = static_cast<int64_t>(shown.burst);
    audit_.steps = shown.steps;
  }

  Result<Audit> take(const std::string& group, const AuditTolerances& t) {
    if (ground_.training.predicts()) {
      CHECK_OK(against_predictions(group));
      return std::move(audit_);
    }
    read_state();
    check_shown();
    if (ir::drops(ground_.workload)) {
      CHECK_OK(against_draws());
    } else {
      CHECK_OK(against_referee(group, t));
    }
    return std::move(audit_);
  }

 private:
  void differs(const std::string& words) {
    if (audit_.differs.empty()) audit_.differs = words;
  }
  static bool full(const std::string& group) { return group.empty() || group == emit::kFullPrecision; }
  bool trained(size_t id) const { return ir::trainable(ground_.workload.parameters[id]); }
  const std::string& name(size_t id) const { return ground_.workload.parameters[id].name; }

  void read_state() {
    if (shown_.state.empty()) return;
    const auto file = tensor::SafetensorsFile::open(shown_.state);
    if (!file) return differs("its parameters cannot be read: " + file.error().message);
    for (size_t id = 0; id < ground_.initial.size(); ++id) {
      auto read = file->read(name(id));
      if (!read || read->shape != ground_.initial[id].shape)
        return differs("it did not report parameter " + name(id));
      state_.push_back(std::move(*read));
    }
  }

  // What float32 may make of a parameter and of its sum, in these steps.
  double rounding(size_t id) const {
    const auto steps = static_cast<double>(shown_.lead + shown_.steps + 1);
    const double size = std::max(tensor::norm(ground_.initial[id]), tensor::norm(shown_.nudge[id]));
    return 2 * kFloat * std::sqrt(steps) * size + 1e-9;
  }
  double sum_rounding(size_t id, double sum) const {
    double all = 0;
    for (const double x : ground_.initial[id].data) all += std::abs(x);
    for (const double x : shown_.nudge[id].data) all += std::abs(x);
    return 8 * rounding(id) + 32 * kFloat * (std::abs(sum) + all / 8);
  }

  // Outputs that the worker has to have kept: all, unless they take more than runners keep.
  int64_t outputs_due() const {
    const auto types = ir::infer(ground_.workload);
    if (!types) return shown_.steps;
    const auto& type = (*types)[static_cast<size_t>(ground_.workload.prediction())];
    const int64_t bytes = 4 * tensor::elements(ir::with_batch(type.shape, ground_.training.batch));
    return std::clamp<int64_t>(kKeptBytes / std::max<int64_t>(bytes, 1), 1, shown_.steps);
  }

  // Some of the outputs, drawn by lot; of a layer that rounds its inputs to half precision 2e-3 is lost.
  Status against_predictions(const std::string& group) {
    const auto told = static_cast<int64_t>(shown_.outputs.size());
    if (told < outputs_due() || told > shown_.steps) {
      differs(fmt::format("it reported {} outputs for {} steps", told, shown_.steps));
      return Done{};
    }
    audit_.loss_limit = full(group) ? 3e-4 : 0.1;  // of the root mean square of an output
    std::vector<int64_t> chosen(static_cast<size_t>(told));
    std::iota(chosen.begin(), chosen.end(), 0);
    const auto cost = ir::step_cost(ground_.workload, ground_.training);
    const double flops = cost ? static_cast<double>(std::max<int64_t>(cost->flops_forward, 1)) : kOutputFlops;
    const auto most = std::clamp(static_cast<int64_t>(kOutputFlops / flops), kFewestOutputs, kMostOutputs);
    if (told > most) {
      std::random_device device;
      std::shuffle(chosen.begin(), chosen.end(), device);
      chosen.resize(static_cast<size_t>(most));
    }
    for (const int64_t k : chosen) {
      if (stop_()) return Error{.message = "stopped"};
      CHECK_OK(against_prediction(shown_.steps - told + k, shown_.outputs[static_cast<size_t>(k)]));
      if (!audit_.differs.empty()) break;
    }
    return Done{};
  }

  // Timed step `k`.
  Status against_prediction(int64_t k, const ReportedOutput& told) {
    referee::Weights weights = ground_.initial;
    const int64_t nudges = shown_.nudge_every > 0 ? 1 + k / shown_.nudge_every : 1;
    for (int64_t n = 0; n < nudges; ++n) add(shown_.nudge, weights);
    const int64_t whole = ground_.rows / ground_.training.batch;
    const int64_t first = (shown_.position + shown_.lead + k) % whole * ground_.training.batch;
    TRY(const referee::Inputs batch,
        read_inputs(ground_.workload, ground_.data, ground_.training.input_divisor, first,
                    ground_.training.batch));
    if (ground_.training.generates()) return against_words(k, told, weights, batch);
    TRY(const referee::Evaluation e,
        referee::evaluate(ground_.workload, weights, batch, {.train = false, .gradients = false}));
    const auto count = static_cast<double>(e.prediction.data.size());
    const double norm = std::max(tensor::norm(e.prediction), 1e-12);
    const auto compare = [&](const std::string& what, double seen, double expected, double error) {
      if (!std::isfinite(seen)) error = std::numeric_limits<double>::infinity();
      audit_.loss_error = std::max(audit_.loss_error, error);
      if (!(error <= audit_.loss_limit))
        differs(fmt::format("the output of step {} {} {:.6g}, the referee's {:.6g}", k + 1, what, seen,
                            expected));
    };
    if (told.size != static_cast<int64_t>(e.prediction.data.size()))
      differs(fmt::format("an output has {} numbers, the referee's {}", told.size, e.prediction.data.size()));
    const double last = e.prediction.data.back();
    compare("ends in", told.last, last, std::abs(told.last - last) / (norm / std::sqrt(count)));
    const double squares = norm * norm;
    compare("has squares that add up to", told.squares, squares,
            std::abs(told.squares - squares) / (2 * squares));
    return Done{};
  }

  Status against_words(int64_t k, const ReportedOutput& told, const referee::Weights& weights,
                       const referee::Inputs& batch) {
    TRY(const double gap,
        referee::greedy_gap(ground_.workload, weights, batch, told.words, ground_.training.generation));
    audit_.loss_error = std::max(audit_.loss_error, gap);
    if (!(gap <= audit_.loss_limit))
      differs(fmt::format(
          "step {} chose a word whose logit is {:.3g} of their root mean square below the referee's", k + 1,
          gap));
    return Done{};
  }

  // All that can be seen without a referee.
  void check_shown() {
    if (shown_.losses.empty() && !shown_.mean_loss) differs("it reported no loss of its steps");
    if (!shown_.losses.empty() && static_cast<int64_t>(shown_.losses.size()) != shown_.steps)
      differs(fmt::format("it reported {} losses for {} steps", shown_.losses.size(), shown_.steps));
    for (size_t id = 0; id < ground_.initial.size(); ++id) {
      if (!trained(id)) continue;
      const auto told = shown_.sums.find(name(id));
      if (told == shown_.sums.end()) return differs("it did not report the sum of parameter " + name(id));
      if (state_.empty()) continue;
      const double sum = sum_of(state_[id]);
      if (!(std::abs(told->second - sum) <= 4 * sum_rounding(id, sum)))
        differs(
            fmt::format("{} is not what it reported when its burst ended: its sum was {:.8g}, later {:.8g}",
                        name(id), told->second, sum));
    }
  }

  Status against_referee(const std::string& group, const AuditTolerances& t) {
    TRY(const Expected expected, continue_from(ground_, shown_, {}, stop_));
    sums_apart_.assign(expected.after.size(), 0);
    apart_.assign(expected.after.size(), 0);
    const bool full = full_ = Judge::full(group);
    const std::string before = audit_.differs;
    std::vector<double> losses;
    for (size_t k = 0; k < expected.losses.size(); ++k) {
      const double steps = static_cast<double>(shown_.lead) + static_cast<double>(k);
      // Half precision: what parity/proof_variants.h allows of losses and gradients.
      losses.push_back(full ? std::min(t.loss + t.loss_growth * steps, t.loss_most) : 0.25);
    }
    const auto steps = static_cast<double>(shown_.lead + shown_.steps);
    double moved = full ? std::min(t.moved + t.moved_growth * steps, t.moved_most) : 0.9;
    compare(expected, losses, moved);
    if (audit_.differs == before || !full) return Done{};
    // Some trainings amplify rounding more than others, the more the longer a burst is: how much this one
    // does, runs of the referee show, as many as it takes: each can only widen the limits. A ReLU or a maximum
    // on an edge flips in one of them and not in another: of 500 honest bursts of 2 to 12 steps of a small CNN with
    // RMSprop, four runs accused one or two of wrong parameters, as no run had made its flip. So more runs follow,
    // rounded more coarsely, where the losses are right: of losses they would allow too much (5 in 6 bursts without
    // a third of their updates show it by their losses). Of bursts of 12 and 24 steps of that CNN without their last
    // update, they let 3 more of 120 pass; of shorter ones none.
    double apart_most = 0;
    std::vector<double> worst(losses.size(), 0);
    for (uint64_t run = 1; run <= (losses_right_ ? kNoisyRuns : kFineRuns) && audit_.differs != before;
         ++run) {
      TRY(const Expected other, continue_from(ground_, shown_, {coarseness(run) * kSums, run}, stop_));
      double so_far = 0;
      for (size_t k = 0; run <= kFineRuns && k < losses.size(); ++k) {
        so_far = std::max(so_far, apart(other.losses[k], expected.losses[k]));
        worst[k] = std::max(worst[k], so_far);
        losses[k] = std::max(losses[k], std::min(kSpare * worst[k], t.loss_most_shown));
      }
      apart_most = std::max(apart_most, moved_apart(ground_.workload, other.after, expected));
      for (size_t id = 0; id < sums_apart_.size(); ++id) {
        sums_apart_[id] =
            std::max(sums_apart_[id], std::abs(sum_of(other.after[id]) - sum_of(expected.after[id])));
        apart_[id] = std::max(apart_[id], distance(other.after[id], expected.after[id]));
      }
      most_apart_ = t.moved_most_shown;
      moved = std::max(moved, std::min(kSpare * apart_most, t.moved_most_shown));
      audit_.differs = before;
      compare(expected, losses, moved);
    }
    return Done{};
  }

  // Times the rounding of float32 sums; runs count from 1.
  static double coarseness(uint64_t run) { return run <= kFineRuns ? 1 : run <= 8 ? 2 : 4; }

  void compare(const Expected& expected, const std::vector<double>& losses, double moved) {
    audit_.loss_limit = losses.empty() ? 0 : losses.back();
    audit_.moved_limit = moved;
    compare_losses(expected, losses);
    losses_right_ = audit_.differs.empty();
    compare_sums(expected, moved);
    compare_parameters(expected, moved);
  }

  void compare_losses(const Expected& expected, const std::vector<double>& limits) {
    for (size_t k = 0; k < shown_.losses.size() && k < limits.size(); ++k)
      compare_loss(fmt::format("the loss of step {}", k + 1), shown_.losses[k], expected.losses[k],
                   limits[k]);
    if (shown_.mean_loss)
      compare_loss("the mean loss", *shown_.mean_loss, stats::mean(expected.losses), stats::mean(limits));
  }

  void compare_loss(const std::string& what, double loss, double expected, double limit) {
    const double error = apart(loss, expected);
    audit_.loss_error = std::max(audit_.loss_error, error);
    if (!(error <= limit)) differs(fmt::format("{} is {:.6g}, the referee's {:.6g}", what, loss, expected));
  }

  // Only where the parameters themselves are not known: these must have the sums that were reported (check_shown).
  // Wrong elements add up to a sum that is wrong by their norm, or so; but where a ReLU on an edge flips, a whole
  // row moves one way, and its sum by much more than its norm.
  void compare_sums(const Expected& expected, double limit) {
    if (!state_.empty()) return;
    for (size_t id = 0; id < expected.after.size(); ++id) {
      if (!trained(id) || expected.idle[id]) continue;
      const auto told = shown_.sums.find(name(id));
      if (told == shown_.sums.end()) return;
      const double before = sum_of(expected.before[id]), after = sum_of(expected.after[id]);
      const double moved = way_of(expected, id);
      const double allowed =
          alone(limit) * std::max(moved, std::abs(after - before)) + sum_rounding(id, after);
      if (!(std::abs(told->second - after) <= std::max(allowed, kSpare * sums_apart_[id])))
        differs(fmt::format("when its burst ended the sum of {} was {:.8g}, the referee's {:.8g}", name(id),
                            told->second, after));
    }
  }

  void compare_parameters(const Expected& expected, double limit) {
    if (state_.empty()) return;
    double off_all = 0, way_all = 0, rounding_all = 0;
    for (size_t id = 0; id < expected.after.size(); ++id) {
      if (!trained(id) || expected.idle[id]) continue;
      const double off = distance(state_[id], expected.after[id]);
      const double way = way_of(expected, id),
                   net = std::max(distance(expected.after[id], expected.before[id]), expected.lead[id]);
      off_all += off * off;
      way_all += net * net;
      rounding_all += rounding(id) * rounding(id);
      // Of a single one more is allowed: few elements say less than many.
      const double shown = std::min(kSpare * apart_[id], most_apart_ * way);
      if (!(off <= std::max(alone(limit) * way, shown) + rounding(id)))
        differs(fmt::format("{} differs from the referee's by {:.2g} of its way", name(id),
                            off / std::max(way, 1e-300)));
    }
    const double way = std::max(std::sqrt(way_all), 1e-300);
    audit_.moved_error = std::max(0.0, std::sqrt(off_all) - std::sqrt(rounding_all)) / way;
    if (!(audit_.moved_error <= limit))
      differs(
          fmt::format("its parameters differ from the referee's by {:.2g} of their way", audit_.moved_error));
  }

  // Several runs with masks of the referee's own: what differs among them, the worker's may differ by.
  Status against_draws() {
    const std::string before = audit_.differs;
    std::vector<Expected> draws;
    for (const auto& [count, spread] :
         {std::pair{kDraws, kLooksOdd}, {kMoreDraws, student_limit(kMoreDraws)}}) {
      while (draws.size() < count) {
        TRY(Expected one, continue_from(ground_, shown_, {.dropout_seed = 0x5eedu + draws.size()}, stop_));
        draws.push_back(std::move(one));
      }
      audit_.differs = before;
      spread_ = spread;
      compare_draws(draws);
      if (audit_.differs == before) break;
    }
    return Done{};
  }

  // Within how many standard deviations of `draws` values one more of the same kind lies.
  static double student_limit(size_t draws) {
    constexpr double kChance = 1e-9;  // an audit compares some tens of numbers
    const auto n = static_cast<double>(draws);
    return -stats::student_quantile(n - 1, kChance / 2) * std::sqrt(1 + 1 / n);
  }

  void compare_draws(const std::vector<Expected>& draws) {
    std::vector<double> losses;
    for (const Expected& draw : draws) losses.push_back(stats::mean(draw.losses));
    const double mean = shown_.mean_loss        ? *shown_.mean_loss
                        : shown_.losses.empty() ? std::numeric_limits<double>::quiet_NaN()
                                                : stats::mean(shown_.losses);
    audit_.loss_limit = (spread_ * spread_of(losses) + 1e-3) / std::max(std::abs(stats::mean(losses)), 1e-3);
    audit_.loss_error = apart(mean, stats::mean(losses));
    if (!(audit_.loss_error <= audit_.loss_limit))
      differs(fmt::format("the mean loss of its steps is {:.6g}, the referee's {:.6g} with its own masks",
                          mean, stats::mean(losses)));
    for (size_t id = 0; id < ground_.initial.size(); ++id) {
      if (trained(id) && !draws[0].idle[id]) compare_with_draws(draws, id);
    }
    if (!state_.empty()) compare_ways(draws);
  }

  // Of one parameter: its sum, and how far it moved.
  void compare_with_draws(const std::vector<Expected>& draws, size_t id) {
    std::vector<double> sums, ways;
    for (const Expected& draw : draws) {
      sums.push_back(sum_of(draw.after[id]));
      ways.push_back(distance(draw.after[id], draw.before[id]));
    }
    const auto told = shown_.sums.find(name(id));
    if (told == shown_.sums.end()) return;
    const double allowed = spread_ * spread_of(sums) + 0.1 * stats::mean(ways) + sum_rounding(id, sums[0]);
    if (!(std::abs(told->second - stats::mean(sums)) <= allowed))
      differs(
          fmt::format("when its burst ended the sum of {} was {:.8g}, the referee's {:.8g} with masks of "
                      "its own",
                      name(id), told->second, stats::mean(sums)));
    if (state_.empty()) return;
    const double way = distance(state_[id], draws[0].before[id]);
    // Draws differ before the burst as well: the lead-in had masks, too.
    const double apart_before = distance(draws[0].before[id], draws[1].before[id]);
    const double slack = spread_ * spread_of(ways) + 0.15 * stats::mean(ways) + apart_before + rounding(id);
    if (!(std::abs(way - stats::mean(ways)) <= slack))
      differs(fmt::format("{} moved by {:.3g}, the referee's by {:.3g} with its own masks", name(id), way,
                          stats::mean(ways)));
  }

  // Whether all parameters together went the referee's way: its mean over the other draws.
  void compare_ways(const std::vector<Expected>& draws) {
    const auto share = [&](const referee::Weights& seen, std::optional<size_t> without) {
      double product = 0, square = 0;
      for (size_t id = 0; id < seen.size(); ++id) {
        if (!trained(id) || draws[0].idle[id]) continue;
        for (size_t i = 0; i < seen[id].data.size(); ++i) {
          double mean = 0, count = 0;
          for (size_t d = 0; d < draws.size(); ++d) {
            if (without == d) continue;
            mean += draws[d].after[id].data[i] - nudged(id, i);
            ++count;
          }
          mean /= count;
          product += (seen[id].data[i] - nudged(id, i)) * mean;
          square += mean * mean;
        }
      }
      return product / std::max(square, 1e-300);
    };
    std::vector<double> own;
    for (size_t d = 0; d < draws.size(); ++d) own.push_back(share(draws[d].after, d));
    const double seen = share(state_, std::nullopt);
    audit_.moved_limit = spread_ * spread_of(own) + 0.1;
    audit_.moved_error = std::abs(seen - stats::mean(own));
    if (!(audit_.moved_error <= audit_.moved_limit))
      differs(fmt::format("its parameters moved {:.2g} times as far as the referee's with its own masks",
                          seen / stats::mean(own)));
  }

  // Where the burst began but for the lead-in: the same for every draw.
  double nudged(size_t id, size_t i) const {
    return ground_.initial[id].data[i] + (shown_.nudge[id].data.empty() ? 0 : shown_.nudge[id].data[i]);
  }

  // How far a single parameter went. By half precision, updates that cancel each other need not cancel: all
  // their lengths count.
  double way_of(const Expected& expected, size_t id) const {
    if (!full_) return expected.path[id];
    return std::max(distance(expected.after[id], expected.before[id]), expected.lead[id]);
  }

  // The limit of a single parameter.
  static double alone(double limit) { return std::min(3 * limit, std::max(limit, 0.5)); }

  // By ParamId: what rounding makes of its sum and of itself, as runs of the referee show; the latter counts up to
  // this share of its way.
  std::vector<double> sums_apart_ = {}, apart_ = {};
  double most_apart_ = 0;
  bool losses_right_ = false;
  bool full_ = true;   // precision
  double spread_ = 0;  // standard deviations within which the referee's draws count as alike
  const AuditGround& ground_;
  const ShownBurst& shown_;
  const std::function<bool()>& stop_;
  referee::Weights state_ = {};
  Audit audit_;
};

bool used(const ir::Workload& workload, size_t id) {
  for (const ir::Node& node : workload.nodes) {
    for (const ir::Slot& slot : node.params) {
      if (static_cast<size_t>(slot.param) == id) return true;
    }
  }
  return false;
}

}  // namespace

bool can_audit(const ir::Workload& workload, const ir::Training& training) {
  return training.track == ir::Track::kEqualised && !workload.nodes.empty();
}

Result<AuditGround> make_audit_ground(const ir::Workload& workload, const ir::Training& training,
                                      const std::filesystem::path& data, int64_t rows,
                                      const std::filesystem::path& weights) {
  AuditGround ground{.workload = workload, .training = training, .data = data, .rows = rows};
  TRY(const auto file, tensor::SafetensorsFile::open(weights));
  for (const ir::Parameter& parameter : workload.parameters) {
    TRY(Tensor value, file.read(parameter.name));
    ground.initial.push_back(std::move(value));
  }
  return ground;
}

int64_t most_audited_steps(const AuditGround& ground) {
  const auto cost = ir::step_cost(ground.workload, ground.training);
  if (ground.training.predicts() || !cost || cost->flops() <= 0) return std::numeric_limits<int64_t>::max();
  const double steps_s = kRefereeFlops * referee::usual_threads() / static_cast<double>(cost->flops());
  return std::max<int64_t>(1, static_cast<int64_t>(std::min(kLongestAudit * steps_s, 1e9)));
}

double audit_seconds(const AuditGround& ground, int64_t steps) {
  return kLongestAudit * static_cast<double>(steps) / static_cast<double>(most_audited_steps(ground));
}

int64_t nudge_every(const AuditGround& ground) {
  return ground.training.predicts() ? ground.rows / ground.training.batch : 0;
}

Nudge no_nudge(const AuditGround& ground) { return Nudge(ground.initial.size()); }

Result<Nudge> draw_nudge(const AuditGround& ground, std::optional<uint64_t> seed_of_tests) {
  std::random_device source;
  tensor::Rng rng(seed_of_tests.value_or((static_cast<uint64_t>(source()) << 32) | source()));
  Nudge nudge(ground.initial.size());
  const auto draw = [&](size_t id) {
    nudge[id].shape = ground.initial[id].shape;
    for (size_t i = 0; i < ground.initial[id].data.size(); ++i)
      nudge[id].data.push_back(static_cast<float>(kNudge * rng.normal()));
  };
  int64_t elements = 0;
  std::optional<size_t> smallest;
  for (size_t id = 0; id < nudge.size(); ++id) {
    const auto size = static_cast<int64_t>(ground.initial[id].data.size());
    if (!ir::trainable(ground.workload.parameters[id]) || !used(ground.workload, id) || size == 0) continue;
    if (!smallest || size < static_cast<int64_t>(ground.initial[*smallest].data.size())) smallest = id;
    if (size > kSmall || elements + size > kMostNudged) continue;
    elements += size;
    draw(id);
  }
  if (elements == 0 && smallest) draw(*smallest);
  if (!smallest) return Error{.message = "the workload trains no parameter"};
  return nudge;
}

Status write_nudge(const AuditGround& ground, const Nudge& nudge, const std::filesystem::path& file) {
  tensor::NamedTensors named;
  for (size_t id = 0; id < nudge.size(); ++id) {
    if (nudge[id].data.empty()) continue;
    TRY(auto raw, tensor::encode(nudge[id], tensor::DType::kF32));
    named.emplace_back(ground.workload.parameters[id].name, std::move(raw));
  }
  return tensor::write_safetensors(file, named);
}

Result<Audit> audit_burst(const AuditGround& ground, const ShownBurst& shown, const std::string& precision,
                          const AuditTolerances& tolerances, const std::function<bool()>& stop) {
  return Judge(ground, shown, stop).take(precision, tolerances);
}

}  // namespace bakeoff
