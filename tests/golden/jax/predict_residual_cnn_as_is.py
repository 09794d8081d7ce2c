"""Predicts with residual_cnn in JAX."""

import argparse
import itertools
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from safetensors.numpy import load_file, save_file

BATCH_SIZE = 256
SEED = 1


def load_data(path):
    """The inputs as numpy arrays, pictures in N, H, W, C."""
    data = load_file(path)
    x = data["x"].astype(np.float32) / 255.0
    x = x.transpose(0, 2, 3, 1)
    return (x,)


def batches(arrays):
    """Endless batches on the device, in file order; rows left over are dropped."""
    if len(arrays[0]) < BATCH_SIZE:
        raise ValueError("the data has fewer rows than one batch")
    starts = range(0, len(arrays[0]) - BATCH_SIZE + 1, BATCH_SIZE)
    ready = [tuple(jnp.array(a[i : i + BATCH_SIZE]) for a in arrays) for i in starts]
    return itertools.cycle(ready)


def below(tree, path):
    """What stands below a path, by the rest of the names."""
    start = path + "."
    return {name[len(start) :]: x for name, x in tree.items() if name.startswith(start)}


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


def batch_norm(x, scale, shift, mean, var, *, eps=1e-5):
    """Normalises with the running statistics."""
    return (x - mean) * (lax.rsqrt(var + eps) * scale) + shift


def block(params, x):
    x = conv2d(x, params["conv1.weight"], padding=1)
    x = batch_norm(
        x,
        params["bn1.weight"],
        params["bn1.bias"],
        params["bn1.running_mean"],
        params["bn1.running_var"],
    )
    x = jax.nn.relu(x)
    x = conv2d(x, params["conv2.weight"], padding=1)
    return batch_norm(
        x,
        params["bn2.weight"],
        params["bn2.bias"],
        params["bn2.running_mean"],
        params["bn2.running_var"],
    )


def down_block(params, x):
    h = conv2d(x, params["down.conv.weight"], stride=2)
    h = batch_norm(
        h,
        params["down.bn.weight"],
        params["down.bn.bias"],
        params["down.bn.running_mean"],
        params["down.bn.running_var"],
    )
    x = conv2d(x, params["conv1.weight"], stride=2, padding=1)
    x = batch_norm(
        x,
        params["bn1.weight"],
        params["bn1.bias"],
        params["bn1.running_mean"],
        params["bn1.running_var"],
    )
    x = jax.nn.relu(x)
    x = conv2d(x, params["conv2.weight"], padding=1)
    x = batch_norm(
        x,
        params["bn2.weight"],
        params["bn2.bias"],
        params["bn2.running_mean"],
        params["bn2.running_var"],
    )
    return x + h


def forward(params, x):
    x = conv2d(x, params["stem.conv.weight"], stride=2, padding=1)
    x = batch_norm(
        x,
        params["stem.bn.weight"],
        params["stem.bn.bias"],
        params["stem.bn.running_mean"],
        params["stem.bn.running_var"],
    )
    x = jax.nn.relu(x)
    h = block(below(params, "block1"), x)
    x = h + x
    x = jax.nn.relu(x)
    x = down_block(below(params, "block2"), x)
    x = jax.nn.relu(x)
    x = jnp.mean(x, axis=(1, 2))
    return linear(x, params["fc.weight"], params["fc.bias"])


def init_params(key):
    init = jax.nn.initializers.lecun_normal()
    keys = iter(jax.random.split(key, 7))
    return {
        "stem.conv.weight": init(next(keys), (3, 3, 1, 16)),
        "stem.bn.weight": jnp.ones((16,)),
        "stem.bn.bias": jnp.zeros((16,)),
        "stem.bn.running_mean": jnp.zeros((16,)),
        "stem.bn.running_var": jnp.ones((16,)),
        "block1.conv1.weight": init(next(keys), (3, 3, 16, 16)),
        "block1.bn1.weight": jnp.ones((16,)),
        "block1.bn1.bias": jnp.zeros((16,)),
        "block1.bn1.running_mean": jnp.zeros((16,)),
        "block1.bn1.running_var": jnp.ones((16,)),
        "block1.conv2.weight": init(next(keys), (3, 3, 16, 16)),
        "block1.bn2.weight": jnp.ones((16,)),
        "block1.bn2.bias": jnp.zeros((16,)),
        "block1.bn2.running_mean": jnp.zeros((16,)),
        "block1.bn2.running_var": jnp.ones((16,)),
        "block2.down.conv.weight": init(next(keys), (1, 1, 16, 32)),
        "block2.down.bn.weight": jnp.ones((32,)),
        "block2.down.bn.bias": jnp.zeros((32,)),
        "block2.down.bn.running_mean": jnp.zeros((32,)),
        "block2.down.bn.running_var": jnp.ones((32,)),
        "block2.conv1.weight": init(next(keys), (3, 3, 16, 32)),
        "block2.bn1.weight": jnp.ones((32,)),
        "block2.bn1.bias": jnp.zeros((32,)),
        "block2.bn1.running_mean": jnp.zeros((32,)),
        "block2.bn1.running_var": jnp.ones((32,)),
        "block2.conv2.weight": init(next(keys), (3, 3, 32, 32)),
        "block2.bn2.weight": jnp.ones((32,)),
        "block2.bn2.bias": jnp.zeros((32,)),
        "block2.bn2.running_mean": jnp.zeros((32,)),
        "block2.bn2.running_var": jnp.ones((32,)),
        "fc.weight": init(next(keys), (32, 10)),
        "fc.bias": jnp.zeros((10,)),
    }


@jax.jit
def predict_step(params, x):
    return forward(params, x)


def main():
    here = Path(__file__).resolve().parent
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", default=here / "data.safetensors")
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--out", help="saves what is predicted of each full batch")
    args = parser.parse_args()

    params = init_params(jax.random.key(SEED))
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
