#include "emit/optimizer_terms.h"

namespace bakeoff::emit {

using ir::Optimizer;
using ir::OptimizerKind;

std::string optimizer_name(OptimizerKind kind) {
  switch (kind) {
    case OptimizerKind::kSgd:
      return "SGD";
    case OptimizerKind::kRmsprop:
      return "RMSprop";
    case OptimizerKind::kAdam:
      return "Adam";
    case OptimizerKind::kAdamW:
      return "AdamW";
  }
  return "";
}

Status check_eps_form(const ir::Training& training) {
  const Optimizer& o = training.optimizer;
  if (training.predicts() || o.kind != OptimizerKind::kRmsprop || o.eps_form != ir::EpsForm::kHat)
    return Done{};
  return Error{.message = "RMSprop has no eps_form \"hat\"", .remedy = "use \"outside\" or \"inside\""};
}

Optimizer effective_optimizer(const ir::Training& training, Optimizer defaults) {
  const Optimizer& given = training.optimizer;
  if (training.equalised()) return given;
  const auto take = [&](const char* key, auto member) {
    if (given.stated.contains(key)) defaults.*member = given.*member;
  };
  defaults.kind = given.kind;
  defaults.lr = given.lr;
  defaults.no_decay = given.no_decay;
  defaults.schedule = given.schedule;
  defaults.clip_norm = given.clip_norm;
  defaults.clip_value = given.clip_value;
  defaults.ema = given.ema;
  defaults.accumulate = given.accumulate;
  take("momentum", &Optimizer::momentum);
  take("nesterov", &Optimizer::nesterov);
  take("rho", &Optimizer::rho);
  take("beta1", &Optimizer::beta1);
  take("beta2", &Optimizer::beta2);
  take("eps", &Optimizer::eps);
  take("eps_form", &Optimizer::eps_form);
  take("weight_decay", &Optimizer::weight_decay);
  take("decay_form", &Optimizer::decay_form);
  return defaults;
}

}  // namespace bakeoff::emit
