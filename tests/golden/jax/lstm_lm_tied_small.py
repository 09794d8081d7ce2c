"""Trains lstm_lm_tied_small with JAX and optax."""

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

# No TF32 or bfloat16 passes inside float32 matrix products and convolutions.
jax.config.update("jax_default_matmul_precision", "highest")


def load_data(path):
    """The inputs as numpy arrays."""
    data = load_file(path)
    tokens = data["tokens"].astype(np.int32)
    labels = data["labels"].astype(np.int32)
    return tokens, labels


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


def dropout(key, x, rate):
    keep = jax.random.bernoulli(key, 1 - rate, x.shape)
    return jnp.where(keep, x / (1 - rate), 0)


def lstm(x, weight_ih, weight_hh, bias):
    """The whole sequence from a zero state; the gates are i, f, g, o."""

    def step(state, gates):
        h, c = state
        i, f, g, o = jnp.split(gates + h @ weight_hh, 4, axis=-1)
        c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
        h = jax.nn.sigmoid(o) * jnp.tanh(c)
        return (h, c), h

    gates = x @ weight_ih + bias
    zeros = jnp.zeros((x.shape[0], weight_hh.shape[0]), x.dtype)
    _, h = lax.scan(step, (zeros, zeros), jnp.swapaxes(gates, 0, 1))
    return jnp.swapaxes(h, 0, 1)


def forward(params, tokens, key):
    keys = jax.random.split(key, 3)
    x = params["tokens.weight"][tokens]
    x = dropout(keys[0], x, DROPOUT_RATE)
    x = lstm(
        x,
        params["lstm1.weight_ih_l0"],
        params["lstm1.weight_hh_l0"],
        params["lstm1.bias_ih_l0"],
    )
    x = dropout(keys[1], x, DROPOUT_RATE)
    x = lstm(
        x,
        params["lstm2.weight_ih_l0"],
        params["lstm2.weight_hh_l0"],
        params["lstm2.bias_ih_l0"],
    )
    x = dropout(keys[2], x, DROPOUT_RATE)
    return linear(x, params["tokens.weight"].T, params["decoder_bias"])


def loss_fn(params, tokens, labels, key):
    logits = forward(params, tokens, key)
    losses = optax.softmax_cross_entropy_with_integer_labels(logits, labels)
    return losses.mean()


def make_optimizer():
    return optax.adam(LEARNING_RATE, b1=0.9, b2=0.999, eps=1e-8)


OPTIMIZER = make_optimizer()


class TrainState(NamedTuple):
    params: Any
    opt_state: Any
    key: Any


def init_state(weights):
    params = {name: jnp.array(value) for name, value in weights.items()}
    key = jax.random.key(SEED)
    return TrainState(params, OPTIMIZER.init(params), key)


@partial(jax.jit, donate_argnums=0)
def train_step(state, tokens, labels):
    key, dropout_key = jax.random.split(state.key)
    grad_fn = jax.value_and_grad(loss_fn)
    loss, grads = grad_fn(state.params, tokens, labels, dropout_key)
    updates, opt_state = OPTIMIZER.update(grads, state.opt_state, state.params)
    params = optax.apply_updates(state.params, updates)
    return TrainState(params, opt_state, key), loss


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
