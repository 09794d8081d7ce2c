"""The language model of recipes/lstm_lm_small.toml in JAX, as one would type it."""

# mypy: ignore-errors

import jax
import jax.numpy as jnp
import optax
from jax import lax
from jax_loop import cross_entropy, dropout, load_batches, load_weights, train_loop
from pairing.bursts import Bursts

DROPOUT = 0.5


def native(name, w):
    return w.T if w.ndim == 2 and name != "tokens.weight" else w


def lstm(p, name, x):
    w, b = p[name + ".weight_hh_l0"], p[name + ".bias_ih_l0"]
    x = jnp.swapaxes(x @ p[name + ".weight_ih_l0"] + b, 0, 1)

    def cell(carry, gates):
        h, c = carry
        i, f, g, o = jnp.split(gates + h @ w, 4, axis=-1)
        c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
        h = jax.nn.sigmoid(o) * jnp.tanh(c)
        return (h, c), h

    start = jnp.zeros((x.shape[1], w.shape[0]))
    _, h = lax.scan(cell, (start, start), x)
    return jnp.swapaxes(h, 0, 1)


def loss_fn(p, running, key, tokens, labels):
    keys = jax.random.split(key, 3)
    x = dropout(keys[0], p["tokens.weight"][tokens], DROPOUT)
    x = dropout(keys[1], lstm(p, "lstm1", x), DROPOUT)
    x = dropout(keys[2], lstm(p, "lstm2", x), DROPOUT)
    logits = x @ p["decoder.weight"] + p["decoder.bias"]
    return cross_entropy(logits, labels), running


def train(bursts: Bursts, data: str, weights: str) -> None:
    p, running = load_weights(weights, native)
    batches = load_batches(data, ("tokens", "labels"), 16)
    train_loop(bursts, loss_fn, optax.sgd(0.5), p, running, batches)
