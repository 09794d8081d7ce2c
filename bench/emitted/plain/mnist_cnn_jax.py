"""The CNN of recipes/mnist_cnn.toml in JAX, as one would type it."""

# mypy: ignore-errors

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import lax
from pairing.bursts import Bursts
from safetensors.numpy import load_file

BATCH = 256
optimizer = optax.rmsprop(1e-4, decay=0.9, eps=1e-7, eps_in_sqrt=False)


def conv(p, name, x):
    dims = ("NHWC", "HWIO", "NHWC")
    w, b = p[name + ".weight"], p[name + ".bias"]
    return lax.conv_general_dilated(x, w, (1, 1), "VALID", dimension_numbers=dims) + b


def forward(p, x):
    x = jax.nn.relu(conv(p, "conv1", x))
    x = jax.nn.relu(conv(p, "conv2", x))
    x = lax.reduce_window(x, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
    x = jax.nn.relu(conv(p, "conv3", x))
    x = jax.nn.relu(conv(p, "conv4", x))
    x = x.reshape(len(x), -1)
    x = jax.nn.relu(x @ p["fc1.weight"] + p["fc1.bias"])
    return x @ p["fc2.weight"] + p["fc2.bias"]


def loss_fn(p, x, y):
    logits = forward(p, x)
    return optax.softmax_cross_entropy_with_integer_labels(logits, y).mean()


@partial(jax.jit, donate_argnums=(0, 1))
def train_step(p, state, x, y):
    loss, grads = jax.value_and_grad(loss_fn)(p, x, y)
    updates, state = optimizer.update(grads, state, p)
    return optax.apply_updates(p, updates), state, loss


def native(name, w):
    """Canonical weights in N,H,W,C order."""
    if w.ndim == 4:
        return w.transpose(2, 3, 1, 0)
    if name == "fc1.weight":  # reads pictures of 64 channels, 8 by 8
        return w.reshape(128, 64, 8, 8).transpose(2, 3, 1, 0).reshape(4096, 128)
    return w.T


def train(bursts: Bursts, data: str, weights: str) -> None:
    tensors = load_file(data)
    x = (tensors["x"].astype(np.float32) / 255).transpose(0, 2, 3, 1)
    y = tensors["y"].astype(np.int32)
    starts = range(0, len(x) - BATCH + 1, BATCH)
    batches = [
        (jnp.array(x[i : i + BATCH]), jnp.array(y[i : i + BATCH])) for i in starts
    ]
    p = {name: jnp.array(native(name, w)) for name, w in load_file(weights).items()}
    state = optimizer.init(p)
    step = 0
    for steps in bursts:
        for _ in range(steps):
            x, y = batches[step % len(batches)]
            step += 1
            p, state, loss = train_step(p, state, x, y)
        jax.block_until_ready((p, state))
        bursts.done(float(loss))
