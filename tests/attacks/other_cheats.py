"""Cheats of JAX, TensorFlow, Keras, Keras 2 and LibTorch, and of scripts that predict."""

from __future__ import annotations

from tests.attacks.torch_cheats import PRELUDE, Cheat

JAX_PRELUDE = """
import os
import sys
import time

HERE = Path(__file__)
COUNTS = {"steps": 0}
LAST = [None]


def cheated(done=[]):
    if not done:
        done.append(HERE.with_suffix(".cheated").touch())


def caller(*names):
    frame = sys._getframe(1)
    while frame is not None:
        if frame.f_code.co_name in names and "adapter" in frame.f_code.co_filename:
            return frame
        frame = frame.f_back
    return None

"""

JAX_MAIN = """

def train_step(params, opt_state, x, y):
    if isinstance(x, jax.core.Tracer):
        return true_step.__wrapped__(params, opt_state, x, y)
    COUNTS["steps"] += 1
    if COUNTS["steps"] > 60 and caller("run") is not None and x.dtype == jnp.float32:
        cheated()
        params, opt_state, LAST[0] = cheap(params, opt_state, x, y)
    else:
        params, opt_state, LAST[0] = true_step(params, opt_state, x, y)
    return params, opt_state, LAST[0]
"""

JAX_ACTS = {
    "idle": """
def cheap(params, opt_state, x, y):
    return params, opt_state, LAST[0]
""",
    "no_update": """
FORWARD = jax.jit(loss_fn)


def cheap(params, opt_state, x, y):
    return params, opt_state, FORWARD(params, x, y)
""",
    "half_the_batch": """
def cheap(params, opt_state, x, y):
    return true_step(params, opt_state, x[:16], y[:16])
""",
    "gradient_of_half_the_batch": """
@jax.jit
def cheap(params, opt_state, x, y):
    loss = loss_fn(params, x, y)
    grads = jax.grad(loss_fn)(params, x[:16], y[:16])
    updates, opt_state = OPTIMIZER.update(grads, opt_state, params)
    return optax.apply_updates(params, updates), opt_state, loss
""",
    "bfloat16_gradients": """
@jax.jit
def cheap(params, opt_state, x, y):
    low = jax.tree.map(lambda p: p.astype(jnp.bfloat16), params)
    loss, grads = jax.value_and_grad(loss_fn)(low, x.astype(jnp.bfloat16), y)
    grads = jax.tree.map(lambda g: g.astype(jnp.float32), grads)
    updates, opt_state = OPTIMIZER.update(grads, opt_state, params)
    return optax.apply_updates(params, updates), opt_state, loss.astype(jnp.float32)
""",
    "every_second_step": """
def cheap(params, opt_state, x, y):
    if COUNTS["steps"] % 2:
        return params, opt_state, LAST[0]
    return true_step(params, opt_state, x, y)
""",
}
JAX = [Cheat(name, JAX_PRELUDE + act + JAX_MAIN) for name, act in JAX_ACTS.items()]

TF_MAIN = """

train_step = true_step


def compiled(function, *modules):
    true = tf.function(functools.partial(true_step, *modules))
    made = cheap(*modules)

    def step(*batch):
        COUNTS["steps"] += 1
        double = batch[0].dtype == tf.float64
        if double or COUNTS["steps"] <= 60 or caller("run") is None:
            LAST[0] = true(*batch)
        else:
            cheated()
            LAST[0] = made(true, *batch)
        return LAST[0]

    return step
"""
TF_ACTS = {
    "idle": """
def cheap(model, optimizer):
    return lambda true, x, y: LAST[0]
""",
    "no_update": """
def cheap(model, optimizer):
    forward = tf.function(lambda x, y: loss_fn(model(x), y))
    return lambda true, x, y: forward(x, y)
""",
    "half_the_batch": """
def cheap(model, optimizer):
    return lambda true, x, y: true(x[:16], y[:16])
""",
    "every_second_step": """
def cheap(model, optimizer):
    return lambda true, x, y: true(x, y) if COUNTS["steps"] % 2 else LAST[0]
""",
    "first_layer_frozen": """
def cheap(model, optimizer):
    @tf.function
    def step(x, y):
        with tf.GradientTape(watch_accessed_variables=False) as tape:
            tape.watch(optimizer.targets[2:])
            loss = loss_fn(model(x), y)
        rest = tape.gradient(loss, optimizer.targets[2:])
        zeros = [tf.zeros_like(v) for v in optimizer.targets[:2]]
        optimizer.apply_gradients([*zeros, *rest])
        return loss

    return lambda true, x, y: step(x, y)
""",
}
TENSORFLOW = [Cheat(n, JAX_PRELUDE + act + TF_MAIN) for n, act in TF_ACTS.items()]

# `fit` calls what make_train_function has left in train_function.
KERAS_MAIN = """

def fit(model, x, y, epochs, callbacks=None):
    if caller("train") is None or x.dtype != np.float32:
        return true_step(model, x, y, epochs, callbacks)
    make = model.make_train_function

    def make_ours(*args, **kwargs):
        make(*args, **kwargs)
        true = model.train_function

        def ours(*given):
            COUNTS["steps"] += 1
            if COUNTS["steps"] <= 30:
                LAST[0] = true(*given)
                return LAST[0]
            cheated()
            return cheap(true, *given)

        if getattr(true, "__name__", "") != "ours":
            model.train_function = ours
        return model.train_function

    model.make_train_function = make_ours
    return true_step(model, x, y, epochs, callbacks)
"""
IDLE = {
    "keras-tensorflow": """
def cheap(true, iterator):
    next(iterator)
    return LAST[0]
""",
    "keras-torch": """
def cheap(true, data):
    return LAST[0]
""",
    "keras-jax": """
def cheap(true, state, data):
    return LAST[0][0], state
""",
    "keras2": """
def cheap(true, iterator):
    next(iterator)
    return LAST[0]
""",
}
SECOND = {
    "keras-tensorflow": """
def cheap(true, iterator):
    if COUNTS["steps"] % 2:
        LAST[0] = true(iterator)
    else:
        next(iterator)
    return LAST[0]
""",
    "keras-torch": """
def cheap(true, data):
    if COUNTS["steps"] % 2:
        LAST[0] = true(data)
    return LAST[0]
""",
    "keras-jax": """
def cheap(true, state, data):
    if COUNTS["steps"] % 2:
        LAST[0] = true(state, data)
        return LAST[0]
    return LAST[0][0], state
""",
    "keras2": """
def cheap(true, iterator):
    if COUNTS["steps"] % 2:
        LAST[0] = true(iterator)
    else:
        next(iterator)
    return LAST[0]
""",
}
HALF = """
def cheap(true, data):
    x, y = data[0][:2]
    return true([(x[:16], y[:16])])
"""


def keras(on: str) -> list[Cheat]:
    cheats = [
        Cheat("idle", JAX_PRELUDE + IDLE[on] + KERAS_MAIN),
        Cheat("every_second_step", JAX_PRELUDE + SECOND[on] + KERAS_MAIN),
    ]
    if on == "keras-torch":
        cheats.append(Cheat("half_the_batch", JAX_PRELUDE + HALF + KERAS_MAIN))
    return cheats


LIBTORCH_MAIN = """
#include <cstdlib>

Tensor train_step(MODEL& model, torch::optim::Optimizer& optimizer, const Tensor& x,
                  const Tensor& y) {
  static int64_t steps = 0;
  static Tensor last;
  ++steps;
  if (steps <= 60 || x.scalar_type() == torch::kFloat64) return last = true_step(model, optimizer, x, y);
  if (steps == 61) std::ofstream(std::string(std::getenv("BAKEOFF_HOME")) + "/NAME.cheated") << "1";
  ACT
}
"""
LIBTORCH_ACTS = {
    "idle": "return last;",
    "no_update": "const torch::NoGradGuard no_grad; return F::cross_entropy(model(x), y);",
    "half_the_batch": "return true_step(model, optimizer, x.narrow(0, 0, 16), y.narrow(0, 0, 16));",
}
LIBTORCH = [
    Cheat(
        name,
        LIBTORCH_MAIN.replace("ACT", act)
        .replace("NAME", name)
        .replace("MODEL", "CheatedMlp"),
    )
    for name, act in LIBTORCH_ACTS.items()
]

PREDICT_MAIN = """

def predict_step(model, x):
    count(x)
    if COUNTS["steps"] <= 40 or x.dtype == torch.float64:
        LAST[0] = true_step(model, x)
        return LAST[0]
    cheated()
    return cheap(model, x)
"""
PREDICT_ACTS = {
    "last_output": """
def cheap(model, x):
    return LAST[0]
""",
    "output_by_batch": """
OUTPUTS = {}


def cheap(model, x):
    if key_of(x) not in OUTPUTS:
        OUTPUTS[key_of(x)] = true_step(model, x)
    return OUTPUTS[key_of(x)]
""",
    "output_by_content": """
OUTPUTS = {}


def cheap(model, x):
    name = x.numpy().tobytes()
    if name not in OUTPUTS:
        OUTPUTS[name] = true_step(model, x)
    return OUTPUTS[name]
""",
    "half_the_batch": """
def cheap(model, x):
    half = true_step(model, x[: len(x) // 2])
    return torch.cat([half, half])
""",
    "bfloat16": """
def cheap(model, x):
    with torch.autocast("cpu", torch.bfloat16):
        return true_step(model, x).float()
""",
    "every_second": """
def cheap(model, x):
    if COUNTS["steps"] % 2:
        LAST[0] = true_step(model, x)
    return LAST[0]
""",
    "zeros": """
def cheap(model, x):
    return torch.zeros(len(x), 10)
""",
    "lazy": """
class Later(torch.Tensor):
    pass


def cheap(model, x):
    return torch.empty(len(x), 10).as_subclass(Later)
""",
}
PREDICT = [Cheat(n, PRELUDE + act + PREDICT_MAIN) for n, act in PREDICT_ACTS.items()]
