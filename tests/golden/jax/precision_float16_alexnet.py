"""Trains alexnet_small with JAX and optax."""

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
    """The inputs as numpy arrays, pictures in N, H, W, C."""
    data = load_file(path)
    x = data["x"].astype(np.float32)
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


def half(array):
    """In float16; its gradient comes back in float32."""
    return array.astype(jnp.float16)


def in_float32(function, x, *arguments, **options):
    """What adds up many elements, here or for a gradient; x comes in half precision."""
    return half(function(x.astype(jnp.float32), *arguments, **options))


def conv2d(x, kernel, bias, *, stride=1, padding=0, groups=1):
    y = lax.conv_general_dilated(
        x,
        kernel,
        window_strides=(stride, stride),
        padding=((padding, padding), (padding, padding)),
        feature_group_count=groups,
        dimension_numbers=("NHWC", "HWIO", "NHWC"),
    )
    return half(y + bias)


def linear(x, weight, bias):
    return half(x @ weight + bias)


def max_pool2d(x, *, window, stride, padding=((0, 0), (0, 0))):
    return lax.reduce_window(
        x,
        -jnp.inf,
        lax.max,
        window_dimensions=(1, *window, 1),
        window_strides=(1, *stride, 1),
        padding=((0, 0), *padding, (0, 0)),
    )


def dropout(key, x, rate):
    keep = jax.random.bernoulli(key, 1 - rate, x.shape)
    return jnp.where(keep, x / (1 - rate), 0)


def local_response_norm(x, *, size, alpha, beta, k):
    squares = lax.reduce_window(
        x * x,
        0.0,
        lax.add,
        window_dimensions=(1, 1, 1, size),
        window_strides=(1, 1, 1, 1),
        padding=((0, 0), (0, 0), (0, 0), (size // 2, (size - 1) // 2)),
    )
    return x / (k + alpha * squares) ** beta


def forward(params, x, key):
    keys = jax.random.split(key, 2)
    x = half(x)
    x = conv2d(x, half(params["conv1.weight"]), params["conv1.bias"], stride=4)
    x = jax.nn.relu(x)
    x = in_float32(local_response_norm, x, size=5, alpha=1e-4, beta=0.75, k=2.0)
    x = max_pool2d(x, window=(3, 3), stride=(2, 2))
    x = conv2d(
        x, half(params["conv2.weight"]), params["conv2.bias"], padding=2, groups=2
    )
    x = jax.nn.relu(x)
    x = in_float32(local_response_norm, x, size=5, alpha=1e-4, beta=0.75, k=2.0)
    x = max_pool2d(x, window=(3, 3), stride=(2, 2))
    x = conv2d(x, half(params["conv3.weight"]), params["conv3.bias"], padding=1)
    x = jax.nn.relu(x)
    x = conv2d(
        x, half(params["conv4.weight"]), params["conv4.bias"], padding=1, groups=2
    )
    x = jax.nn.relu(x)
    x = conv2d(
        x, half(params["conv5.weight"]), params["conv5.bias"], padding=1, groups=2
    )
    x = jax.nn.relu(x)
    x = max_pool2d(x, window=(3, 3), stride=(2, 2))
    x = x.reshape(x.shape[0], 32)
    x = linear(x, half(params["fc6.weight"]), params["fc6.bias"])
    x = jax.nn.relu(x)
    x = dropout(keys[0], x, DROPOUT_RATE)
    x = linear(x, half(params["fc7.weight"]), params["fc7.bias"])
    x = jax.nn.relu(x)
    x = dropout(keys[1], x, DROPOUT_RATE)
    logits = linear(x, half(params["fc8.weight"]), params["fc8.bias"])
    return logits.astype(jnp.float32)


def loss_fn(params, x, y, key):
    logits = forward(params, x, key)
    losses = optax.softmax_cross_entropy_with_integer_labels(logits, y)
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
def train_step(state, x, y):
    key, dropout_key = jax.random.split(state.key)
    grad_fn = jax.value_and_grad(loss_fn)
    loss, grads = grad_fn(state.params, x, y, dropout_key)
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
