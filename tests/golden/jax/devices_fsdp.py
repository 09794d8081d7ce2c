"""Trains mlp_small with JAX and optax."""

import argparse
import itertools
import json
from functools import partial
from pathlib import Path

import jax
import numpy as np
import optax
from jax import lax
from jax.sharding import AxisType, NamedSharding, PartitionSpec
from safetensors.numpy import load_file

BATCH_SIZE = 1000
LEARNING_RATE = 0.001
DEVICES = 2

# No TF32 or bfloat16 passes inside float32 matrix products and convolutions.
jax.config.update("jax_default_matmul_precision", "highest")

# Without an accelerator, DEVICES devices are made of the processors.
jax.config.update("jax_num_cpu_devices", DEVICES)
MESH = jax.make_mesh((DEVICES,), ("data",), axis_types=(AxisType.Auto,))
BY_ROWS = NamedSharding(MESH, PartitionSpec("data"))


def split_over_devices(tree):
    """Where its arrays lie: split along the first axis that DEVICES divides, or whole."""

    def sharding(array):
        axes = [i for i, size in enumerate(array.shape) if size % DEVICES == 0]
        spec = (*[None] * axes[0], "data") if axes else ()
        return NamedSharding(MESH, PartitionSpec(*spec))

    return jax.tree.map(sharding, tree)


def load_data(path):
    """The inputs as numpy arrays."""
    data = load_file(path)
    x = data["x"].astype(np.float32)
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
    """Endless batches in file order, their rows split over the devices."""
    if len(arrays[0]) < BATCH_SIZE:
        raise ValueError("the data has fewer rows than one batch")
    starts = range(0, len(arrays[0]) - BATCH_SIZE + 1, BATCH_SIZE)
    ready = [tuple(a[i : i + BATCH_SIZE] for a in arrays) for i in starts]
    return itertools.cycle(jax.device_put(ready, BY_ROWS))


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
    return optax.adam(LEARNING_RATE, b1=0.9, b2=0.999, eps=1e-8)


OPTIMIZER = make_optimizer()


def init_params(weights):
    return jax.device_put(weights, split_over_devices(weights))


@partial(jax.jit, donate_argnums=(0, 1))
def train_step(params, opt_state, x, y):
    loss, grads = jax.value_and_grad(loss_fn)(params, x, y)
    updates, opt_state = OPTIMIZER.update(grads, opt_state, params)
    state = optax.apply_updates(params, updates), opt_state
    return *lax.with_sharding_constraint(state, split_over_devices(state)), loss


def main():
    here = Path(__file__).resolve().parent
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", default=here / "data.safetensors")
    parser.add_argument("--weights", default=here / "weights.safetensors")
    parser.add_argument("--steps", type=int, default=100)
    args = parser.parse_args()

    params = init_params(load_weights(args.weights))
    opt_state = OPTIMIZER.init(params)
    opt_state = jax.device_put(opt_state, split_over_devices(opt_state))
    data = batches(load_data(args.data))
    for step in range(args.steps):
        params, opt_state, loss = train_step(params, opt_state, *next(data))
        if step % 10 == 0:
            print(f"step {step}: loss {loss:.6f}")


if __name__ == "__main__":
    main()
