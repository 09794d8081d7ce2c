"""Trains mnist_cnn with JAX and optax."""

import argparse
import itertools
import json
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

# No TF32 or bfloat16 passes inside float32 matrix products and convolutions.
jax.config.update("jax_default_matmul_precision", "highest")


def load_data(path):
    """The inputs as numpy arrays, pictures in N, H, W, C."""
    data = load_file(path)
    x = data["x"].astype(np.float32) / 255.0
    x = x.transpose(0, 2, 3, 1)
    y = data["y"].astype(np.int32)
    return x, y


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
    return optax.rmsprop(LEARNING_RATE, decay=0.9, eps=1e-7, eps_in_sqrt=False)


OPTIMIZER = make_optimizer()


def init_params(weights):
    return {name: jnp.array(value) for name, value in weights.items()}


@partial(jax.jit, donate_argnums=(0, 1))
def train_step(params, opt_state, x, y):
    loss, grads = jax.value_and_grad(loss_fn)(params, x, y)
    updates, opt_state = OPTIMIZER.update(grads, opt_state, params)
    return optax.apply_updates(params, updates), opt_state, loss


def main():
    here = Path(__file__).resolve().parent
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", default=here / "data.safetensors")
    parser.add_argument("--weights", default=here / "weights.safetensors")
    parser.add_argument("--steps", type=int, default=100)
    args = parser.parse_args()

    params = init_params(load_weights(args.weights))
    opt_state = OPTIMIZER.init(params)
    data = batches(load_data(args.data))
    for step in range(args.steps):
        params, opt_state, loss = train_step(params, opt_state, *next(data))
        if step % 10 == 0:
            print(f"step {step}: loss {loss:.6f}")


if __name__ == "__main__":
    main()
