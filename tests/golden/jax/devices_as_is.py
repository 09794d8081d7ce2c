"""Trains mlp_small with JAX and optax."""

import argparse
from functools import partial
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax.sharding import AxisType, NamedSharding, PartitionSpec
from safetensors.numpy import load_file

BATCH_SIZE = 1000
LEARNING_RATE = 0.001
DEVICES = 2
SEED = 1

# Without an accelerator, DEVICES devices are made of the processors.
jax.config.update("jax_num_cpu_devices", DEVICES)
MESH = jax.make_mesh((DEVICES,), ("data",), axis_types=(AxisType.Auto,))
BY_ROWS = NamedSharding(MESH, PartitionSpec("data"))
REPLICATED = NamedSharding(MESH, PartitionSpec())


def load_data(path):
    """The inputs as numpy arrays."""
    data = load_file(path)
    x = data["x"].astype(np.float32)
    y = data["y"].astype(np.int32)
    return x, y


def batches(arrays):
    """Endless batches of rows in random order, split over the devices."""
    if len(arrays[0]) < BATCH_SIZE:
        raise ValueError("the data has fewer rows than one batch")
    rng = np.random.default_rng(SEED)
    rows = len(arrays[0])
    while True:
        order = rng.permutation(rows)
        for start in range(0, rows - BATCH_SIZE + 1, BATCH_SIZE):
            picked = order[start : start + BATCH_SIZE]
            yield jax.device_put(tuple(array[picked] for array in arrays), BY_ROWS)


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


def make_optimizer():
    return optax.adam(LEARNING_RATE)


OPTIMIZER = make_optimizer()


def init_params(key):
    init = jax.nn.initializers.lecun_normal()
    keys = iter(jax.random.split(key, 2))
    params = {
        "fc1.weight": init(next(keys), (100, 128)),
        "fc1.bias": jnp.zeros((128,)),
        "fc2.weight": init(next(keys), (128, 10)),
        "fc2.bias": jnp.zeros((10,)),
    }
    return jax.device_put(params, REPLICATED)


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
    opt_state = jax.device_put(opt_state, REPLICATED)
    data = batches(load_data(args.data))
    for step in range(args.steps):
        params, opt_state, loss = train_step(params, opt_state, *next(data))
        if step % 10 == 0:
            print(f"step {step}: loss {loss:.6f}")


if __name__ == "__main__":
    main()
