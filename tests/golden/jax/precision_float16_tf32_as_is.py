"""Trains mlp_small with JAX and optax."""

import argparse
from functools import partial
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import optax
from safetensors.numpy import load_file

BATCH_SIZE = 1000
LEARNING_RATE = 0.001
SEED = 1

jax.config.update("jax_default_matmul_precision", "tensorfloat32")


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


def half(array):
    """In float16; its gradient comes back in float32."""
    return array.astype(jnp.float16)


def linear(x, weight, bias):
    return half(x @ weight + bias)


def forward(params, x):
    x = half(x)
    x = linear(x, half(params["fc1.weight"]), params["fc1.bias"])
    x = jax.nn.relu(x)
    logits = linear(x, half(params["fc2.weight"]), params["fc2.bias"])
    return logits.astype(jnp.float32)


def loss_fn(params, x, y):
    logits = forward(params, x)
    losses = optax.softmax_cross_entropy_with_integer_labels(logits, y)
    return losses.mean()


def make_optimizer():
    return optax.adam(LEARNING_RATE)


OPTIMIZER = make_optimizer()


def init_params(key):
    init = jax.nn.initializers.lecun_normal()
    keys = iter(jax.random.split(key, 2))
    return {
        "fc1.weight": init(next(keys), (100, 128)),
        "fc1.bias": jnp.zeros((128,)),
        "fc2.weight": init(next(keys), (128, 10)),
        "fc2.bias": jnp.zeros((10,)),
    }


@partial(jax.jit, donate_argnums=(0, 1))
def train_step(params, opt_state, x, y):
    loss, grads = jax.value_and_grad(loss_fn)(params, x, y)
    updates, opt_state = OPTIMIZER.update(grads, opt_state, params)
    return optax.apply_updates(params, updates), opt_state, loss


def main():
    here = Path(__file__).resolve().parent
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", default=here / "data.safetensors")
    parser.add_argument("--steps", type=int, default=100)
    args = parser.parse_args()

    params = init_params(jax.random.key(SEED))
    opt_state = OPTIMIZER.init(params)
    data = batches(load_data(args.data))
    for step in range(args.steps):
        params, opt_state, loss = train_step(params, opt_state, *next(data))
        if step % 10 == 0:
            print(f"step {step}: loss {loss:.6f}")


if __name__ == "__main__":
    main()
