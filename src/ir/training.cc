#include "ir/training.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/texts.h"

namespace bakeoff::ir {

double Schedule::factor(int64_t t) const {
  t = std::max<int64_t>(0, t - late);
  if (t < warmup_steps)
    return warmup_from + (1 - warmup_from) * static_cast<double>(t) / static_cast<double>(warmup_steps);
  const int64_t u = t - warmup_steps;
  const double p =
      steps > 0 ? static_cast<double>(std::min(u, steps)) / static_cast<double>(steps) : double{1};
  switch (kind) {
    case ScheduleKind::kConstant:
      return 1;
    case ScheduleKind::kStep:
      return std::pow(step_factor, static_cast<double>(u / every));
    case ScheduleKind::kCosine:
      return final + (1 - final) * (1 + std::cos(std::numbers::pi * p)) / 2;
    case ScheduleKind::kLinear:
      return 1 + (final - 1) * p;
  }
  return 1;
}

std::vector<int64_t> Schedule::corners() const {
  std::vector<int64_t> all = {0};
  if (warmup_steps > 0) all.push_back(warmup_steps);
  if (kind == ScheduleKind::kStep)
    for (const int64_t n : {1, 2}) all.push_back(warmup_steps + n * every);
  if (kind == ScheduleKind::kCosine || kind == ScheduleKind::kLinear) all.push_back(warmup_steps + steps);
  return all;
}

std::string name(Scenario scenario) {
  constexpr const char* kNames[] = {"train", "predict", "generate"};
  return kNames[static_cast<size_t>(scenario)];
}

std::string name(Track track) { return track == Track::kEqualised ? "equalised" : "as-is"; }

std::string name(OptimizerKind kind) {
  switch (kind) {
    case OptimizerKind::kSgd:
      return "sgd";
    case OptimizerKind::kRmsprop:
      return "rmsprop";
    case OptimizerKind::kAdam:
      return "adam";
    case OptimizerKind::kAdamW:
      return "adamw";
  }
  return "";
}

std::string name(EpsForm form) {
  switch (form) {
    case EpsForm::kOutside:
      return "outside";
    case EpsForm::kInside:
      return "inside";
    case EpsForm::kHat:
      return "hat";
  }
  return "";
}

std::string name(ScheduleKind kind) {
  switch (kind) {
    case ScheduleKind::kConstant:
      return "constant";
    case ScheduleKind::kStep:
      return "step";
    case ScheduleKind::kCosine:
      return "cosine";
    case ScheduleKind::kLinear:
      return "linear";
  }
  return "";
}

std::string name(DecayForm form) { return form == DecayForm::kL2 ? "l2" : "decoupled"; }

std::string dump(const Training& t) {
  const Optimizer& o = t.optimizer;
  const Schedule& s = o.schedule;
  return fmt::format(
      "{}{} {} {} {} {} {} | {} {} {} {} {} {} {} {} {} {} {} | {} {} {} {} {} {} {} | {} {} {} {} | {} | {}",
      name(t.scenario), t.generates() ? fmt::format(" {} {}", t.generation.prompt, t.generation.words) : "",
      name(t.track), t.batch, t.precision, t.input_divisor, t.seed, name(o.kind), o.lr, o.momentum,
      o.nesterov, o.rho, o.beta1, o.beta2, o.eps, name(o.eps_form), o.weight_decay, name(o.decay_form),
      name(s.kind), s.warmup_steps, s.warmup_from, s.steps, s.final, s.every, s.step_factor, o.clip_norm,
      o.clip_value, o.ema, o.accumulate, join(o.no_decay, " "), t.equalised() ? "" : join(o.stated, " "));
}

}  // namespace bakeoff::ir
