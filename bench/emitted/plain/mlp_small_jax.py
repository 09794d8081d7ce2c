"""The MLP of recipes/mlp_small.toml in JAX, as one would type it."""

# mypy: ignore-errors

from functools import partial

import jax
import optax
from jax_loop import cross_entropy, load_batches, load_weights
from pairing.bursts import Bursts

optimizer = optax.adam(1e-3, eps=1e-7)


def loss_fn(p, x, y):
    x = jax.nn.relu(x @ p["fc1.weight"] + p["fc1.bias"])
    return cross_entropy(x @ p["fc2.weight"] + p["fc2.bias"], y)


@partial(jax.jit, donate_argnums=(0, 1))
def train_step(p, state, x, y):
    loss, grads = jax.value_and_grad(loss_fn)(p, x, y)
    updates, state = optimizer.update(grads, state, p)
    return optax.apply_updates(p, updates), state, loss


def train(bursts: Bursts, data: str, weights: str) -> None:
    p, _ = load_weights(weights)
    state = optimizer.init(p)
    [(x, y)] = load_batches(data, ("x", "y"), 1000)
    for steps in bursts:
        for _ in range(steps):
            p, state, loss = train_step(p, state, x, y)
        jax.block_until_ready((p, state))
        bursts.done(float(loss))
