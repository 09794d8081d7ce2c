"""The network of recipes/dlrm_tiny.toml in JAX, as one would type it."""

# mypy: ignore-errors

import jax.numpy as jnp
import numpy as np
import optax
from jax.nn import relu
from jax_loop import load_batches, load_weights, train_loop
from pairing.bursts import Bursts

ROWS, COLUMNS = np.tril_indices(27)


def native(name, w):
    return w.T if w.ndim == 2 and not name.startswith("words.") else w


def dense(p, name, x):
    return x @ p[name + ".weight"] + p[name + ".bias"]


def forward(p, numbers, ids):
    x = relu(dense(p, "below.2", relu(dense(p, "below.0", numbers))))
    both = jnp.concatenate([x[:, None], p["words.weight"][ids]], 1)
    pairs = (both @ both.transpose(0, 2, 1))[:, ROWS, COLUMNS]
    x = relu(dense(p, "above.0", jnp.concatenate([x, pairs], 1)))
    return dense(p, "above.4", relu(dense(p, "above.2", x)))


def loss_fn(p, running, key, numbers, ids, y):
    losses = optax.sigmoid_binary_cross_entropy(forward(p, numbers, ids), y)
    return losses.mean(), running


def train(bursts: Bursts, data: str, weights: str) -> None:
    p, running = load_weights(weights, native)
    del p["places"]
    batches = load_batches(data, ("numbers", "ids", "y"), 64)
    optimizer = optax.adamw(1e-4, eps=1e-7, weight_decay=0.01)
    train_loop(bursts, loss_fn, optimizer, p, running, batches)
