"""Trains mlp_deep with JAX and optax."""

import argparse
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


def load_data(path):
    """The inputs as numpy arrays."""
    data = load_file(path)
    x = data["x"].astype(np.float32)
    y = data["y"].astype(np.int32)
    return x, y


def batches(arrays):
    """Endless batches of rows in random order."""
    if len(arrays[0]) < BATCH_SIZE:
        raise ValueError("the data has fewer rows than one batch")
    rng = np.random.default_rng(SEED)
    rows = len(arrays[0])
    while True:
        order = rng.permutation(rows)
        for start in range(0, rows - BATCH_SIZE + 1, BATCH_SIZE):
            picked = order[start : start + BATCH_SIZE]
            yield tuple(array[picked] for array in arrays)


def linear(x, weight, bias):
    return x @ weight + bias


def batch_norm(x, scale, shift, stats, mean, var, *, eps=1e-5, momentum=0.01):
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
    x = linear(x, params["fc1.weight"], params["fc1.bias"])
    x = batch_norm(
        x,
        params["bn1.weight"],
        params["bn1.bias"],
        stats,
        "bn1.running_mean",
        "bn1.running_var",
    )
    x = jax.nn.relu(x)
    x = dropout(keys[0], x, DROPOUT_RATE)
    x = linear(x, params["fc2.weight"], params["fc2.bias"])
    x = batch_norm(
        x,
        params["bn2.weight"],
        params["bn2.bias"],
        stats,
        "bn2.running_mean",
        "bn2.running_var",
    )
    x = jax.nn.relu(x)
    x = dropout(keys[1], x, DROPOUT_RATE)
    logits = linear(x, params["fc3.weight"], params["fc3.bias"])
    return logits, stats


def loss_fn(params, stats, x, y, key):
    logits, stats = forward(params, stats, x, key)
    losses = optax.softmax_cross_entropy_with_integer_labels(logits, y)
    loss = losses.mean()
    return loss, stats


def make_optimizer():
    return optax.adam(LEARNING_RATE)


OPTIMIZER = make_optimizer()


def init_params(key):
    init = jax.nn.initializers.lecun_normal()
    keys = iter(jax.random.split(key, 3))
    return {
        "fc1.weight": init(next(keys), (100, 256)),
        "fc1.bias": jnp.zeros((256,)),
        "bn1.weight": jnp.ones((256,)),
        "bn1.bias": jnp.zeros((256,)),
        "fc2.weight": init(next(keys), (256, 128)),
        "fc2.bias": jnp.zeros((128,)),
        "bn2.weight": jnp.ones((128,)),
        "bn2.bias": jnp.zeros((128,)),
        "fc3.weight": init(next(keys), (128, 10)),
        "fc3.bias": jnp.zeros((10,)),
    }


class TrainState(NamedTuple):
    params: Any
    stats: Any
    opt_state: Any
    key: Any


def init_state(key):
    params_key, key = jax.random.split(key)
    params = init_params(params_key)
    stats = {
        "bn1.running_mean": jnp.zeros(256),
        "bn1.running_var": jnp.ones(256),
        "bn2.running_mean": jnp.zeros(128),
        "bn2.running_var": jnp.ones(128),
    }
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
    parser.add_argument("--steps", type=int, default=100)
    args = parser.parse_args()

    state = init_state(jax.random.key(SEED))
    data = batches(load_data(args.data))
    for step in range(args.steps):
        state, loss = train_step(state, *next(data))
        if step % 10 == 0:
            print(f"step {step}: loss {loss:.6f}")


if __name__ == "__main__":
    main()
