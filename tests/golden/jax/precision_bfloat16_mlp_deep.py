"""Trains mlp_deep with JAX and optax."""

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
LEARNING_RATE = 0.001
DROPOUT_RATE = 0.5
SEED = 1
RUNNING_STATISTICS = (
    "bn1.running_mean",
    "bn1.running_var",
    "bn2.running_mean",
    "bn2.running_var",
)

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


def half(array):
    """In bfloat16; its gradient comes back in float32."""
    return array.astype(jnp.bfloat16)


def in_float32(function, x, *arguments, **options):
    """What adds up many elements, here or for a gradient; x comes in half precision."""
    return half(function(x.astype(jnp.float32), *arguments, **options))


def linear(x, weight, bias):
    return half(x @ weight + bias)


def batch_norm(x, scale, shift, stats, mean, var, *, eps, momentum):
    """Normalises with the statistics of the batch and updates the running ones."""
    axes = tuple(range(x.ndim - 1))
    batch_mean, batch_var = x.mean(axes), x.var(axes)
    stats[mean] = (1 - momentum) * stats[mean] + momentum * batch_mean
    stats[var] = (1 - momentum) * stats[var] + momentum * batch_var
    return (x - batch_mean) * (lax.rsqrt(batch_var + eps) * scale) + shift


def dropout(key, x, rate):
    keep = jax.random.bernoulli(key, 1 - rate, x.shape)
    return jnp.where(keep, x / (1 - rate), 0)


def forward(params, stats, x, key):
    """The prediction and the new running statistics."""
    stats = dict(stats)
    keys = jax.random.split(key, 2)
    x = half(x)
    x = linear(x, half(params["fc1.weight"]), params["fc1.bias"])
    x = in_float32(
        batch_norm,
        x,
        params["bn1.weight"],
        params["bn1.bias"],
        stats,
        "bn1.running_mean",
        "bn1.running_var",
        eps=1e-5,
        momentum=0.1,
    )
    x = jax.nn.relu(x)
    x = dropout(keys[0], x, DROPOUT_RATE)
    x = linear(x, half(params["fc2.weight"]), params["fc2.bias"])
    x = in_float32(
        batch_norm,
        x,
        params["bn2.weight"],
        params["bn2.bias"],
        stats,
        "bn2.running_mean",
        "bn2.running_var",
        eps=1e-5,
        momentum=0.1,
    )
    x = jax.nn.relu(x)
    x = dropout(keys[1], x, DROPOUT_RATE)
    logits = linear(x, half(params["fc3.weight"]), params["fc3.bias"])
    return logits.astype(jnp.float32), stats


def loss_fn(params, stats, x, y, key):
    logits, stats = forward(params, stats, x, key)
    losses = optax.softmax_cross_entropy_with_integer_labels(logits, y)
    loss = losses.mean()
    return loss, stats


def make_optimizer():
    return optax.adam(LEARNING_RATE, b1=0.9, b2=0.999, eps=1e-8)


OPTIMIZER = make_optimizer()


class TrainState(NamedTuple):
    params: Any
    stats: Any
    opt_state: Any
    key: Any


def init_state(weights):
    params = {name: jnp.array(value) for name, value in weights.items()}
    stats = {name: params.pop(name) for name in RUNNING_STATISTICS}
    key = jax.random.key(SEED)
    return TrainState(params, stats, OPTIMIZER.init(params), key)


@partial(jax.jit, donate_argnums=0)
def train_step(state, x, y):
    key, dropout_key = jax.random.split(state.key)
    grad_fn = jax.value_and_grad(loss_fn, has_aux=True)
    (loss, stats), grads = grad_fn(state.params, state.stats, x, y, dropout_key)
    updates, opt_state = OPTIMIZER.update(grads, state.opt_state, state.params)
    params = optax.apply_updates(state.params, updates)
    return TrainState(params, stats, opt_state, key), loss


def main():
    here = Path(__file__).resolve().parent
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", default=here / "data.safetensors")
    parser.add_argument("--weights", default=here / "weights.safetensors")
    parser.add_argument("--steps", type=int, default=100)
    args = parser.parse_args()

    state = init_state(load_weights(args.weights))
    data = batches(load_data(args.data))
    for step in range(args.steps):
        state, loss = train_step(state, *next(data))
        if step % 10 == 0:
            print(f"step {step}: loss {loss:.6f}")


if __name__ == "__main__":
    main()
