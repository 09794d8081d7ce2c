#include "emit/tensorflow/optimizer.h"

#include <fmt/format.h>

#include "emit/optimizer_terms.h"

namespace bakeoff::emit::tensorflow {
namespace {

using ir::EpsForm;
using ir::Optimizer;
using ir::OptimizerKind;

bool decays(const Optimizer& o, bool decoupled) { return o.weight_decay != 0 && o.decoupled() == decoupled; }

// A state tensor per variable: the attribute of the class and the name in the loop.
struct Slot {
  const char* attribute;
  const char* name;
};

std::vector<Slot> slots(const Optimizer& o) {
  if (o.adam()) return {{"moments", "moment"}, {"squares", "square"}};
  std::vector<Slot> all;
  if (o.kind == OptimizerKind::kRmsprop) all.push_back({"squares", "square"});
  if (o.momentum != 0) all.push_back({"velocities", "velocity"});
  return all;
}

const char* doc(const Optimizer& o) {
  if (o.kind == OptimizerKind::kSgd) {
    if (o.momentum == 0) return "Plain stochastic gradient descent.";
    return o.nesterov ? "Gradient descent with Nesterov momentum." : "Gradient descent with momentum.";
  }
  if (!o.adam()) {
    return o.eps_form == EpsForm::kInside
               ? "Divides by sqrt(v + epsilon), v the mean square of the gradient."
               : "Divides by sqrt(v) + epsilon, v the mean square of the gradient.";
  }
  switch (o.eps_form) {
    case EpsForm::kInside:
      return "Epsilon inside the root: m_hat / sqrt(v_hat + epsilon).";
    case EpsForm::kHat:
      return "Epsilon added to the root of the uncorrected v, as Keras has it.";
    default:
      return "m_hat / (sqrt(v_hat) + epsilon).";
  }
}

void print_step(CodeWriter& out, const Optimizer& o) {
  const bool inside = o.eps_form == EpsForm::kInside;
  if (o.kind != OptimizerKind::kSgd) {
    if (o.adam()) out.line("moment.assign_add((1 - BETA_1) * (g - moment))");
    const std::string rho = o.adam() ? "BETA_2" : "RHO";
    out.print("square.assign_add((1 - $rho$) * (tf.square(g) - square))\n", {{"rho", rho}});
  }
  if (o.adam()) {
    out.line(o.eps_form == EpsForm::kHat ? "step = moment / (tf.sqrt(square) + EPSILON)"
             : inside                    ? "step = moment / tf.sqrt(square + EPSILON * root**2)"
                                         : "step = moment / (tf.sqrt(square) + EPSILON * root)");
  } else if (o.kind == OptimizerKind::kRmsprop) {
    out.line(inside ? "step = g / tf.sqrt(square + EPSILON)" : "step = g / (tf.sqrt(square) + EPSILON)");
  }
  if (!o.adam() && o.momentum != 0) {
    const char* add = o.kind == OptimizerKind::kSgd ? "g" : "step";
    out.print("u = MOMENTUM * velocity + $add$\nvelocity.assign(u)\n", {{"add", add}});
  }
}

// What is taken off a variable. Adam's corrections of both moments are in two scalars, `rate` and `root`, as
// in section 2 of Kingma and Ba, "Adam: A Method for Stochastic Optimization" (2015).
std::string change(const Optimizer& o) {
  if (o.adam())
    return decays(o, true) ? "rate * step + LEARNING_RATE * WEIGHT_DECAY * variable" : "rate * step";
  const bool momentum = !o.adam() && o.momentum != 0;
  std::string text = o.kind == OptimizerKind::kSgd ? "g" : "step";
  if (momentum) text = o.kind == OptimizerKind::kSgd && o.nesterov ? "g + MOMENTUM * u" : "u";
  if (decays(o, true)) text += " + WEIGHT_DECAY * variable";
  return "LEARNING_RATE * " + (text.find(' ') == std::string::npos ? text : "(" + text + ")");
}

}  // namespace

std::vector<std::string> optimizer_constants(const Optimizer& o) {
  std::vector<std::string> all;
  if (o.kind == OptimizerKind::kRmsprop) all.push_back("RHO = " + python_real(o.rho));
  if (o.adam()) {
    all.push_back("BETA_1 = " + python_real(o.beta1));
    all.push_back("BETA_2 = " + python_real(o.beta2));
  }
  if (o.kind != OptimizerKind::kSgd) all.push_back("EPSILON = " + python_real(o.eps));
  if (!o.adam() && o.momentum != 0) all.push_back("MOMENTUM = " + python_real(o.momentum));
  if (o.weight_decay != 0) all.push_back("WEIGHT_DECAY = " + python_real(o.weight_decay));
  return all;
}

void print_optimizer(CodeWriter& out, const Optimizer& o, bool sparse) {
  const auto state = slots(o);
  out.line(fmt::format("class {}(tf.Module):", optimizer_name(o.kind)));
  const auto body = out.indent();
  out.line(fmt::format("\"\"\"{}\"\"\"", doc(o)));
  out.blank();
  out.line("def __init__(self, variables):");
  {
    const auto init = out.indent();
    out.line("super().__init__()");
    out.line("self.targets = list(variables)");
    if (o.adam()) out.line("self.step = tf.Variable(0, dtype=tf.int64, trainable=False)");
    for (const Slot& slot : state) {
      out.call(fmt::format("self.{} = zeros_like", slot.attribute), {"variables"});
    }
  }
  out.blank();
  out.line("def apply_gradients(self, gradients):");
  const auto apply = out.indent();
  if (o.adam()) {
    out.print(
        "t = tf.cast(self.step.assign_add(1), self.targets[0].dtype)\n"
        "root = tf.sqrt(1 - BETA_2**t)\nrate = LEARNING_RATE * root / (1 - BETA_1**t)\n");
  }
  std::vector<std::string> names = {"variable", "g"}, lists = {"self.targets", "gradients"};
  for (const Slot& slot : state) {
    names.push_back(slot.name);
    lists.push_back(std::string("self.") + slot.attribute);
  }
  lists.push_back("strict=True");
  const std::string head = fmt::format("for {} in zip", fmt::join(names, ", "));
  out.call(head, lists, ":");
  const auto loop = out.indent();
  if (sparse) out.line("g = tf.convert_to_tensor(g)");
  if (decays(o, false)) out.line("g = g + WEIGHT_DECAY * variable");
  print_step(out, o);
  out.call("variable.assign_sub", {change(o)});
}

}  // namespace bakeoff::emit::tensorflow
