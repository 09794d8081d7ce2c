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
from jax import lax
from safetensors.numpy import load_file

BATCH_SIZE = 1000
LEARNING_RATE = 0.1
WARMUP_STEPS = 10
WARMUP_FROM = 0.1
DECAY_STEPS = 90
FINAL_SHARE = 0.01
CLIP_NORM = 1.0
EMA_DECAY = 0.99
ACCUMULATE = 4
NO_DECAY = ("fc1.bias", "fc2.bias")

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


class AverageState(NamedTuple):
    count: Any
    average: Any


def average_weights(decay):
    """Keeps a moving average of the updated parameters; the first update copies."""

    def init(params):
        return AverageState(jnp.zeros([], jnp.int32), optax.tree.zeros_like(params))

    def update(updates, state, params):
        kept = jnp.where(state.count > 0, decay, 0.0)
        average = jax.tree.map(
            lambda a, p, u: (kept * a + (1 - kept) * (p + u)).astype(p.dtype),
            state.average,
            params,
            updates,
        )
        return updates, AverageState(state.count + 1, average)

    return optax.GradientTransformation(init, update)


def decays(params):
    return {name: name not in NO_DECAY for name in params}


def learning_rate(step):
    """That of a step; steps are counted from 0."""
    step = jnp.asarray(step, dtype=float)
    after = step - WARMUP_STEPS
    done = jnp.minimum(after / DECAY_STEPS, 1.0)
    warm = WARMUP_FROM + (1 - WARMUP_FROM) * step / WARMUP_STEPS
    share = FINAL_SHARE + (1 - FINAL_SHARE) * (1 + jnp.cos(jnp.pi * done)) / 2
    return LEARNING_RATE * jnp.where(step < WARMUP_STEPS, warm, share)


def make_optimizer():
    return optax.chain(
        optax.clip_by_global_norm(CLIP_NORM),
        optax.add_decayed_weights(0.01, mask=decays),
        optax.sgd(learning_rate, momentum=0.9, nesterov=False),
        average_weights(EMA_DECAY),
    )


OPTIMIZER = make_optimizer()


def init_params(weights):
    return {name: jnp.array(value) for name, value in weights.items()}


@partial(jax.jit, donate_argnums=(0, 1))
def train_step(params, opt_state, x, y):
    def add(total, part):
        found = jax.value_and_grad(loss_fn)(params, *part)
        return jax.tree.map(lambda t, f: t + f / ACCUMULATE, total, found), None

    parts = [jnp.stack(jnp.split(a, ACCUMULATE)) for a in (x, y)]
    nothing = (jnp.zeros(()), optax.tree.zeros_like(params))
    (loss, grads), _ = lax.scan(add, nothing, parts)
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
