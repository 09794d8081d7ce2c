#include "emit/keras/optimizer_torch.h"

#include "emit/code_writer.h"

namespace bakeoff::emit::keras {
namespace {

using ir::EpsForm;
using ir::Optimizer;
using ir::OptimizerKind;

// v = momentum v + g, and the learning rate of the step: Keras's own momentum holds those of former steps.
void print_momentum(CodeWriter& out, const Optimizer& o, const std::string& name) {
  out.print(R"(momentums = [self.$name$[i].value for i in indices]
torch._foreach_mul_(momentums, self.momentum)
torch._foreach_add_(momentums, grads)
)",
            {{"name", name}});
  if (o.kind == OptimizerKind::kSgd && o.nesterov) {
    out.print(R"(steps = torch._foreach_add(grads, torch._foreach_mul(momentums, self.momentum))
torch._foreach_mul_(steps, lr)
)");
  } else {
    out.line("steps = torch._foreach_mul(momentums, lr)");
  }
}

void print_sgd(CodeWriter& out, const Optimizer& o) {
  if (o.momentum != 0 && o.schedule.varies()) return print_momentum(out, o, "momentums");
  out.line("steps = torch._foreach_mul(grads, lr)");
  if (o.momentum == 0) return;
  // Keras' momentums have the sign of the update.
  out.print(R"(momentums = [self.momentums[i].value for i in indices]
torch._foreach_mul_(momentums, self.momentum)
torch._foreach_sub_(momentums, steps)
)");
  if (o.nesterov) {
    out.line("torch._foreach_sub_(steps, torch._foreach_mul(momentums, self.momentum))");
  } else {
    out.line("steps = torch._foreach_neg(momentums)");
  }
}

void print_rmsprop(CodeWriter& out, const Optimizer& o, EpsForm form) {
  out.print(R"(velocities = [self._velocities[i].value for i in indices]
torch._foreach_mul_(velocities, self.rho)
torch._foreach_addcmul_(velocities, grads, grads, value=1 - self.rho)
)");
  out.print(form == EpsForm::kOutside ? R"(roots = torch._foreach_sqrt(velocities)
torch._foreach_add_(roots, self.epsilon)
)"
                                      : R"(roots = torch._foreach_add(velocities, self.epsilon)
torch._foreach_sqrt_(roots)
)");
  if (o.momentum != 0 && o.schedule.varies()) {
    out.line("grads = torch._foreach_div(grads, roots)");
    return print_momentum(out, o, "_momentums");
  }
  out.print(R"(steps = torch._foreach_mul(grads, lr)
torch._foreach_div_(steps, roots)
)");
  if (o.momentum == 0) return;
  out.print(R"(momentums = [self._momentums[i].value for i in indices]
torch._foreach_mul_(momentums, self.momentum)
torch._foreach_add_(momentums, steps)
steps = momentums
)");
}

void print_adam(CodeWriter& out, EpsForm form) {
  out.print(R"(step = ops.cast(self.iterations + 1, lr.dtype)
correction_1 = 1 - self.beta_1**step
correction_2 = ops.sqrt(1 - self.beta_2**step)
momentums = [self._momentums[i].value for i in indices]
velocities = [self._velocities[i].value for i in indices]
torch._foreach_lerp_(momentums, grads, 1 - self.beta_1)
torch._foreach_mul_(velocities, self.beta_2)
torch._foreach_addcmul_(velocities, grads, grads, value=1 - self.beta_2)
)");
  if (form == EpsForm::kInside) {
    out.print(R"(roots = torch._foreach_add(velocities, self.epsilon * correction_2**2)
torch._foreach_sqrt_(roots)
)");
  } else {
    const char* eps = form == EpsForm::kOutside ? "self.epsilon * correction_2" : "self.epsilon";
    out.print("roots = torch._foreach_sqrt(velocities)\ntorch._foreach_add_(roots, $eps$)\n", {{"eps", eps}});
  }
  out.print(R"(steps = torch._foreach_mul(momentums, lr * correction_2 / correction_1)
torch._foreach_div_(steps, roots)
)");
}

}  // namespace

std::string torch_update(const Optimizer& o, EpsForm form, bool l2) {
  CodeWriter out;
  out.print(R"(@torch.no_grad()
def _backend_update_step(self, grads, trainable_variables, learning_rate):
    # All variables at once, as Keras' own optimizers do on torch.
)");
  const auto body = out.indent();
  out.line("variables = [v.value for v in trainable_variables]");
  if (o.kind != OptimizerKind::kSgd || o.momentum != 0) {
    out.line("indices = [self._get_variable_index(v) for v in trainable_variables]");
  }
  out.line("lr = ops.cast(learning_rate, variables[0].dtype)");
  if (l2 && o.no_decay.empty()) {
    out.line("grads = torch._foreach_add(grads, variables, alpha=WEIGHT_DECAY)");
  } else if (l2) {
    out.print(R"(shares = [float(self._use_weight_decay(v)) for v in trainable_variables]
factors = [WEIGHT_DECAY * share for share in shares]
decays = torch._foreach_mul(variables, factors)
grads = torch._foreach_add(grads, decays)
)");
  }
  switch (o.kind) {
    case OptimizerKind::kSgd:
      print_sgd(out, o);
      break;
    case OptimizerKind::kRmsprop:
      print_rmsprop(out, o, form);
      break;
    case OptimizerKind::kAdam:
    case OptimizerKind::kAdamW:
      print_adam(out, form);
      break;
  }
  out.line("torch._foreach_sub_(variables, steps)");
  return out.text();
}

}  // namespace bakeoff::emit::keras
