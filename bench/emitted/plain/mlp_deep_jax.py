"""The MLP of recipes/mlp_deep.toml in JAX, as one would type it."""

# mypy: ignore-errors

import jax
import optax
from jax_loop import (
    batch_norm,
    cross_entropy,
    dropout,
    load_batches,
    load_weights,
    train_loop,
)
from pairing.bursts import Bursts

DROPOUT = 0.5


def loss_fn(p, running, key, x, y):
    running = dict(running)
    for layer, now in zip("12", jax.random.split(key), strict=True):
        x = x @ p[f"fc{layer}.weight"] + p[f"fc{layer}.bias"]
        x = jax.nn.relu(batch_norm(p, running, f"bn{layer}", x))
        x = dropout(now, x, DROPOUT)
    return cross_entropy(x @ p["fc3.weight"] + p["fc3.bias"], y), running


def train(bursts: Bursts, data: str, weights: str) -> None:
    p, running = load_weights(weights)
    batches = load_batches(data, ("x", "y"), 1000)
    train_loop(bursts, loss_fn, optax.adam(1e-3, eps=1e-7), p, running, batches)
