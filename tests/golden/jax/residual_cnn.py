"""Trains residual_cnn with JAX and optax."""

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

BATCH_SIZE = 256
LEARNING_RATE = 0.1
RUNNING_STATISTICS = (".running_mean", ".running_var")

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


def conv2d(x, kernel, *, stride=1, padding=0):
    return lax.conv_general_dilated(
        x,
        kernel,
        window_strides=(stride, stride),
        padding=((padding, padding), (padding, padding)),
        dimension_numbers=("NHWC", "HWIO", "NHWC"),
    )


def linear(x, weight, bias):
    return x @ weight + bias


def batch_norm(x, scale, shift, stats, mean, var, *, eps, momentum):
    """Normalises with the statistics of the batch and updates the running ones."""
    axes = tuple(range(x.ndim - 1))
    batch_mean, batch_var = x.mean(axes), x.var(axes)
    stats[mean] = (1 - momentum) * stats[mean] + momentum * batch_mean
    stats[var] = (1 - momentum) * stats[var] + momentum * batch_var
    return (x - batch_mean) * (lax.rsqrt(batch_var + eps) * scale) + shift


def block(params, stats, prefix, x):
    x = conv2d(x, params[f"{prefix}.conv1.weight"], padding=1)
    x = batch_norm(
        x,
        params[f"{prefix}.bn1.weight"],
        params[f"{prefix}.bn1.bias"],
        stats,
        f"{prefix}.bn1.running_mean",
        f"{prefix}.bn1.running_var",
        eps=1e-5,
        momentum=0.1,
    )
    x = jax.nn.relu(x)
    x = conv2d(x, params[f"{prefix}.conv2.weight"], padding=1)
    return batch_norm(
        x,
        params[f"{prefix}.bn2.weight"],
        params[f"{prefix}.bn2.bias"],
        stats,
        f"{prefix}.bn2.running_mean",
        f"{prefix}.bn2.running_var",
        eps=1e-5,
        momentum=0.1,
    )


def down_block(params, stats, prefix, x):
    h = conv2d(x, params[f"{prefix}.down.conv.weight"], stride=2)
    h = batch_norm(
        h,
        params[f"{prefix}.down.bn.weight"],
        params[f"{prefix}.down.bn.bias"],
        stats,
        f"{prefix}.down.bn.running_mean",
        f"{prefix}.down.bn.running_var",
        eps=1e-5,
        momentum=0.1,
    )
    x = conv2d(x, params[f"{prefix}.conv1.weight"], stride=2, padding=1)
    x = batch_norm(
        x,
        params[f"{prefix}.bn1.weight"],
        params[f"{prefix}.bn1.bias"],
        stats,
        f"{prefix}.bn1.running_mean",
        f"{prefix}.bn1.running_var",
        eps=1e-5,
        momentum=0.1,
    )
    x = jax.nn.relu(x)
    x = conv2d(x, params[f"{prefix}.conv2.weight"], padding=1)
    x = batch_norm(
        x,
        params[f"{prefix}.bn2.weight"],
        params[f"{prefix}.bn2.bias"],
        stats,
        f"{prefix}.bn2.running_mean",
        f"{prefix}.bn2.running_var",
        eps=1e-5,
        momentum=0.1,
    )
    return x + h


def forward(params, stats, x):
    """The prediction and the new running statistics."""
    stats = dict(stats)
    x = conv2d(x, params["stem.conv.weight"], stride=2, padding=1)
    x = batch_norm(
        x,
        params["stem.bn.weight"],
        params["stem.bn.bias"],
        stats,
        "stem.bn.running_mean",
        "stem.bn.running_var",
        eps=1e-5,
        momentum=0.1,
    )
    x = jax.nn.relu(x)
    h = block(params, stats, "block1", x)
    x = h + x
    x = jax.nn.relu(x)
    x = down_block(params, stats, "block2", x)
    x = jax.nn.relu(x)
    x = jnp.mean(x, axis=(1, 2))
    logits = linear(x, params["fc.weight"], params["fc.bias"])
    return logits, stats


def loss_fn(params, stats, x, y):
    logits, stats = forward(params, stats, x)
    losses = optax.softmax_cross_entropy_with_integer_labels(logits, y)
    loss = losses.mean()
    return loss, stats


def make_optimizer():
    return optax.chain(
        optax.add_decayed_weights(5e-4),
        optax.sgd(LEARNING_RATE, momentum=0.9, nesterov=True),
    )


OPTIMIZER = make_optimizer()


class TrainState(NamedTuple):
    params: Any
    stats: Any
    opt_state: Any


def init_state(weights):
    params = {name: jnp.array(value) for name, value in weights.items()}
    names = [name for name in params if name.endswith(RUNNING_STATISTICS)]
    stats = {name: params.pop(name) for name in names}
    return TrainState(params, stats, OPTIMIZER.init(params))


@partial(jax.jit, donate_argnums=0)
def train_step(state, x, y):
    grad_fn = jax.value_and_grad(loss_fn, has_aux=True)
    (loss, stats), grads = grad_fn(state.params, state.stats, x, y)
    updates, opt_state = OPTIMIZER.update(grads, state.opt_state, state.params)
    params = optax.apply_updates(state.params, updates)
    return TrainState(params, stats, opt_state), loss


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
