#include "emit/torch/optimizer.h"

#include <fmt/format.h>

#include "emit/optimizer_terms.h"
#include "emit/torch_rules.h"
#include "emit/updates.h"

namespace bakeoff::emit::torch {
namespace {

using ir::EpsForm;
using ir::Optimizer;
using ir::OptimizerKind;

constexpr const char* kDecoupledDecay = R"(class $name$(torch.optim.$base$):
    """$base$ with weight decay that does not pass through the gradient.

    As in AdamW (Loshchilov & Hutter, 2019): p -= lr * decay * p beside the update.
    """

    def __init__(self, params, *, decay: float, **options) -> None:
        super().__init__(params, **options)
        self.decay = decay

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
$skip$            for p in group["params"]:
                if p.grad is not None:
                    p.mul_(1 - group["lr"] * self.decay)
        return super().step(closure)
)";

// A group of the decoupled classes that does not decay.
constexpr const char* kSkip = R"(            if not group.get("decays", True):
                continue
)";

constexpr const char* kGroups = R"(def parameter_groups(model: nn.Module) -> list[dict]:
    """Those that decay, and those that do not."""
    named = dict(model.named_parameters())
    kept = [named.pop(name) for name in NO_DECAY]
    return [
        {"params": list(named.values())},
        {"params": kept, $none$},
    ]


)";

constexpr const char* kClipNorm = R"(def clip_gradients(model: nn.Module) -> None:
    """Multiplies all gradients with min(1, CLIP_NORM / norm).

    nn.utils.clip_grad_norm_ adds 1e-6 to the norm.
    """
    grads = [p.grad for p in model.parameters() if p.grad is not None]
    norm = nn.utils.get_total_norm(grads)
    torch._foreach_mul_(grads, (CLIP_NORM / norm).clamp(max=1))


)";

constexpr const char* kAdamHat = R"(class AdamEpsHat(torch.optim.$base$):
    """Adam with eps added to sqrt(v) before the bias of v is corrected, as Keras has it.

    That is the "epsilon hat" of Kingma & Ba (2015), section 2. It equals $base$ with an
    eps of eps / sqrt(1 - beta2^t) at step t.
    """

    def __init__(self, params, *, eps: float, **options) -> None:
        super().__init__(params, eps=eps, **options)
        for group in self.param_groups:
            group.update(eps_hat=eps, t=0)

    def step(self, closure=None):
        for group in self.param_groups:
            group["t"] += 1
            correction = 1 - group["betas"][1] ** group["t"]
            group["eps"] = group["eps_hat"] / math.sqrt(correction)
        return super().step(closure)
)";

constexpr const char* kAdamInside = R"(class AdamEpsInside(torch.optim.Optimizer):
    """$title$ that divides by sqrt(v_hat + eps); torch.optim has sqrt(v_hat) + eps."""

    def __init__(self, params, *, lr, betas, eps, weight_decay) -> None:
        defaults = {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay}
        super().__init__(params, defaults | {"t": 0})

    @torch.no_grad()
    def step(self, closure=None) -> None:
        for group in self.param_groups:
            params = [p for p in group["params"] if p.grad is not None]
            grads = [p.grad for p in params]
            if not params:
                continue
            for p in params:
                if not self.state[p]:
                    self.state[p]["m"] = torch.zeros_like(p)
                    self.state[p]["v"] = torch.zeros_like(p)
            m = [self.state[p]["m"] for p in params]
            v = [self.state[p]["v"] for p in params]
            lr, (beta1, beta2) = group["lr"], group["betas"]
            group["t"] += 1
$decay$            torch._foreach_lerp_(m, grads, 1 - beta1)
            torch._foreach_mul_(v, beta2)
            torch._foreach_addcmul_(v, grads, grads, 1 - beta2)
            root = torch._foreach_div(v, 1 - beta2 ** group["t"])
            torch._foreach_add_(root, group["eps"])
            torch._foreach_sqrt_(root)
            torch._foreach_addcdiv_(params, m, root, -lr / (1 - beta1 ** group["t"]))
)";

constexpr const char* kRmspropInside = R"(class RMSpropEpsInside(torch.optim.Optimizer):
    """RMSprop that divides by sqrt(v + eps), as Keras does, instead of sqrt(v) + eps."""

    def __init__(self, params, *, lr, alpha, eps, momentum, weight_decay) -> None:
        defaults = {"lr": lr, "alpha": alpha, "eps": eps}
        super().__init__(
            params, defaults | {"momentum": momentum, "weight_decay": weight_decay}
        )

    @torch.no_grad()
    def step(self, closure=None) -> None:
        for group in self.param_groups:
            params = [p for p in group["params"] if p.grad is not None]
            grads = [p.grad for p in params]
            if not params:
                continue
            for p in params:
                if not self.state[p]:
                    self.state[p]["v"] = torch.zeros_like(p)
                    self.state[p]["momentum"] = torch.zeros_like(p)
            v = [self.state[p]["v"] for p in params]
            lr, alpha = group["lr"], group["alpha"]
$decay$            torch._foreach_mul_(v, alpha)
            torch._foreach_addcmul_(v, grads, grads, 1 - alpha)
            root = torch._foreach_add(v, group["eps"])
            torch._foreach_sqrt_(root)
$update$)";

constexpr const char* kL2 =
    "            grads = torch._foreach_add(grads, params, alpha=group[\"weight_decay\"])\n";
constexpr const char* kBeside = "            torch._foreach_mul_(params, 1 - lr * group[\"weight_decay\"])\n";
constexpr const char* kPlain = "            torch._foreach_addcdiv_(params, grads, root, -lr)\n";
constexpr const char* kMomentum =
    "            b = [self.state[p][\"momentum\"] for p in params]\n"
    "            torch._foreach_mul_(b, group[\"momentum\"])\n"
    "            torch._foreach_addcdiv_(b, grads, root)\n"
    "            torch._foreach_add_(params, b, alpha=-lr)\n";

std::string decay_line(const Optimizer& o) {
  if (o.weight_decay == 0) return "";
  return o.decoupled() ? kBeside : kL2;
}

void sgd_arguments(Arguments& arguments, const Optimizer& o) {
  arguments.add("momentum", "momentum=" + python_real(o.momentum));
  // Without momentum Nesterov's step is the plain one, and torch refuses the flag.
  arguments.add("nesterov", "nesterov=" + python_bool(o.nesterov && o.momentum != 0));
}

void rmsprop_arguments(Arguments& arguments, const Optimizer& o) {
  const bool own = o.eps_form == EpsForm::kInside;  // the class has no defaults
  arguments.add("rho", "alpha=" + python_real(o.rho), own);
  arguments.add("eps", "eps=" + python_real(o.eps), own);
  arguments.add("momentum", "momentum=" + python_real(o.momentum), own);
}

void adam_arguments(Arguments& arguments, const Optimizer& o, bool says_beta2) {
  const bool inside = o.eps_form == EpsForm::kInside;
  arguments.add("beta1", fmt::format("betas=({}, {})", python_real(o.beta1), python_real(o.beta2)),
                inside || says_beta2);
  arguments.add("eps", "eps=" + python_real(o.eps), o.eps_form != EpsForm::kOutside);
}

// Whether it has an argument that it must be given to be captured as a CUDA graph.
bool takes_capturable(const std::string& name) {
  return name == "torch.optim.Adam" || name == "torch.optim.AdamW" || name.ends_with("RMSprop");
}

}  // namespace

std::string optimizer_class(const Optimizer& o) {
  switch (o.kind) {
    case OptimizerKind::kSgd:
      return o.decoupled() ? "DecoupledSGD" : "torch.optim.SGD";
    case OptimizerKind::kRmsprop:
      if (o.eps_form == EpsForm::kInside) return "RMSpropEpsInside";
      return o.decoupled() ? "DecoupledRMSprop" : "torch.optim.RMSprop";
    case OptimizerKind::kAdam:
    case OptimizerKind::kAdamW:
      if (o.eps_form == EpsForm::kInside) return "AdamEpsInside";
      if (o.eps_form == EpsForm::kHat) return "AdamEpsHat";
      return o.decoupled() ? "torch.optim.AdamW" : "torch.optim.Adam";
  }
  return "";
}

bool optimizer_needs_math(const Optimizer& o) { return optimizer_class(o) == "AdamEpsHat"; }

void print_optimizer_class(CodeWriter& out, const ir::Training& training) {
  const Optimizer o = torch_optimizer(training);
  const std::string name = optimizer_class(o);
  const bool beside = o.decoupled(), skips = !o.no_decay.empty();
  if (name == "DecoupledSGD" || name == "DecoupledRMSprop") {
    out.print(kDecoupledDecay, {{"name", name}, {"base", name.substr(9)}, {"skip", skips ? kSkip : ""}});
  } else if (name == "RMSpropEpsInside") {
    out.print(kRmspropInside, {{"decay", decay_line(o)}, {"update", o.momentum != 0 ? kMomentum : kPlain}});
  } else if (name == "AdamEpsInside") {
    out.print(kAdamInside, {{"decay", decay_line(o)}, {"title", beside ? "AdamW" : "Adam"}});
  } else if (name == "AdamEpsHat") {
    out.print(kAdamHat, {{"base", beside ? "AdamW" : "Adam"}});
  } else {
    return;
  }
  out.blank(2);
}

Status check_optimizer(const Request& request) {
  const std::string& impl = request.settings.at("optimizer_impl");
  const std::string name = optimizer_class(torch_optimizer(request.training));
  const bool own = name.ends_with("EpsInside");
  const bool unfused = impl == "fused" && name.ends_with("RMSprop");
  if (impl == "default" || !(own || unfused)) return Done{};
  return Error{.message = own ? fmt::format("torch: {} is the script's own and has no {} form", name, impl)
                              : "torch: torch.optim.RMSprop has no fused form",
               .remedy = "leave out optimizer_impl, or choose another optimizer"};
}

void print_make_optimizer(CodeWriter& out, const Request& request, bool captured) {
  const ir::Training& training = request.training;
  const std::string& impl = request.settings.at("optimizer_impl");
  const Optimizer o = torch_optimizer(training);
  const std::string name = optimizer_class(o);
  const bool groups = !o.no_decay.empty();
  Arguments arguments(training,
                      {groups ? "parameter_groups(model)" : "model.parameters()", "lr=LEARNING_RATE"});
  if (o.kind == OptimizerKind::kSgd) {
    sgd_arguments(arguments, o);
  } else if (o.adam()) {
    adam_arguments(arguments, o, training.says("beta2"));
  } else {
    rmsprop_arguments(arguments, o);
  }
  const std::string decay = python_real(o.weight_decay);
  if (name.starts_with("Decoupled")) {
    arguments.always("decay=" + decay);
  } else {
    arguments.add("weight_decay", "weight_decay=" + decay, name.ends_with("EpsInside"));
  }
  if (impl == "foreach" || impl == "fused") arguments.always(impl + "=True");
  if (impl == "for-loop") arguments.always("foreach=False");
  if (captured && takes_capturable(name)) arguments.always("capturable=True");
  out.line("def make_optimizer(model: nn.Module) -> torch.optim.Optimizer:");
  const auto body = out.indent();
  if (!o.schedule.varies() && o.ema == 0) return out.call("return " + name, arguments.list());
  out.call("optimizer = " + name, arguments.list());
  if (o.schedule.varies()) {
    out.print(
        "optimizer.schedule = torch.optim.lr_scheduler.LambdaLR(\n"
        "    optimizer, lambda step: learning_rate(step) / LEARNING_RATE\n)\n");
  }
  if (o.ema != 0) {
    out.print(
        "optimizer.average = torch.optim.swa_utils.AveragedModel(\n"
        "    model, multi_avg_fn=torch.optim.swa_utils.get_ema_multi_avg_fn(EMA_DECAY)\n)\n");
  }
  out.line("return optimizer");
}

void print_update_functions(CodeWriter& out, const Request& request) {
  const Optimizer& o = request.training.optimizer;
  if (o.schedule.varies()) {
    print_learning_rate(out, o, kPythonRate);
    out.blank(2);
  }
  if (!o.no_decay.empty()) {
    const bool own = optimizer_class(torch_optimizer(request.training)).starts_with("Decoupled");
    out.print(kGroups, {{"none", own ? "\"decays\": False" : "\"weight_decay\": 0.0"}});
  }
  if (o.clip_norm != 0) out.print(kClipNorm);
}

void print_update(CodeWriter& out, const Request& request, bool scaler) {
  const Optimizer& o = request.training.optimizer;
  if (o.clips() && scaler) out.line("scaler.unscale_(optimizer)");
  if (o.clip_norm != 0) out.line("clip_gradients(model)");
  if (o.clip_value != 0) out.line("nn.utils.clip_grad_value_(model.parameters(), CLIP_VALUE)");
  out.print(scaler ? "scaler.step(optimizer)\nscaler.update()\n" : "optimizer.step()\n");
  if (o.schedule.varies()) out.line("optimizer.schedule.step()");
  if (o.ema != 0) out.line("optimizer.average.update_parameters(model)");
}

}  // namespace bakeoff::emit::torch
