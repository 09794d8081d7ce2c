#include "emit/libtorch/optimizer.h"

#include <fmt/format.h>

#include "base/texts.h"
#include "emit/libtorch/cpp.h"
#include "emit/optimizer_terms.h"
#include "emit/torch_rules.h"
#include "emit/updates.h"

namespace bakeoff::emit::libtorch {
namespace {

using ir::EpsForm;
using ir::Optimizer;
using ir::OptimizerKind;

// "Adam" or "AdamW": what torch::optim calls it.
std::string adam_name(const Optimizer& o) { return o.decoupled() ? "AdamW" : "Adam"; }

constexpr const char* kDecoupledDecay =
    R"(// $base$ with weight decay that does not pass through the gradient, as in AdamW (Loshchilov &
// Hutter, 2019): p -= lr * decay * p beside the update.
class $name$ : public torch::optim::$base$ {
 public:
  $name$(std::vector<Tensor> params, torch::optim::$base$Options options, double decay)
      : $base$(std::move(params), options), decay_(decay) {}

  Tensor step(LossClosure closure = nullptr) override {
    {
      const torch::NoGradGuard no_grad;
      const double factor = 1 - param_groups().front().options().get_lr() * decay_;
      for (Tensor& p : param_groups().front().params()) {
        if (p.grad().defined()) p.mul_(factor);
      }
    }
    return $base$::step(closure);
  }

 private:
  const double decay_;
};

)";

constexpr const char* kAdamHat =
    R"(// $base$ with eps added to sqrt(v) before the bias of v is corrected, as Keras has it: the
// "epsilon hat" of Kingma & Ba (2015), section 2. It equals $base$ with an eps of
// eps / sqrt(1 - beta2^t) at step t.
class AdamEpsHat : public torch::optim::$base$ {
 public:
  AdamEpsHat(std::vector<Tensor> parameters, torch::optim::$base$Options options)
      : $base$(std::move(parameters), options), eps_hat_(options.eps()) {}

  Tensor step(LossClosure closure = nullptr) override {
    auto& options = static_cast<torch::optim::$base$Options&>(param_groups().front().options());
    options.eps(eps_hat_ / std::sqrt(1 - std::pow(std::get<1>(options.betas()), ++t_)));
    return $base$::step(closure);
  }

 private:
  const double eps_hat_;
  int t_ = 0;
};

)";

constexpr const char* kAdamInside =
    R"(// $base$ that divides by sqrt(v_hat + eps); torch::optim has sqrt(v_hat) + eps.
class AdamEpsInside : public torch::optim::$base$ {
 public:
  using $base$::$base$;

  Tensor step(LossClosure = nullptr) override {
    const torch::NoGradGuard no_grad;
    auto& group = param_groups().front();
    const auto& options = static_cast<torch::optim::$base$Options&>(group.options());
    const auto [beta1, beta2] = options.betas();
    std::vector<Tensor>& params = group.params();
    ++t_;
    for (size_t i = 0; i < params.size(); ++i) {
      if (t_ == 1) {
        m_.push_back(torch::zeros_like(params[i]));
        v_.push_back(torch::zeros_like(params[i]));
      }
      Tensor grad = params[i].grad();
      if (!grad.defined()) continue;
$decay$      m_[i].lerp_(grad, 1 - beta1);
      v_[i].mul_(beta2).addcmul_(grad, grad, 1 - beta2);
      const Tensor root = (v_[i] / (1 - std::pow(beta2, t_))).add_(options.eps()).sqrt_();
      params[i].addcdiv_(m_[i], root, -options.lr() / (1 - std::pow(beta1, t_)));
    }
    return {};
  }

 private:
  std::vector<Tensor> m_, v_;
  int t_ = 0;
};

)";

constexpr const char* kRmspropInside =
    R"(// RMSprop that divides by sqrt(v + eps), as Keras does, instead of sqrt(v) + eps.
class RMSpropEpsInside : public torch::optim::RMSprop {
 public:
  using RMSprop::RMSprop;

  Tensor step(LossClosure = nullptr) override {
    const torch::NoGradGuard no_grad;
    auto& group = param_groups().front();
    const auto& options = static_cast<torch::optim::RMSpropOptions&>(group.options());
    std::vector<Tensor>& params = group.params();
    const bool first = v_.empty();
    for (size_t i = 0; i < params.size(); ++i) {
      if (first) v_.push_back(torch::zeros_like(params[i]));
$start$      Tensor grad = params[i].grad();
      if (!grad.defined()) continue;
$decay$      v_[i].mul_(options.alpha()).addcmul_(grad, grad, 1 - options.alpha());
      const Tensor root = v_[i].add(options.eps()).sqrt_();
$update$    }
    return {};
  }

 private:
  std::vector<Tensor> $state$;
};

)";

constexpr const char* kL2 = "      grad = grad.add(params[i], options.weight_decay());\n";
constexpr const char* kBeside = "      params[i].mul_(1 - options.lr() * options.weight_decay());\n";
constexpr const char* kPlain = "      params[i].addcdiv_(grad, root, -options.lr());\n";
constexpr const char* kStart = "      if (first) momentum_.push_back(torch::zeros_like(params[i]));\n";
constexpr const char* kMomentum =
    "      momentum_[i].mul_(options.momentum()).addcdiv_(grad, root);\n"
    "      params[i].add_(momentum_[i], -options.lr());\n";

std::string decay_line(const Optimizer& o) {
  if (o.weight_decay == 0) return "";
  return o.decoupled() ? kBeside : kL2;
}

void sgd_options(Arguments& options, const Optimizer& o) {
  options.add("momentum", fmt::format("momentum({})", python_real(o.momentum)));
  // Without momentum Nesterov's step is the plain one, and torch refuses the flag.
  const bool nesterov = o.nesterov && o.momentum != 0;
  options.add("nesterov", fmt::format("nesterov({})", nesterov ? "true" : "false"));
}

void rmsprop_options(Arguments& options, const Optimizer& o) {
  const bool own = o.eps_form == EpsForm::kInside;
  options.add("rho", fmt::format("alpha({})", python_real(o.rho)), own);
  options.add("eps", fmt::format("eps({})", python_real(o.eps)), own);
  options.add("momentum", fmt::format("momentum({})", python_real(o.momentum)), own);
}

void adam_options(Arguments& options, const Optimizer& o, bool says_beta2) {
  const bool own = o.eps_form != EpsForm::kOutside;
  options.add("beta1", fmt::format("betas({{{}, {}}})", python_real(o.beta1), python_real(o.beta2)),
              says_beta2);
  options.add("eps", fmt::format("eps({})", python_real(o.eps)), own);
}

std::string base_class(const Optimizer& o) {
  if (o.adam()) return adam_name(o);
  return o.kind == OptimizerKind::kSgd ? "SGD" : "RMSprop";
}

}  // namespace

std::string optimizer_class(const Optimizer& o) {
  const bool rmsprop = o.kind == OptimizerKind::kRmsprop;
  if (rmsprop && o.eps_form == EpsForm::kInside) return "RMSpropEpsInside";
  if (o.adam() && o.eps_form == EpsForm::kInside) return "AdamEpsInside";
  if (o.adam() && o.eps_form == EpsForm::kHat) return "AdamEpsHat";
  if (!o.adam() && o.decoupled()) return rmsprop ? "DecoupledRMSprop" : "DecoupledSGD";
  return "torch::optim::" + base_class(o);
}

void print_optimizer_class(CodeWriter& out, const ir::Training& training) {
  const Optimizer o = torch_optimizer(training);
  const std::string name = optimizer_class(o);
  if (name.starts_with("Decoupled")) {
    out.print(kDecoupledDecay, {{"name", name}, {"base", base_class(o)}});
  } else if (name == "RMSpropEpsInside") {
    const bool momentum = o.momentum != 0;
    out.print(kRmspropInside, {{"decay", decay_line(o)},
                               {"start", momentum ? kStart : ""},
                               {"state", momentum ? "v_, momentum_" : "v_"},
                               {"update", momentum ? kMomentum : kPlain}});
  } else if (name == "AdamEpsInside") {
    out.print(kAdamInside, {{"decay", decay_line(o)}, {"base", base_class(o)}});
  } else if (name == "AdamEpsHat") {
    out.print(kAdamHat, {{"base", base_class(o)}});
  }
}

bool surrounded(const Optimizer& o) { return o.schedule.varies() || o.clips() || o.ema != 0; }

namespace {

// "AdamW" of "torch::optim::AdamW".
std::string last_name(const std::string& name) { return name.substr(name.rfind(':') + 1); }

constexpr const char* kClipNorm = R"(      std::vector<Tensor> norms;
      for (const Tensor& grad : grads) norms.push_back(grad.norm());
      const Tensor factor = (kClipNorm / torch::stack(norms).norm()).clamp_max(1);
      for (Tensor& grad : grads) grad.mul_(factor);
)";
constexpr const char* kClipValue = "      for (Tensor& grad : grads) grad.clamp_(-kClipValue, kClipValue);\n";
constexpr const char* kGradients = R"(      std::vector<Tensor> grads;
      for (auto& group : param_groups()) {
        for (const Tensor& p : group.params()) {
          if (p.grad().defined()) grads.push_back(p.grad());
        }
      }
)";
constexpr const char* kAverage = R"(    const torch::NoGradGuard no_grad;
    for (auto& group : param_groups()) {
      for (const Tensor& p : group.params()) {
        // The first update copies.
        const auto [average, first] = averages_.try_emplace(p.unsafeGetTensorImpl(), p.detach());
        if (first) {
          average->second = p.detach().clone();
        } else {
          average->second.lerp_(p, 1 - kEmaDecay);
        }
      }
    }
)";

// The class whose step() has what surrounds an update.
void print_surrounded(CodeWriter& out, const Optimizer& o, const std::string& base) {
  const std::string last = last_name(base);
  out.line(
      fmt::format("// {} with the recipe's {}.", last,
                  join(std::vector<std::string>{o.clips() && o.ema != 0 ? "clipping and average of weights"
                                                : o.clips()             ? "clipping"
                                                : o.ema != 0            ? "average of weights"
                                                                        : "learning rates"},
                       "")));
  out.line(fmt::format("class RecipeOptimizer : public {} {{", base));
  out.line(" public:");
  out.line(fmt::format("  using {0}::{0};", last));
  out.blank();
  out.line("  Tensor step(LossClosure closure = nullptr) override {");
  if (o.clips()) {
    out.print("    {\n      const torch::NoGradGuard no_grad;\n");
    out.print(kGradients);
    out.print(o.clip_norm != 0 ? kClipNorm : kClipValue);
    out.line("    }");
  }
  if (o.schedule.varies())
    out.line("    for (auto& group : param_groups()) group.options().set_lr(learning_rate(steps_));");
  if (o.schedule.varies()) out.line("    ++steps_;");
  out.line(fmt::format("    const Tensor loss = {}::step(closure);", last));
  if (o.ema != 0) out.print(kAverage);
  out.print("    return loss;\n  }\n");
  if (o.schedule.varies()) out.print("\n  double rate(int64_t step) const { return learning_rate(step); }\n");
  if (o.ema != 0)
    out.print(
        "\n  Tensor average(const Tensor& p) const { return averages_.at(p.unsafeGetTensorImpl()); }\n");
  if (o.schedule.varies() || o.ema != 0) out.print("\n private:\n");
  if (o.schedule.varies()) out.line("  int64_t steps_ = 0;");
  if (o.ema != 0) out.line("  std::map<c10::TensorImpl*, Tensor> averages_;");
  out.print("};\n\n");
}

// Two groups of parameters: with and without decay.
void print_groups(CodeWriter& out, const std::string& made, const std::string& options) {
  out.print(R"(std::vector<Tensor> decayed, kept;
for (const auto& item : model->named_parameters()) {
  (kNoDecay.contains(item.key()) ? kept : decayed).push_back(item.value());
}
)");
  call(out, made + " optimizer", {"std::vector<torch::optim::OptimizerParamGroup>{decayed, kept}", "options"},
       ";");
  // A group takes from the others every option that it leaves at the constructor's default, also a weight decay of 0.
  out.line("auto& still = optimizer.param_groups().back().options();");
  statement(out, fmt::format("static_cast<torch::optim::{}&>(still).weight_decay(0.0);", options));
  out.line("return optimizer;");
}

}  // namespace

Status check_optimizer(const ir::Training& training) {
  const Optimizer o = torch_optimizer(training);
  const std::string name = optimizer_class(o);
  if (o.no_decay.empty() || name.starts_with("torch::optim::")) return Done{};
  return Error{
      .message = fmt::format("libtorch: {} is the program's own and has one group of parameters", name),
      .remedy = "remove optimizer.no_decay, or choose a form of the optimizer that torch::optim has"};
}

void print_update_constants(CodeWriter& out, const Request& request) {
  const Optimizer& o = request.training.optimizer;
  for (const std::string& constant : update_constants(o)) {
    const size_t equals = constant.find(" = ");
    const std::string name = constant.substr(0, equals), value = constant.substr(equals + 3);
    const bool whole = value.find_first_not_of("0123456789") == std::string::npos;
    out.line(fmt::format("constexpr {} {} = {};", whole ? "int64_t" : "double", cpp_constant(name), value));
  }
  if (o.no_decay.empty()) return;
  std::vector<std::string> names;
  for (const int id : o.no_decay)
    names.push_back("\"" + request.workload.parameters[static_cast<size_t>(id)].name + "\"");
  statement(out, fmt::format("const std::set<std::string> kNoDecay = {{{}}};", join(names, ", ")));
}

void print_surrounding(CodeWriter& out, const ir::Training& training) {
  const Optimizer o = torch_optimizer(training);
  if (o.schedule.varies()) print_learning_rate_cpp(out, o);
  if (surrounded(o)) print_surrounded(out, o, optimizer_class(o));
}

void print_make_optimizer(CodeWriter& out, const ir::Training& training, const std::string& model) {
  const Optimizer o = torch_optimizer(training);
  const std::string name = optimizer_class(o);
  const std::string made = surrounded(o) ? "RecipeOptimizer" : name;
  Arguments options(training, {});
  if (o.kind == OptimizerKind::kSgd) {
    sgd_options(options, o);
  } else if (o.adam()) {
    adam_options(options, o, training.says("beta2"));
  } else {
    rmsprop_options(options, o);
  }
  const std::string decay = python_real(o.weight_decay);
  const bool beside = name.starts_with("Decoupled");
  // AdamW has a default decay where none is written.
  if (!beside)
    options.add("weight_decay", fmt::format("weight_decay({})", decay), name.ends_with("EpsInside"));
  out.line(fmt::format("{} make_optimizer({}& model) {{", made, model));
  {
    const auto body = out.indent();
    out.line(fmt::format("torch::optim::{}Options options(kLearningRate);", base_class(o)));
    if (!options.list().empty()) statement(out, fmt::format("options.{};", join(options.list(), ".")));
    std::vector<std::string> arguments = {"model->parameters()", "options"};
    if (beside) arguments.push_back(decay);
    if (o.no_decay.empty())
      call(out, "return " + made, arguments, ";");
    else
      print_groups(out, made, base_class(o) + "Options");
  }
  out.line("}");
  out.blank();
}

}  // namespace bakeoff::emit::libtorch
