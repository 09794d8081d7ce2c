// An optimizer of optax is a chain of transformations. Where optax has the very update (frameworks differ in
// the place of epsilon and in the order of decay and momentum), the stock function is printed; else a chain
// of optax's parts, with a helper of ours for the part that optax lacks.

#include "emit/jax/optimizer.h"

#include <fmt/format.h>

#include <vector>

#include "base/texts.h"
#include "emit/helpers.h"
#include "emit/optimizer_terms.h"
#include "emit/updates.h"

namespace bakeoff::embedded {
const std::vector<File>& jax_optimizer_helpers();
}

namespace bakeoff::emit::jax {
namespace {

using ir::EpsForm;
using ir::Optimizer;
using ir::OptimizerKind;

// A transformation of the chain: head(arguments).
struct Part {
  std::string head;
  std::vector<std::string> arguments;
};

bool needs_eps_hat(const ir::Training& training) {
  const Optimizer& o = training.optimizer;
  return o.adam() && o.eps_form == EpsForm::kHat && training.says("eps_form");
}

// b1, b2 and epsilon, which optax can put outside the root (eps), inside (eps_root) or, by our own, as "hat".
std::vector<std::string> adam_arguments(const ir::Training& training, std::vector<std::string> first) {
  const Optimizer& o = training.optimizer;
  if (needs_eps_hat(training)) {
    return {"b1=" + python_real(o.beta1), "b2=" + python_real(o.beta2), "eps=" + python_real(o.eps)};
  }
  Arguments arguments(training, std::move(first));
  arguments.add("beta1", "b1=" + python_real(o.beta1));
  arguments.add("beta2", "b2=" + python_real(o.beta2));
  if (o.eps_form == EpsForm::kInside && training.says("eps_form")) {
    auto list = arguments.list();
    list.push_back("eps=0.0");
    list.push_back("eps_root=" + python_real(o.eps));
    return list;
  }
  arguments.add("eps", "eps=" + python_real(o.eps));
  return arguments.list();
}

std::vector<std::string> rms_arguments(const ir::Training& training, std::vector<std::string> first) {
  const Optimizer& o = training.optimizer;
  Arguments arguments(training, std::move(first));
  arguments.add("rho", "decay=" + python_real(o.rho));
  arguments.add("eps", "eps=" + python_real(o.eps));
  arguments.add("eps_form", "eps_in_sqrt=" + python_bool(o.eps_form == EpsForm::kInside));
  return arguments.list();
}

// The direction of the step before the learning rate.
Part direction(const ir::Training& training) {
  const Optimizer& o = training.optimizer;
  if (o.kind == OptimizerKind::kRmsprop) return {"optax.scale_by_rms", rms_arguments(training, {})};
  return {needs_eps_hat(training) ? "scale_by_adam_eps_hat" : "optax.scale_by_adam",
          adam_arguments(training, {})};
}

std::string decay(const Optimizer& o) { return python_real(o.weight_decay); }

// What optax takes as a learning rate: a number, or a function of the step.
std::string rate(const Optimizer& o) { return o.schedule.varies() ? "learning_rate" : "LEARNING_RATE"; }

// The stock optimizer, where it is exact.
Part stock(const ir::Training& training) {
  const Optimizer& o = training.optimizer;
  if (o.kind == OptimizerKind::kSgd) {
    Arguments arguments(training, {rate(o)});
    if (o.momentum != 0) {
      arguments.add("momentum", "momentum=" + python_real(o.momentum));
      arguments.add("nesterov", "nesterov=" + python_bool(o.nesterov));
    }
    return {"optax.sgd", arguments.list()};
  }
  if (o.kind == OptimizerKind::kRmsprop) {
    auto list = rms_arguments(training, {rate(o)});
    if (o.momentum != 0) list.push_back("momentum=" + python_real(o.momentum));
    return {"optax.rmsprop", list};
  }
  auto list = adam_arguments(training, {rate(o)});
  if (o.kind == OptimizerKind::kAdam) return {"optax.adam", list};
  if (training.says("weight_decay")) list.push_back("weight_decay=" + decay(o));
  if (!o.no_decay.empty()) list.push_back("mask=decays");
  return {"optax.adamw", list};
}

// The update itself.
std::vector<Part> update(const ir::Training& training) {
  const Optimizer& o = training.optimizer;
  Part l2{"optax.add_decayed_weights", {decay(o)}};
  if (!o.no_decay.empty()) l2.arguments.push_back("mask=decays");
  const bool hat = needs_eps_hat(training);
  const bool apart = o.decoupled() && o.kind != OptimizerKind::kAdamW;
  std::vector<Part> parts;
  if (o.weight_decay != 0 && !o.decoupled()) parts.push_back(l2);
  if (!hat && !apart) {
    parts.push_back(stock(training));
    return parts;
  }
  if (o.kind != OptimizerKind::kSgd) parts.push_back(direction(training));
  if (!o.adam() && o.momentum != 0) {
    parts.push_back(
        {"optax.trace", {"decay=" + python_real(o.momentum), "nesterov=" + python_bool(o.nesterov)}});
  }
  if (o.decoupled() && o.weight_decay != 0) parts.push_back(l2);
  parts.push_back({"optax.scale_by_learning_rate", {rate(o)}});
  return parts;
}

std::vector<Part> chain(const ir::Training& training) {
  const Optimizer& o = training.optimizer;
  std::vector<Part> parts;
  if (o.clip_norm != 0) parts.push_back({"optax.clip_by_global_norm", {"CLIP_NORM"}});
  if (o.clip_value != 0) parts.push_back({"optax.clip", {"CLIP_VALUE"}});
  for (Part& part : update(training)) parts.push_back(std::move(part));
  if (o.ema != 0) parts.push_back({"average_weights", {"EMA_DECAY"}});
  return parts;
}

const RateSpelling kJaxRate = {"step = jnp.asarray(step, dtype=float)", "jnp.where", "jnp.minimum", "jnp.cos",
                               "jnp.pi"};

const Helpers& optimizer_helpers() {
  static const Helpers all(embedded::jax_optimizer_helpers());
  return all;
}

void print_make_optimizer(CodeWriter& out, const ir::Training& training) {
  const Optimizer& o = training.optimizer;
  if (o.schedule.varies()) {
    print_learning_rate(out, o, kJaxRate);
    out.blank(2);
  }
  const auto parts = chain(training);
  out.line("def make_optimizer():");
  const auto body = out.indent();
  if (parts.size() == 1) return out.call("return " + parts[0].head, parts[0].arguments);
  std::vector<std::string> items;
  for (const Part& part : parts)
    items.push_back(fmt::format("{}({})", part.head, join(part.arguments, ", ")));
  const std::string flat = fmt::format("return optax.chain({})", join(items, ", "));
  if (out.column() + flat.size() <= 88) return out.line(flat);
  out.line("return optax.chain(");
  {
    const auto inner = out.indent();
    const std::string joined = join(items, ", ");
    if (out.column() + joined.size() <= 88) {
      out.line(joined);
    } else {
      for (const Part& part : parts) out.call(part.head, part.arguments, ",");
    }
  }
  out.line(")");
}

}  // namespace

std::set<std::string> optimizer_names() { return optimizer_helpers().names(); }

void print_optimizer(CodeWriter& out, const ir::Training& training) {
  CodeWriter maker;
  print_make_optimizer(maker, training);
  out.print(optimizer_helpers().used_by(maker.text()));
  out.print(maker.text());
}

}  // namespace bakeoff::emit::jax
