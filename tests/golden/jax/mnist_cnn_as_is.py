"""Trains mnist_cnn with JAX and optax."""

import argparse
from functools import partial
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import lax
from safetensors.numpy import load_file

BATCH_SIZE = 256
LEARNING_RATE = 1e-4
SEED = 1


def load_data(path):
    """The inputs as numpy arrays, pictures in N, H, W, C."""
    data = load_file(path)
    x = data["x"].astype(np.float32) / 255.0
    x = x.transpose(0, 2, 3, 1)
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


def conv2d(x, kernel, bias, *, stride=1, padding=0):
    y = lax.conv_general_dilated(
        x,
        kernel,
        window_strides=(stride, stride),
        padding=((padding, padding), (padding, padding)),
        dimension_numbers=("NHWC", "HWIO", "NHWC"),
    )
    return y + bias


def linear(x, weight, bias):
    return x @ weight + bias


def max_pool2d(x, *, window, stride, padding=((0, 0), (0, 0))):
    return lax.reduce_window(
        x,
        -jnp.inf,
        lax.max,
        window_dimensions=(1, *window, 1),
        window_strides=(1, *stride, 1),
        padding=((0, 0), *padding, (0, 0)),
    )


def forward(params, x):
    x = conv2d(x, params["conv1.weight"], params["conv1.bias"])
    x = jax.nn.relu(x)
    x = conv2d(x, params["conv2.weight"], params["conv2.bias"])
    x = jax.nn.relu(x)
    x = max_pool2d(x, window=(2, 2), stride=(2, 2))
    x = conv2d(x, params["conv3.weight"], params["conv3.bias"])
    x = jax.nn.relu(x)
    x = conv2d(x, params["conv4.weight"], params["conv4.bias"])
    x = jax.nn.relu(x)
    x = x.reshape(x.shape[0], 4096)
    x = linear(x, params["fc1.weight"], params["fc1.bias"])
    x = jax.nn.relu(x)
    return linear(x, params["fc2.weight"], params["fc2.bias"])


def loss_fn(params, x, y):
    logits = forward(params, x)
    losses = optax.softmax_cross_entropy_with_integer_labels(logits, y)
    return losses.mean()


def make_optimizer():
    return optax.rmsprop(LEARNING_RATE)


OPTIMIZER = make_optimizer()


def init_params(key):
    init = jax.nn.initializers.lecun_normal()
    keys = iter(jax.random.split(key, 6))
    return {
        "conv1.weight": init(next(keys), (3, 3, 1, 32)),
        "conv1.bias": jnp.zeros((32,)),
        "conv2.weight": init(next(keys), (3, 3, 32, 32)),
        "conv2.bias": jnp.zeros((32,)),
        "conv3.weight": init(next(keys), (3, 3, 32, 32)),
        "conv3.bias": jnp.zeros((32,)),
        "conv4.weight": init(next(keys), (3, 3, 32, 64)),
        "conv4.bias": jnp.zeros((64,)),
        "fc1.weight": init(next(keys), (4096, 128)),
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
