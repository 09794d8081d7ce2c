// Keras' optimizers differ from the papers, and Keras 2 from Keras 3, in where epsilon stands, in how the
// learning rate enters the momentum, and in decay. needs() says which of these a recipe asks for otherwise
// than the stock class does; if none, the stock class is printed, else a subclass whose update_step is the
// recipe's formula. Nothing else of a script depends on which of the two it was.

#include "emit/keras/optimizer.h"

#include <fmt/format.h>

#include "emit/code_writer.h"
#include "emit/keras/optimizer_keras2.h"
#include "emit/keras/optimizer_torch.h"
#include "emit/optimizer_terms.h"
#include "emit/updates.h"

namespace bakeoff::emit::keras {
namespace {

using ir::EpsForm;
using ir::Optimizer;
using ir::OptimizerKind;

// What the update needs beyond the stock class.
struct Needs {
  bool eps = false;       // epsilon elsewhere
  bool l2 = false;        // decay through the gradient
  bool momentum = false;  // the learning rate outside of the momentum, where it changes
  bool dense = false;     // IndexedSlices to a tensor
  bool torch = false;     // on the torch backend
  bool second = false;    // in Keras 2
  bool average = false;   // the first average copied, which Keras 2 does not
  bool update() const { return eps || l2 || momentum || dense; }
  bool any() const { return update() || average; }
};

bool has_eps(const Optimizer& o) { return o.kind != OptimizerKind::kSgd; }
EpsForm stock_form(const Optimizer& o) { return o.adam() ? EpsForm::kHat : EpsForm::kInside; }

// "Outside" is an option of Keras 2's Adam.
bool adaptive_epsilon(const ir::Training& training, const Dialect& dialect) {
  const Optimizer& o = training.optimizer;
  return dialect.second && training.says("eps_form") && o.kind == OptimizerKind::kAdam &&
         o.eps_form == EpsForm::kOutside;
}

Needs needs(const ir::Training& training, const Dialect& dialect, const std::string& backend,
            bool embeddings) {
  const Optimizer& o = training.optimizer;
  Needs n;
  n.eps = has_eps(o) && o.eps_form != stock_form(o) && training.says("eps_form") &&
          !adaptive_epsilon(training, dialect);
  n.l2 = o.weight_decay != 0 && !o.decoupled() && training.says("decay_form");
  n.momentum = !o.adam() && o.momentum != 0 && o.schedule.varies();
  n.torch = backend == "torch";
  n.second = dialect.second;
  n.average = dialect.second && o.ema != 0;
  n.dense = dialect.second ? embeddings && (n.eps || n.l2 || n.momentum)
                           : embeddings && backend == "tensorflow" && training.equalised() &&
                                 (has_eps(o) || n.l2 || n.momentum);
  return n;
}

std::string subclass_name(const Optimizer& o, const Needs& n) {
  std::string name = optimizer_name(o.kind);
  if (n.eps) name += o.eps_form == EpsForm::kOutside ? "EpsOutside" : "EpsInside";
  if (n.l2) name += "L2";
  if (n.momentum) name += "Momentum";
  if (!n.update()) return "Averaged" + name;
  return !n.eps && !n.l2 && !n.momentum ? "Dense" + name : name;
}

std::string docstring(const Optimizer& o, const Needs& n) {
  if (n.eps && !o.adam())
    return "RMSprop that divides by sqrt(v) + epsilon; in Keras it is sqrt(v + epsilon).";
  if (n.eps && o.eps_form == EpsForm::kOutside) {
    return optimizer_name(o.kind) + " that divides by sqrt(v_hat) + epsilon, as in the paper's algorithm 1.";
  }
  if (n.eps) return optimizer_name(o.kind) + " that divides by sqrt(v_hat + epsilon).";
  if (n.l2)
    return optimizer_name(o.kind) + " with L2 decay, added to the gradient; in Keras decay is decoupled.";
  if (n.momentum)
    return optimizer_name(o.kind) + " whose momentum does not hold the learning rates of former steps.";
  if (!n.dense) return optimizer_name(o.kind) + " whose average of weights begins with the first update.";
  return optimizer_name(o.kind) + " that adds up the gradients of an embedding's repeated rows first.";
}

// v = momentum v + g, and the learning rate of the step: Keras's own momentum holds those of former steps.
void print_momentum(CodeWriter& out, const Optimizer& o) {
  out.print(R"(lr = ops.cast(learning_rate, variable.dtype)
index = self._get_variable_index(variable)
)");
  const bool sgd = o.kind == OptimizerKind::kSgd;
  if (!sgd) {
    out.print(R"(velocity = self._velocities[index]
mean = self.rho * velocity + (1 - self.rho) * ops.square(gradient)
self.assign(velocity, mean)
)");
    out.line(o.eps_form == EpsForm::kInside ? "gradient = gradient / ops.sqrt(mean + self.epsilon)"
                                            : "gradient = gradient / (ops.sqrt(mean) + self.epsilon)");
  }
  out.print(R"(momentum = self.$momentums$[index]
v = momentum * self.momentum + gradient
self.assign(momentum, v)
)",
            {{"momentums", sgd ? "momentums" : "_momentums"}});
  out.line(sgd && o.nesterov ? "self.assign_sub(variable, lr * (gradient + v * self.momentum))"
                             : "self.assign_sub(variable, lr * v)");
}

void print_rmsprop(CodeWriter& out, const Optimizer& o) {
  out.print(R"(lr = ops.cast(learning_rate, variable.dtype)
index = self._get_variable_index(variable)
velocity = self._velocities[index]
v = self.rho * velocity + (1 - self.rho) * ops.square(gradient)
self.assign(velocity, v)
step = lr * gradient / (ops.sqrt(v) + self.epsilon)
)");
  if (o.momentum != 0) {
    out.print(R"(momentum = self._momentums[index]
step = self.momentum * momentum + step
self.assign(momentum, step)
)");
  }
  out.print("self.assign_sub(variable, step)\n");
}

void print_adam(CodeWriter& out, const Optimizer& o) {
  out.print(R"(lr = ops.cast(learning_rate, variable.dtype)
step = ops.cast(self.iterations + 1, variable.dtype)
correction_1 = 1 - self.beta_1**step
correction_2 = ops.sqrt(1 - self.beta_2**step)
alpha = lr * correction_2 / correction_1
index = self._get_variable_index(variable)
momentum, velocity = self._momentums[index], self._velocities[index]
m = momentum + (1 - self.beta_1) * (gradient - momentum)
v = velocity + (1 - self.beta_2) * (ops.square(gradient) - velocity)
self.assign(momentum, m)
self.assign(velocity, v)
)");
  out.print(o.eps_form == EpsForm::kOutside
                ? "root = ops.sqrt(v) + self.epsilon * correction_2\n"
                : "root = ops.sqrt(v + self.epsilon * ops.square(correction_2))\n");
  out.print("self.assign_sub(variable, alpha * m / root)\n");
}

std::string subclass_text(const Optimizer& o, const Needs& n) {
  CodeWriter out;
  out.print("class $name$(keras.optimizers.$base$):\n",
            {{"name", subclass_name(o, n)}, {"base", optimizer_name(o.kind)}});
  const auto body = out.indent();
  out.print("\"\"\"$doc$\"\"\"\n\n", {{"doc", docstring(o, n)}});
  if (n.torch) {
    out.print(torch_update(o, n.eps ? o.eps_form : stock_form(o), n.l2));
    return out.text();
  }
  if (n.second) {
    if (n.update()) out.print(keras_2_update(o, n.eps, n.l2, n.momentum, n.dense));
    if (n.update() && n.average) out.blank();
    if (n.average) out.print(keras_2_average());
    return out.text();
  }
  out.line("def update_step(self, gradient, variable, learning_rate):");
  const auto method = out.indent();
  if (n.dense) out.line("gradient = tf.convert_to_tensor(gradient)  # sums up repeated rows");
  if (n.l2 && !o.no_decay.empty()) {
    out.print("if self._use_weight_decay(variable):\n    gradient = gradient + WEIGHT_DECAY * variable\n");
  } else if (n.l2) {
    out.line("gradient = gradient + WEIGHT_DECAY * variable");
  }
  if (n.momentum) {
    print_momentum(out, o);
  } else if (!n.eps) {
    out.line("super().update_step(gradient, variable, learning_rate)");
  } else if (o.adam()) {
    print_adam(out, o);
  } else {
    print_rmsprop(out, o);
  }
  return out.text();
}

std::vector<std::string> arguments_of(const ir::Training& training, const Dialect& dialect, const Needs& n) {
  const Optimizer& o = training.optimizer;
  Arguments arguments(training,
                      {o.schedule.varies() ? "learning_rate=Schedule()" : "learning_rate=LEARNING_RATE"});
  if (o.kind == OptimizerKind::kRmsprop) arguments.add("rho", "rho=" + python_real(o.rho));
  if (!o.adam()) arguments.add("momentum", "momentum=" + python_real(o.momentum));
  if (o.kind == OptimizerKind::kSgd) arguments.add("nesterov", "nesterov=" + python_bool(o.nesterov));
  if (o.adam()) {
    arguments.add("beta1", "beta_1=" + python_real(o.beta1));
    arguments.add("beta2", "beta_2=" + python_real(o.beta2));
  }
  if (has_eps(o)) arguments.add("eps", "epsilon=" + python_real(o.eps));
  if (adaptive_epsilon(training, dialect)) arguments.always("adaptive_epsilon=True");
  // AdamW decays by 0.004 unless told otherwise.
  if (!n.l2 && (o.weight_decay != 0 || o.kind == OptimizerKind::kAdamW)) {
    arguments.add("weight_decay", "weight_decay=" + python_real(o.weight_decay));
  }
  if (o.clip_norm != 0) arguments.always("global_clipnorm=CLIP_NORM");
  if (o.clip_value != 0) arguments.always("clipvalue=CLIP_VALUE");
  if (o.ema != 0) {
    arguments.always("use_ema=True");
    arguments.always("ema_momentum=EMA_DECAY");
  }
  return arguments.list();
}

const RateSpelling kKerasRate = {"step = ops.cast(step, keras.config.floatx())", "ops.where", "ops.minimum",
                                 "ops.cos", "np.pi"};
const RateSpelling kKeras2Rate = {"step = tf.cast(step, keras.backend.floatx())", "tf.where", "tf.minimum",
                                  "tf.cos", "np.pi"};

std::string schedule_text(const Optimizer& o, const Dialect& dialect) {
  if (!o.schedule.varies()) return "";
  CodeWriter out;
  print_learning_rate(out, o, dialect.second ? kKeras2Rate : kKerasRate);
  out.print(R"(

class Schedule(keras.optimizers.schedules.LearningRateSchedule):
    """The learning rate of every step."""

    def __call__(self, step):
        return learning_rate(step)

    def get_config(self):
        return {}
)");
  return out.text();
}

}  // namespace

Result<OptimizerText> optimizer_text(const ir::Training& training, const Dialect& dialect,
                                     const std::string& backend, bool embeddings) {
  const Optimizer& o = training.optimizer;
  CHECK_OK(check_eps_form(training));
  const Needs n = needs(training, dialect, backend, embeddings);
  OptimizerText text{.name = "keras.optimizers." + optimizer_name(o.kind),
                     .arguments = arguments_of(training, dialect, n)};
  text.schedule = schedule_text(o, dialect);
  if (n.any()) {
    text.subclass = subclass_text(o, n);
    text.name = subclass_name(o, n);
  }
  text.l2 = n.l2;
  text.torch = n.any() && n.torch;
  return text;
}

}  // namespace bakeoff::emit::keras
