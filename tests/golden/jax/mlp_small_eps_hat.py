"""Trains mlp_small with JAX and optax."""

import argparse
import itertools
import json
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from safetensors.numpy import load_file

BATCH_SIZE = 1000
LEARNING_RATE = 0.001

# No TF32 or bfloat16 passes inside float32 matrix products and convolutions.
jax.config.update("jax_default_matmul_precision", "highest")


def load_data(path):
    """The inputs as numpy arrays."""
    data = load_file(path)
    x = data["x"].astype(np.float32)
    y = data["y"].astype(np.int32)
    return x, y


def load_weights(path):
    """Initial weights (kernels O, I, H, W; linear O, I) as this script stores them."""
    layout_file = Path(__file__).with_name("train_jax.layout.json")
    layout = json.loads(layout_file.read_text())
    weights = {}
    for name, array in load_file(path).items():
        entry = layout.get(name, {"target": name})
        array = array.reshape(entry.get("view", array.shape))
        array = array.transpose(entry.get("perm", range(array.ndim)))
        array = array.reshape(entry.get("reshape", array.shape))
        weights[entry["target"]] = array
    return weights


def batches(arrays):
    """Endless batches on the device, in file order; rows left over are dropped."""
    if len(arrays[0]) < BATCH_SIZE:
        raise ValueError("the data has fewer rows than one batch")
    starts = range(0, len(arrays[0]) - BATCH_SIZE + 1, BATCH_SIZE)
    ready = [tuple(jnp.array(a[i : i + BATCH_SIZE]) for a in arrays) for i in starts]
    return itertools.cycle(ready)


def linear(x, weight, bias):
    return x @ weight + bias


def forward(params, x):
    x = linear(x, params["fc1.weight"], params["fc1.bias"])
    x = jax.nn.relu(x)
    return linear(x, params["fc2.weight"], params["fc2.bias"])


def loss_fn(params, x, y):
    logits = forward(params, x)
    losses = optax.softmax_cross_entropy_with_integer_labels(logits, y)
    return losses.mean()


class ScaleByAdamState(NamedTuple):
    count: Any
    mu: Any
    nu: Any


def scale_by_adam_eps_hat(b1, b2, eps):
    """Adam with the "epsilon hat" of Kingma & Ba (2015), section 2, as Keras has it.

    optax.scale_by_adam divides by sqrt(v_hat) + eps. Here epsilon is added to the
    root of the uncorrected v: sqrt(1 - b2^t) / (1 - b1^t) * m / (sqrt(v) + eps).
    """

    def init(params):
        mu, nu = optax.tree.zeros_like(params), optax.tree.zeros_like(params)
        return ScaleByAdamState(jnp.zeros([], jnp.int32), mu, nu)

    def update(grads, state, params=None):
        count = state.count + 1
        mu = optax.tree.update_moment(grads, state.mu, b1, 1)
        nu = optax.tree.update_moment(grads, state.nu, b2, 2)
        scale = jnp.sqrt(1 - b2**count) / (1 - b1**count)
        updates = jax.tree.map(
            lambda m, v: (scale * m / (jnp.sqrt(v) + eps)).astype(m.dtype), mu, nu
        )
        return updates, ScaleByAdamState(count, mu, nu)

    return optax.GradientTransformation(init, update)


def make_optimizer():
    return optax.chain(
        scale_by_adam_eps_hat(b1=0.9, b2=0.999, eps=1e-7),
        optax.add_decayed_weights(0.1),
        optax.scale_by_learning_rate(LEARNING_RATE),
    )


OPTIMIZER = make_optimizer()


def init_params(weights):
    return {name: jnp.array(value) for name, value in weights.items()}


@partial(jax.jit, donate_argnums=(0, 1))
def train_step(params, opt_state, x, y):
    loss, grads = jax.value_and_grad(loss_fn)(params, x, y)
    updates, opt_state = OPTIMIZER.update(grads, opt_state, params)
    return optax.apply_updates(params, updates), opt_state, loss


def main():
    here = Path(__file__).resolve().parent
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", default=here / "data.safetensors")
    parser.add_argument("--weights", default=here / "weights.safetensors")
    parser.add_argument("--steps", type=int, default=100)
    args = parser.parse_args()

    params = init_params(load_weights(args.weights))
    opt_state = OPTIMIZER.init(params)
    data = batches(load_data(args.data))
    for step in range(args.steps):
        params, opt_state, loss = train_step(params, opt_state, *next(data))
        if step % 10 == 0:
            print(f"step {step}: loss {loss:.6f}")


if __name__ == "__main__":
    main()
