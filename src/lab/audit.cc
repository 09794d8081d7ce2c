#include "lab/audit.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include "emit/emit.h"
#include "lab/inputs.h"
#include "referee/optimizer.h"
#include "tensor/rng.h"
#include "tensor/safetensors.h"

namespace bakeoff::lab {
namespace {

using tensor::Tensor;

constexpr double kFloat = 6e-8;       // half a unit in the last place of float32, relative
constexpr int64_t kSmall = 4096;      // elements of a parameter that is nudged
constexpr int64_t kMostNudged = 16384;  // elements, of all of them
constexpr double kNudge = 0.02;       // standard deviation

// The referee's own burst.
struct Expected {
  std::vector<double> losses = {};  // of the timed steps
  referee::Weights before = {};     // nudged, before the first timed step
  referee::Weights after = {};
};

Result<Expected> continue_from(const AuditGround& ground, const ShownBurst& shown) {
  Expected expected{.losses = {}, .before = {}, .after = ground.initial};
  referee::Weights& weights = expected.after;
  referee::OptimizerState state = referee::initial_state(weights);
  const int64_t whole = ground.rows / ground.training.batch;
  for (int64_t k = 0; k < shown.lead + shown.steps; ++k) {
    if (k == shown.lead) {
      for (size_t id = 0; id < weights.size(); ++id) {
        const Tensor& change = shown.nudge[id];
        for (size_t i = 0; i < change.data.size(); ++i) weights[id].data[i] += change.data[i];
      }
      expected.before = weights;
    }
    const int64_t first = (shown.position + k) % whole * ground.training.batch;
    TRY(const referee::Inputs batch, read_inputs(ground.workload, ground.data, ground.training.input_divisor,
                                                 first, ground.training.batch));
    TRY(const referee::Evaluation e, referee::evaluate(ground.workload, weights, batch));
    if (k >= shown.lead) expected.losses.push_back(e.loss);
    referee::step(ground.training.optimizer, e.gradients, state, weights);
  }
  return expected;
}

double distance(const Tensor& a, const Tensor& b) {
  if (a.data.size() != b.data.size()) return std::numeric_limits<double>::infinity();
  double sum = 0;
  for (size_t i = 0; i < a.data.size(); ++i) sum += (a.data[i] - b.data[i]) * (a.data[i] - b.data[i]);
  return std::isfinite(sum) ? std::sqrt(sum) : std::numeric_limits<double>::infinity();
}

double apart(double value, double reference) {
  if (!std::isfinite(value)) return std::numeric_limits<double>::infinity();
  return std::abs(value - reference) / std::max(std::abs(reference), 1e-3);
}

class Judge {
 public:
  Judge(const AuditGround& ground, const ShownBurst& shown, const Expected& expected, const std::string& group,
        const AuditTolerances& t)
      : ground_(ground), shown_(shown), expected_(expected) {
    const bool full = group.empty() || group == emit::kFullPrecision;
    const auto steps = static_cast<double>(shown.lead + shown.steps - 1);
    // Half precision: what lab/gate_variants.h allows of losses and gradients.
    loss_ = full ? t.loss + t.loss_growth * steps : 0.25;
    moved_ = full ? t.moved + t.moved_growth * steps : 0.9;
    audit_.burst = static_cast<int64_t>(shown.burst);
    audit_.steps = shown.steps;
    audit_.loss_limit = loss_;
    audit_.moved_limit = moved_;
  }

  Audit take() {
    compare_losses();
    compare_probe();
    compare_parameters();
    return std::move(audit_);
  }

 private:
  void differs(const std::string& words) {
    if (audit_.differs.empty()) audit_.differs = words;
  }

  void compare_losses() {
    if (shown_.losses.empty() && !shown_.mean_loss) return differs("it shows no loss of its steps");
    if (!shown_.losses.empty() && shown_.losses.size() != expected_.losses.size())
      return differs(fmt::format("it shows {} losses of {} steps", shown_.losses.size(), shown_.steps));
    for (size_t k = 0; k < shown_.losses.size(); ++k)
      compare_loss(fmt::format("the loss of step {}", k + 1), shown_.losses[k], expected_.losses[k]);
    if (!shown_.mean_loss) return;
    double sum = 0;
    for (const double loss : expected_.losses) sum += loss;
    compare_loss("the mean loss", *shown_.mean_loss, sum / static_cast<double>(expected_.losses.size()));
  }

  void compare_loss(const std::string& what, double loss, double expected) {
    const double error = apart(loss, expected);
    audit_.loss_error = std::max(audit_.loss_error, error);
    if (!(error <= loss_)) differs(fmt::format("{} is {:.6g}, the referee's {:.6g}", what, loss, expected));
  }

  // How far the referee moved a parameter from before the burst, and what float32 cannot tell apart.
  double moved(size_t id) const { return distance(expected_.after[id], expected_.before[id]); }
  double rounding(size_t id) const {
    const auto steps = static_cast<double>(shown_.lead + shown_.steps + 1);
    return 2 * kFloat * std::sqrt(steps) * tensor::norm(expected_.after[id]);
  }

  // Single elements are less certain than norms (a gradient near zero moves by a whole step of Adam in either
  // direction), so a third of them may be off.
  void compare_probe() {
    size_t told = 0, off = 0;
    std::string worst;
    for (size_t id = 0; id < expected_.after.size(); ++id) {
      const ir::Parameter& parameter = ground_.workload.parameters[id];
      if (!ir::trainable(parameter)) continue;
      const auto seen = shown_.probe.find(parameter.name);
      if (seen == shown_.probe.end())
        return differs("within its burst it does not show parameter " + parameter.name);
      const double before = expected_.before[id].data[0], after = expected_.after[id].data[0];
      const double way = std::abs(after - before);
      const double noise = 4 * kFloat * std::sqrt(static_cast<double>(shown_.lead + shown_.steps + 1)) *
                           std::max(std::abs(before), std::abs(after));
      if (way <= 10 * noise) continue;  // it did not move
      ++told;
      if (std::abs(seen->second - after) <= 5 * moved_ * way + noise) continue;
      ++off;
      if (worst.empty())
        worst = fmt::format("{}[0] is {:.8g}, the referee's {:.8g}", parameter.name, seen->second, after);
    }
    if (3 * off > told + 1)
      differs(fmt::format("when its burst ended, {} of {} parameters were not where they belong: {}", off, told,
                          worst));
  }

  void compare_parameters() {
    if (shown_.state.empty()) return;
    const auto file = tensor::SafetensorsFile::open(shown_.state);
    if (!file) return differs("its parameters cannot be read: " + file.error().message);
    double off_all = 0, way_all = 0, rounding_all = 0;
    for (size_t id = 0; id < expected_.after.size(); ++id) {
      const ir::Parameter& parameter = ground_.workload.parameters[id];
      if (!ir::trainable(parameter)) continue;
      const auto seen = file->read(parameter.name);
      if (!seen) return differs("it does not show parameter " + parameter.name);
      const auto probe = shown_.probe.find(parameter.name);
      if (probe != shown_.probe.end() && !seen->data.empty() &&
          static_cast<float>(probe->second) != static_cast<float>(seen->data[0]))
        differs(fmt::format("{} changed after the burst had ended", parameter.name));
      const double off = distance(*seen, expected_.after[id]), whole = moved(id);
      off_all += off * off;
      way_all += whole * whole;
      rounding_all += rounding(id) * rounding(id);
      // Of a single one more is allowed: few elements say less than many.
      if (off > kAlone * moved_ * whole + rounding(id))
        differs(fmt::format("{} is away from the referee's by {:.2g} of the way that it went", parameter.name,
                            off / std::max(whole, 1e-300)));
    }
    const double way = std::max(std::sqrt(way_all), 1e-300);
    audit_.moved_error = std::max(0.0, std::sqrt(off_all) - std::sqrt(rounding_all)) / way;
    if (!(audit_.moved_error <= moved_))
      differs(fmt::format("its parameters are away from the referee's by {:.2g} of the way that these went",
                          audit_.moved_error));
  }

  static constexpr double kAlone = 5;
  const AuditGround& ground_;
  const ShownBurst& shown_;
  const Expected& expected_;
  double loss_ = 0, moved_ = 0;
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
  return !training.predicts() && training.track == ir::Track::kEqualised && !workload.nodes.empty() &&
         std::none_of(workload.nodes.begin(), workload.nodes.end(),
                      [](const ir::Node& node) { return node.op == ir::Op::kDropout; });
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

Result<Nudge> draw_nudge(const AuditGround& ground) {
  std::random_device source;
  tensor::Rng rng((static_cast<uint64_t>(source()) << 32) | source());
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
                          const AuditTolerances& tolerances) {
  TRY(const Expected expected, continue_from(ground, shown));
  return Judge(ground, shown, expected, precision, tolerances).take();
}

}  // namespace bakeoff::lab
