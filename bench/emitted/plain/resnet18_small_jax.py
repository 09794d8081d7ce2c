"""The ResNet of recipes/resnet18_small.toml in JAX, as one would type it."""

# mypy: ignore-errors

import jax
import jax.numpy as jnp
import optax
from jax import lax
from jax_loop import (
    batch_norm,
    cross_entropy,
    load_batches,
    load_weights,
    pictures,
    train_loop,
)
from pairing.bursts import Bursts

optimizer = optax.chain(optax.add_decayed_weights(1e-4), optax.sgd(2e-4, momentum=0.9))


def native(name, w):
    return w.transpose(2, 3, 1, 0) if w.ndim == 4 else w.T


def conv(p, name, x, stride=1):
    w = p[name + ".weight"]
    pad = [(size // 2, size // 2) for size in w.shape[:2]]
    dims = ("NHWC", "HWIO", "NHWC")
    return lax.conv_general_dilated(x, w, (stride, stride), pad, dimension_numbers=dims)


def loss_fn(p, running, key, x, y):
    running = dict(running)

    def norm(name, x):
        return batch_norm(p, running, name, x)

    x = jax.nn.relu(norm("bn1", conv(p, "conv1", x, 2)))
    pad = ((0, 0), (1, 1), (1, 1), (0, 0))
    x = lax.reduce_window(x, -jnp.inf, lax.max, (1, 3, 3, 1), (1, 2, 2, 1), pad)
    for stage in range(1, 5):
        for block in range(2):
            name = f"layer{stage}.{block}."
            stride = 2 if stage > 1 and block == 0 else 1
            h = jax.nn.relu(norm(name + "bn1", conv(p, name + "conv1", x, stride)))
            h = norm(name + "bn2", conv(p, name + "conv2", h))
            if stride == 2:
                x = conv(p, name + "downsample.0", x, stride)
                x = norm(name + "downsample.1", x)
            x = jax.nn.relu(h + x)
    x = jnp.mean(x, axis=(1, 2))
    return cross_entropy(x @ p["fc.weight"] + p["fc.bias"], y), running


def train(bursts: Bursts, data: str, weights: str) -> None:
    p, running = load_weights(weights, native)
    batches = load_batches(data, ("x", "y"), 32, pictures)
    train_loop(bursts, loss_fn, optimizer, p, running, batches)
