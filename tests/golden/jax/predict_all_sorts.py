"""Predicts with all_sorts in JAX."""

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
    picture = data["picture"].astype(np.float32) / 255.0
    picture = picture.transpose(0, 2, 3, 1)
    words = data["words"].astype(np.int32)
    return picture, words


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


def below(tree, path):
    """What stands below a path, by the rest of the names."""
    start = path + "."
    return {name[len(start) :]: x for name, x in tree.items() if name.startswith(start)}


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


def batch_norm(x, scale, shift, mean, var, *, eps):
    """Normalises with the running statistics."""
    return (x - mean) * (lax.rsqrt(var + eps) * scale) + shift


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


def stem(params, x):
    x = conv2d(
        x,
        params["conv.weight"],
        params["conv.bias"],
        stride=(2, 1),
        padding=((0, 1), (1, 0)),
    )
    x = conv2d(
        x,
        params["depth.weight"],
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
        params["bn.weight"],
        params["bn.bias"],
        params["bn.running_mean"],
        params["bn.running_var"],
        eps=0.001,
    )


def forward(params, picture, words):
    picture = stem(below(params, "stem"), picture)
    s = jax.nn.sigmoid(picture)
    gated = picture * s
    pooled = jnp.mean(gated, axis=(1, 2))
    e = params["words.weight"][words]
    t = jnp.transpose(e, (0, 2, 1))
    r = t.reshape(t.shape[0], 5, 6)
    l_2 = layer_norm(r, params["norm.weight"], params["norm.bias"], dims=1, eps=1e-6)
    f = l_2.reshape(l_2.shape[0], 30)
    q = linear(f, params["mix.weight"], params["mix.bias"])
    w = jnp.tanh(q)
    k = jax.nn.softmax(w, axis=1)
    both = jnp.concatenate([pooled, k], axis=1)
    z = both @ params["head.weight"]
    u = z + pooled
    ge = jax.nn.gelu(u, approximate=False)
    return linear(ge, params["words.weight"].T, params["tied_bias"])


def init_params(weights):
    return {name: jnp.array(value) for name, value in weights.items()}


@jax.jit
def predict_step(params, picture, words):
    return forward(params, picture, words)


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
