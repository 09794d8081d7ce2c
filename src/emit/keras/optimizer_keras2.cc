#include "emit/keras/optimizer_keras2.h"

#include "emit/code_writer.h"

namespace bakeoff::emit::keras {
namespace {

using ir::EpsForm;
using ir::Optimizer;
using ir::OptimizerKind;

// As in Keras 3, see optimizer.cc.
void print_keras_2_momentum(CodeWriter& out, const Optimizer& o) {
  out.print(R"(lr = tf.cast(self.learning_rate, variable.dtype)
index = self._index_dict[self._var_key(variable)]
)");
  const bool sgd = o.kind == OptimizerKind::kSgd;
  if (!sgd) {
    out.print(R"(velocity = self._velocities[index]
velocity.assign(self.rho * velocity + (1 - self.rho) * tf.square(gradient))
)");
    out.line(o.eps_form == EpsForm::kInside ? "gradient = gradient / tf.sqrt(velocity + self.epsilon)"
                                            : "gradient = gradient / (tf.sqrt(velocity) + self.epsilon)");
  }
  out.print(R"(v = self.$momentums$[index]
v.assign(self.momentum * v + gradient)
)",
            {{"momentums", sgd ? "momentums" : "_momentums"}});
  out.line(sgd && o.nesterov ? "variable.assign_sub(lr * (gradient + self.momentum * v))"
                             : "variable.assign_sub(lr * v)");
}

void print_keras_2_rmsprop(CodeWriter& out, const Optimizer& o) {
  out.print(R"(lr = tf.cast(self.learning_rate, variable.dtype)
index = self._index_dict[self._var_key(variable)]
velocity = self._velocities[index]
velocity.assign(self.rho * velocity + (1 - self.rho) * tf.square(gradient))
step = lr * gradient / (tf.sqrt(velocity) + self.epsilon)
)");
  if (o.momentum != 0) {
    out.print(R"(momentum = self._momentums[index]
momentum.assign(self.momentum * momentum + step)
step = momentum
)");
  }
  out.line("variable.assign_sub(step)");
}

void print_keras_2_adam(CodeWriter& out, const Optimizer& o) {
  out.print(R"(lr = tf.cast(self.learning_rate, variable.dtype)
step = tf.cast(self.iterations + 1, variable.dtype)
correction_1 = 1 - self.beta_1**step
correction_2 = tf.sqrt(1 - self.beta_2**step)
index = self._index_dict[self._var_key(variable)]
m, v = self._momentums[index], self._velocities[index]
m.assign_add((1 - self.beta_1) * (gradient - m))
v.assign_add((1 - self.beta_2) * (tf.square(gradient) - v))
)");
  out.print(o.eps_form == EpsForm::kOutside ? "root = tf.sqrt(v) + self.epsilon * correction_2\n"
                                            : "root = tf.sqrt(v + self.epsilon * tf.square(correction_2))\n");
  out.line("variable.assign_sub(lr * correction_2 / correction_1 * m / root)");
}

}  // namespace

std::string keras_2_average() {
  return R"(def _update_model_variables_moving_average(self, var_list):
    # The first update copies, as in Keras 3; Keras 2 begins with the initial weights.
    for variable in var_list:
        index = self._index_dict[self._var_key(variable)]
        average = self._model_variables_moving_average[index]
        kept = EMA_DECAY * tf.cast(self.iterations > 0, variable.dtype)
        average.assign(kept * average + (1 - kept) * variable)
)";
}

std::string keras_2_update(const Optimizer& o, bool eps, bool l2, bool momentum, bool dense) {
  CodeWriter out;
  out.line("def update_step(self, gradient, variable):");
  const auto body = out.indent();
  if (dense) out.line("gradient = tf.convert_to_tensor(gradient)  # an embedding's is sparse");
  if (l2 && !o.no_decay.empty()) out.line("if self._use_weight_decay(variable):");
  if (l2)
    out.print(o.no_decay.empty() ? "gradient = gradient + WEIGHT_DECAY * variable\n"
                                 : "    gradient = gradient + WEIGHT_DECAY * variable\n");
  if (momentum) {
    print_keras_2_momentum(out, o);
  } else if (!eps) {
    out.line("super().update_step(gradient, variable)");
  } else if (o.kind == OptimizerKind::kRmsprop) {
    print_keras_2_rmsprop(out, o);
  } else {
    print_keras_2_adam(out, o);
  }
  return out.text();
}

}  // namespace bakeoff::emit::keras
