"""Trains all_sorts with JAX and optax."""

import argparse
import itertools
import json
import os
import sys
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import lax
from jax.sharding import AxisType, NamedSharding, PartitionSpec
from safetensors.numpy import load_file

BATCH_SIZE = 1000
LEARNING_RATE = 0.001
DEVICES = 2
DROPOUT_RATE = 0.25
SEED = 1
RUNNING_STATISTICS = ("stem.bn.running_mean", "stem.bn.running_var")

# No TF32 or bfloat16 passes inside float32 matrix products and convolutions.
jax.config.update("jax_default_matmul_precision", "highest")

# One process for each device; JAX_PROCESS_ID says which of them this one is.
jax.config.update("jax_cpu_collectives_implementation", "gloo")
if not jax.distributed.is_initialized():
    if "JAX_PROCESS_ID" not in os.environ:
        every = f"for i in 0 1; do JAX_PROCESS_ID=$i python {__file__} & done; wait"
        sys.exit(f"start one process for each device: {every}")
    process = int(os.environ["JAX_PROCESS_ID"])
    address = os.environ.get("JAX_COORDINATOR_ADDRESS", "localhost:12355")
    jax.distributed.initialize(address, DEVICES, process, local_device_ids=[process])
MESH = jax.make_mesh((DEVICES,), ("data",), axis_types=(AxisType.Auto,))
BY_ROWS = NamedSharding(MESH, PartitionSpec("data"))
REPLICATED = NamedSharding(MESH, PartitionSpec())


def load_data(path):
    """The inputs as numpy arrays, pictures in N, H, W, C."""
    data = load_file(path)
    picture = data["picture"].astype(np.float32)
    picture = picture.transpose(0, 2, 3, 1)
    words = data["words"].astype(np.int32)
    y = data["y"].astype(np.int32)
    return picture, words, y


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


def split_rows(array):
    """On each device its rows of a batch; each process reads its own."""
    return jax.make_array_from_callback(array.shape, BY_ROWS, lambda own: array[own])


def batches(arrays):
    """Endless batches in file order, their rows split over the devices."""
    if len(arrays[0]) < BATCH_SIZE:
        raise ValueError("the data has fewer rows than one batch")
    starts = range(0, len(arrays[0]) - BATCH_SIZE + 1, BATCH_SIZE)
    ready = [tuple(split_rows(a[i : i + BATCH_SIZE]) for a in arrays) for i in starts]
    return itertools.cycle(ready)


def conv2d(x, kernel, bias=None, *, stride, padding, dilation=(1, 1), groups=1):
    y = lax.conv_general_dilated(
        x,
        kernel,
        window_strides=stride,
        padding=padding,
        rhs_dilation=dilation,
        feature_group_count=groups,
        dimension_numbers=("NHWC", "HWIO", "NHWC"),
    )
    return y if bias is None else y + bias


def linear(x, weight, bias):
    return x @ weight + bias


def batch_norm(x, scale, shift, stats, mean, var, *, eps, momentum):
    """Normalises with the statistics of the batch and updates the running ones."""
    axes = tuple(range(x.ndim - 1))
    batch_mean, batch_var = x.mean(axes), x.var(axes)
    stats[mean] = (1 - momentum) * stats[mean] + momentum * batch_mean
    stats[var] = (1 - momentum) * stats[var] + momentum * batch_var
    return (x - batch_mean) * (lax.rsqrt(batch_var + eps) * scale) + shift


def layer_norm(x, scale, shift, *, dims, eps):
    axes = tuple(range(x.ndim - dims, x.ndim))
    mean, var = x.mean(axes, keepdims=True), x.var(axes, keepdims=True)
    return (x - mean) * lax.rsqrt(var + eps) * scale + shift


def max_pool2d(x, *, window, stride, padding=((0, 0), (0, 0))):
    return lax.reduce_window(
        x,
        -jnp.inf,
        lax.max,
        window_dimensions=(1, *window, 1),
        window_strides=(1, *stride, 1),
        padding=((0, 0), *padding, (0, 0)),
    )


def avg_pool2d(x, *, window, stride, padding=((0, 0), (0, 0)), count_include_pad=False):
    def window_sum(values):
        return lax.reduce_window(
            values,
            0.0,
            lax.add,
            window_dimensions=(1, *window, 1),
            window_strides=(1, *stride, 1),
            padding=((0, 0), *padding, (0, 0)),
        )

    if count_include_pad:
        return window_sum(x) / (window[0] * window[1])
    return window_sum(x) / window_sum(jnp.ones((1, *x.shape[1:3], 1), x.dtype))


def dropout(key, x, rate):
    keep = jax.random.bernoulli(key, 1 - rate, x.shape)
    return jnp.where(keep, x / (1 - rate), 0)


def stem(params, stats, prefix, x):
    x = conv2d(
        x,
        params[f"{prefix}.conv.weight"],
        params[f"{prefix}.conv.bias"],
        stride=(2, 1),
        padding=((0, 1), (1, 0)),
    )
    x = conv2d(
        x,
        params[f"{prefix}.depth.weight"],
        stride=(1, 1),
        padding=((2, 2), (2, 2)),
        dilation=(2, 2),
        groups=6,
    )
    x = jax.nn.gelu(x, approximate=True)
    x = max_pool2d(x, window=(2, 2), stride=(1, 1), padding=((1, 0), (0, 1)))
    x = avg_pool2d(x, window=(3, 2), stride=(2, 2), padding=((1, 0), (0, 1)))
    x = jnp.pad(x, ((0, 0), (1, 0), (0, 2), (0, 0)), constant_values=0.5)
    x = avg_pool2d(
        x,
        window=(2, 2),
        stride=(1, 1),
        padding=((1, 1), (0, 0)),
        count_include_pad=True,
    )
    return batch_norm(
        x,
        params[f"{prefix}.bn.weight"],
        params[f"{prefix}.bn.bias"],
        stats,
        f"{prefix}.bn.running_mean",
        f"{prefix}.bn.running_var",
        eps=0.001,
        momentum=0.01,
    )


def forward(params, stats, picture, words, key):
    """The prediction and the new running statistics."""
    stats = dict(stats)
    picture = stem(params, stats, "stem", picture)
    s = jax.nn.sigmoid(picture)
    gated = picture * s
    pooled = jnp.mean(gated, axis=(1, 2))
    e = params["words.weight"][words]
    t = jnp.transpose(e, (0, 2, 1))
    r = t.reshape(t.shape[0], 5, 6)
    l_2 = layer_norm(r, params["norm.weight"], params["norm.bias"], dims=1, eps=1e-6)
    f = l_2.reshape(l_2.shape[0], 30)
    d = dropout(key, f, DROPOUT_RATE)
    q = linear(d, params["mix.weight"], params["mix.bias"])
    w = jnp.tanh(q)
    k = jax.nn.softmax(w, axis=1)
    both = jnp.concatenate([pooled, k], axis=1)
    z = both @ params["head.weight"]
    u = z + pooled
    ge = jax.nn.gelu(u, approximate=False)
    logits = linear(ge, params["words.weight"].T, params["tied_bias"])
    return logits, stats


def loss_fn(params, stats, picture, words, y, key):
    logits, stats = forward(params, stats, picture, words, key)
    losses = optax.softmax_cross_entropy_with_integer_labels(logits, y)
    loss = losses.sum()
    return loss, stats


def make_optimizer():
    return optax.adam(LEARNING_RATE, b1=0.9, b2=0.999, eps=1e-8)


OPTIMIZER = make_optimizer()


class TrainState(NamedTuple):
    params: Any
    stats: Any
    opt_state: Any
    key: Any


def init_state(weights):
    params = {name: jnp.array(value) for name, value in weights.items()}
    stats = {name: params.pop(name) for name in RUNNING_STATISTICS}
    key = jax.random.key(SEED)
    state = TrainState(params, stats, OPTIMIZER.init(params), key)
    return jax.jit(lambda state: state, out_shardings=REPLICATED)(state)


@partial(jax.jit, donate_argnums=0)
def train_step(state, picture, words, y):
    key, dropout_key = jax.random.split(state.key)
    grad_fn = jax.value_and_grad(loss_fn, has_aux=True)
    (loss, stats), grads = grad_fn(
        state.params, state.stats, picture, words, y, dropout_key
    )
    updates, opt_state = OPTIMIZER.update(grads, state.opt_state, state.params)
    params = optax.apply_updates(state.params, updates)
    return TrainState(params, stats, opt_state, key), loss


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
        if step % 10 == 0 and jax.process_index() == 0:
            print(f"step {step}: loss {loss:.6f}")


if __name__ == "__main__":
    main()
