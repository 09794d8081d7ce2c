"""Predicts with mnist_cnn in JAX."""

import argparse
import itertools
import json
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from safetensors.numpy import load_file, save_file

BATCH_SIZE = 256

# No TF32 or bfloat16 passes inside float32 matrix products and convolutions.
jax.config.update("jax_default_matmul_precision", "highest")


def load_data(path):
    """The inputs as numpy arrays, pictures in N, H, W, C."""
    data = load_file(path)
    x = data["x"].astype(np.float32) / 255.0
    x = x.transpose(0, 2, 3, 1)
    return (x,)


def load_weights(path):
    """Initial weights (kernels O, I, H, W; linear O, I) as this script stores them."""
    layout_file = Path(__file__).with_name("predict_jax.layout.json")
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


def init_params(weights):
    return {name: jnp.array(value) for name, value in weights.items()}


@jax.jit
def predict_step(params, x):
    return forward(params, x)


def main():
    here = Path(__file__).resolve().parent
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", default=here / "data.safetensors")
    parser.add_argument("--weights", default=here / "weights.safetensors")
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--out", help="saves what is predicted of each full batch")
    args = parser.parse_args()

    params = init_params(load_weights(args.weights))
    arrays = load_data(args.data)
    data = batches(arrays)
    steps = len(arrays[0]) // BATCH_SIZE if args.out else args.steps
    outputs = []
    for step in range(steps):
        output = predict_step(params, *next(data))
        if step % 10 == 0:
            print(f"batch {step}: mean output {output.mean():.6f}")
        if args.out:
            outputs.append(np.asarray(output, np.float32))
    if args.out:
        save_file({"output": np.concatenate(outputs)}, args.out)


if __name__ == "__main__":
    main()
