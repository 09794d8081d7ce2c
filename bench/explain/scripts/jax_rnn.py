"""A recurrent network over sequences in JAX, with optax."""

# mypy: ignore-errors

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import optax

EPOCHS, BATCH, LENGTH, WIDTH = 1000, 32, 24, 64


def init_params(rng):
    def matrix(n, m):
        return jnp.asarray(rng.standard_normal((n, m)) / np.sqrt(n), jnp.float32)

    return {
        "in": matrix(8, WIDTH),
        "state": matrix(WIDTH, WIDTH),
        "out": matrix(WIDTH, 1),
    }


def run(params, sequences):
    def cell(h, x):
        return jnp.tanh(x @ params["in"] + h @ params["state"]), None

    start = jnp.zeros((sequences.shape[0], WIDTH))
    h, _ = jax.lax.scan(cell, start, sequences.transpose(1, 0, 2))
    return h @ params["out"]


def mse(params, sequences, targets):
    return jnp.mean((run(params, sequences) - targets) ** 2)


tx = optax.sgd(0.01, momentum=0.9)


@partial(jax.jit, donate_argnums=(0, 1))
def train_step(params, opt_state, sequences, targets):
    loss, grads = jax.value_and_grad(mse)(params, sequences, targets)
    updates, opt_state = tx.update(grads, opt_state)
    return optax.apply_updates(params, updates), opt_state, loss


def batches(rng):
    for _ in range(100):
        x = rng.standard_normal((BATCH, LENGTH, 8), dtype=np.float32)
        yield x, x.sum(axis=(1, 2), keepdims=False)[:, None]


def main():
    rng = np.random.default_rng(0)
    params = init_params(rng)
    opt_state = tx.init(params)
    for epoch in range(EPOCHS):
        for x, y in batches(rng):
            params, opt_state, loss = train_step(params, opt_state, x, y)
        print(f"epoch {epoch}: loss {loss:.4f}", flush=True)


if __name__ == "__main__":
    main()
