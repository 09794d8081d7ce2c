"""Trains losses with JAX and optax."""

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

BATCH_SIZE = 1000
LEARNING_RATE = 0.001

# No TF32 or bfloat16 passes inside float32 matrix products and convolutions.
jax.config.update("jax_default_matmul_precision", "highest")


def load_data(path):
    """The inputs as numpy arrays, pictures in N, H, W, C."""
    data = load_file(path)
    x = data["x"].astype(np.float32)
    x = x.transpose(0, 2, 3, 1)
    y = data["y"].astype(np.int32)
    t = data["t"].astype(np.float32)
    t = t.transpose(0, 2, 3, 1)
    return x, y, t


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


def forward(params, x):
    x = conv2d(x, params["trunk.weight"], params["trunk.bias"], padding=1)
    x = jax.nn.relu(x)
    picture = conv2d(x, params["decoder.weight"], params["decoder.bias"])
    x = x.reshape(x.shape[0], 32)
    logits = linear(x, params["head.weight"], params["head.bias"])
    x = linear(x, params["aux.weight"], params["aux.bias"])
    return logits, x, picture


def loss_fn(params, x, y, t):
    logits, output_2, picture = forward(params, x)
    kept = y != -100
    losses = optax.softmax_cross_entropy_with_integer_labels(
        logits, jnp.where(kept, y, 0)
    )
    main_loss = losses.sum(where=kept) / jnp.maximum(kept.sum(), 1)
    kept = y != -100
    smoothed = jax.nn.one_hot(
        jnp.where(kept, y, 0), output_2.shape[-1], dtype=output_2.dtype
    )
    smoothed = optax.smooth_labels(smoothed, 0.1)
    losses = optax.softmax_cross_entropy(output_2, smoothed)
    aux_loss = losses.sum(where=kept) / jnp.maximum(kept.sum(), 1)
    losses = optax.squared_error(picture, t)
    error = losses.mean()
    losses = jnp.abs(picture - t)
    part = losses.sum()
    return main_loss + 0.3 * aux_loss + error - 0.001 * part


def make_optimizer():
    return optax.adam(LEARNING_RATE, b1=0.9, b2=0.999, eps=1e-8)


OPTIMIZER = make_optimizer()


def init_params(weights):
    return {name: jnp.array(value) for name, value in weights.items()}


@partial(jax.jit, donate_argnums=(0, 1))
def train_step(params, opt_state, x, y, t):
    loss, grads = jax.value_and_grad(loss_fn)(params, x, y, t)
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
