// TensorFlow without Keras has no optimizers, so a script has a class of its own with the update written out:
// the formula of the recipe, line by line, over a loop of variables. What does not depend on the variable
// (corrections of moments, learning rate) is computed once before the loop.

#include "emit/tensorflow/optimizer.h"

#include <fmt/format.h>

#include <sstream>

#include "base/texts.h"
#include "emit/forward_printer.h"
#include "emit/optimizer_terms.h"
#include "emit/updates.h"

namespace bakeoff::emit::tensorflow {
namespace {

using ir::EpsForm;
using ir::Optimizer;
using ir::OptimizerKind;

bool decays(const Optimizer& o, bool decoupled) { return o.weight_decay != 0 && o.decoupled() == decoupled; }

std::string rate_name(const Optimizer& o) { return o.schedule.varies() ? "lr" : "LEARNING_RATE"; }
std::string decay_name(const Optimizer& o) { return o.no_decay.empty() ? "WEIGHT_DECAY" : "decay"; }
// Whether it knows the number of the update.
bool counts(const Optimizer& o) { return o.adam() || o.schedule.varies() || o.ema != 0; }

const RateSpelling kTensorflowRate = {"step = tf.convert_to_tensor(step)", "tf.where", "tf.minimum", "tf.cos",
                                      "np.pi"};

// A state tensor per variable: the attribute of the class and the name in the loop.
struct Slot {
  const char* attribute;
  const char* name;
};

std::vector<Slot> slots(const Optimizer& o) {
  std::vector<Slot> all;
  if (o.adam()) all = {{"moments", "moment"}, {"squares", "square"}};
  if (o.kind == OptimizerKind::kRmsprop) all.push_back({"squares", "square"});
  if (!o.adam() && o.momentum != 0) all.push_back({"velocities", "velocity"});
  if (o.ema != 0) all.push_back({"averages", "average"});
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
  const std::string rate = rate_name(o), decay = decay_name(o);
  if (o.adam())
    return decays(o, true) ? fmt::format("rate * step + {} * {} * variable", rate, decay) : "rate * step";
  const bool momentum = !o.adam() && o.momentum != 0;
  std::string text = o.kind == OptimizerKind::kSgd ? "g" : "step";
  if (momentum) text = o.kind == OptimizerKind::kSgd && o.nesterov ? "g + MOMENTUM * u" : "u";
  if (decays(o, true)) text += fmt::format(" + {} * variable", decay);
  return rate + " * " + (text.find(' ') == std::string::npos ? text : "(" + text + ")");
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
  for (std::string& constant : update_constants(o)) all.push_back(std::move(constant));
  return all;
}

namespace {

void print_init(CodeWriter& out, const Optimizer& o) {
  const bool groups = !o.no_decay.empty();
  out.line(groups ? "def __init__(self, variables, kept):" : "def __init__(self, variables):");
  const auto init = out.indent();
  out.line("super().__init__()");
  out.line("self.targets = list(variables)");
  if (groups) {
    out.print(
        "names = {id(variable) for variable in kept}  # that do not decay\n"
        "self.decays = [0.0 if id(v) in names else WEIGHT_DECAY for v in variables]\n");
  }
  if (counts(o)) out.line("self.step = tf.Variable(0, dtype=tf.int64, trainable=False)");
  for (const Slot& slot : slots(o))
    out.call(fmt::format("self.{} = zeros_like", slot.attribute), {"variables"});
}

// What precedes the loop over variables.
void print_before(CodeWriter& out, const Optimizer& o, bool sparse) {
  if (o.clips() && sparse) out.line("gradients = [tf.convert_to_tensor(g) for g in gradients]");
  if (o.clip_norm != 0) out.line("gradients, _ = tf.clip_by_global_norm(gradients, CLIP_NORM)");
  if (o.clip_value != 0)
    out.line("gradients = [tf.clip_by_value(g, -CLIP_VALUE, CLIP_VALUE) for g in gradients]");
  if (o.schedule.varies() || o.ema != 0) out.line("done = tf.cast(self.step, self.targets[0].dtype)");
  if (o.schedule.varies()) out.line("lr = learning_rate(done)");
  if (o.ema != 0) out.line("kept = EMA_DECAY * tf.cast(done > 0, done.dtype)  # the first update copies");
  if (o.adam()) {
    out.print(
        "t = tf.cast(self.step.assign_add(1), self.targets[0].dtype)\n"
        "root = tf.sqrt(1 - BETA_2**t)\nrate = $rate$ * root / (1 - BETA_1**t)\n",
        {{"rate", rate_name(o)}});
  } else if (counts(o)) {
    out.line("self.step.assign_add(1)");
  }
}

}  // namespace

void print_optimizer(CodeWriter& out, const Optimizer& o, bool sparse) {
  if (o.schedule.varies()) {
    print_learning_rate(out, o, kTensorflowRate);
    out.blank(2);
  }
  out.line(fmt::format("class {}(tf.Module):", optimizer_name(o.kind)));
  const auto body = out.indent();
  out.line(fmt::format("\"\"\"{}\"\"\"", doc(o)));
  out.blank();
  print_init(out, o);
  out.blank();
  out.line("def apply_gradients(self, gradients):");
  const auto apply = out.indent();
  print_before(out, o, sparse);
  std::vector<std::string> names = {"variable", "g"}, lists = {"self.targets", "gradients"};
  for (const Slot& slot : slots(o)) {
    names.push_back(slot.name);
    lists.push_back(std::string("self.") + slot.attribute);
  }
  if (!o.no_decay.empty()) names.push_back("decay"), lists.push_back("self.decays");
  lists.push_back("strict=True");
  const std::string head = fmt::format("for {} in zip", join(names, ", "));
  out.call(head, lists, ":");
  const auto loop = out.indent();
  if (sparse && !o.clips()) out.line("g = tf.convert_to_tensor(g)");
  if (decays(o, false)) out.line(fmt::format("g = g + {} * variable", decay_name(o)));
  print_step(out, o);
  out.call("variable.assign_sub", {change(o)});
  if (o.ema != 0) out.line("average.assign(kept * average + (1 - kept) * variable)");
}

void print_make_optimizer(CodeWriter& out, const Optimizer& o, const std::vector<std::string>& targets) {
  out.line("def make_optimizer(model):");
  const auto body = out.indent();
  std::vector<std::string> kept;
  for (const int id : o.no_decay) {
    // "encoder.0.bias" -> "model.encoder[0].bias"
    std::string path = "model";
    std::istringstream parts(targets[static_cast<size_t>(id)]);
    for (std::string part; std::getline(parts, part, '.');) {
      const bool number = part.find_first_not_of("0123456789") == std::string::npos;
      path += number ? "[" + part + "]" : "." + part;
    }
    kept.push_back(path);
  }
  print_list(out, "kept = ", '[', kept);
  out.line(fmt::format("return {}(model.trainable_variables, kept)", optimizer_name(o.kind)));
}

}  // namespace bakeoff::emit::tensorflow
