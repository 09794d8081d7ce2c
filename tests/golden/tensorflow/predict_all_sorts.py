"""Predicts with all_sorts in TensorFlow."""

import argparse
import functools
import itertools
import json
import math
from pathlib import Path

import numpy as np
import tensorflow as tf
from safetensors.numpy import load_file, save_file

BATCH_SIZE = 256

# float32 means float32, also on a GPU that has TF32.
tf.config.experimental.enable_tensor_float_32_execution(False)


def load_data(path):
    """The inputs as numpy arrays, pictures in N, H, W, C."""
    data = load_file(path)
    picture = data["picture"].astype(np.float32) / 255.0
    picture = picture.transpose(0, 2, 3, 1)
    words = data["words"].astype(np.int32)
    return picture, words


def load_weights(path):
    """Initial weights (kernels O, I, H, W; linear O, I) as this script stores them."""
    layout_file = Path(__file__).with_name("predict_tensorflow.layout.json")
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
    """Endless batches as tensors, in file order; rows left over are dropped."""
    if len(arrays[0]) < BATCH_SIZE:
        raise ValueError("the data has fewer rows than one batch")
    starts = range(0, len(arrays[0]) - BATCH_SIZE + 1, BATCH_SIZE)
    ready = [tuple(tf.constant(a[i : i + BATCH_SIZE]) for a in arrays) for i in starts]
    return itertools.cycle(ready)


def linear(x, weight, bias):
    return tf.nn.bias_add(tf.matmul(x, weight), bias)


@tf.function(jit_compile=True)
def conv2d_xla(x, kernel, *, strides, padding, dilations):
    """For convolutions whose gradient TensorFlow's own CPU kernels lack."""
    return tf.nn.conv2d(x, kernel, strides, padding, dilations=dilations)


def batch_norm(x, scale, shift, mean, var, *, eps):
    """Normalises with the running statistics."""
    if x.dtype == tf.float32 and x.shape.rank == 4:  # one kernel does all of it
        return tf.raw_ops.FusedBatchNormV3(
            x=x,
            scale=scale,
            offset=shift,
            mean=mean,
            variance=var,
            epsilon=eps,
            is_training=False,
        )[0]
    return tf.nn.batch_normalization(x, mean, var, shift, scale, eps)


def layer_norm(x, scale, shift, *, dims, eps):
    mean, var = tf.nn.moments(x, axes=list(range(-dims, 0)), keepdims=True)
    return tf.nn.batch_normalization(x, mean, var, shift, scale, eps)


def gelu(x):
    """Exact also in float64, where tf.nn.gelu has its constants rounded to float32."""
    return 0.5 * x * (1 + tf.math.erf(x / math.sqrt(2)))


def gelu_tanh(x):
    """Exact also in float64, where tf.nn.gelu has its constants rounded to float32."""
    root = math.sqrt(8 / math.pi)  # half of 1 + tanh(z) is sigmoid(2 z): fewer kernels
    return x * tf.sigmoid(x * (root + 0.044715 * root * tf.square(x)))


def avg_pool2d(x, *, ksize, strides, padding, count_include_pad):
    """tf.nn.avg_pool2d takes no explicit padding."""
    y = tf.nn.avg_pool2d(tf.pad(x, padding), ksize, strides, "VALID")
    if count_include_pad:
        return y
    inside = tf.pad(tf.ones((1, *x.shape[1:3], 1), x.dtype), padding)
    return y / tf.nn.avg_pool2d(inside, ksize, strides, "VALID")


class Stem(tf.Module):
    def __init__(self, weights, prefix):
        super().__init__()
        self.conv_weight = tf.Variable(weights[f"{prefix}.conv_weight"])
        self.conv_bias = tf.Variable(weights[f"{prefix}.conv_bias"])
        self.depth_weight = tf.Variable(weights[f"{prefix}.depth_weight"])
        self.bn_weight = tf.Variable(weights[f"{prefix}.bn_weight"])
        self.bn_bias = tf.Variable(weights[f"{prefix}.bn_bias"])
        self.bn_running_mean = tf.Variable(
            weights[f"{prefix}.bn_running_mean"], trainable=False
        )
        self.bn_running_var = tf.Variable(
            weights[f"{prefix}.bn_running_var"], trainable=False
        )

    def __call__(self, x):
        x = tf.nn.conv2d(
            x,
            self.conv_weight,
            strides=(2, 1),
            padding=[[0, 0], [0, 1], [1, 0], [0, 0]],
        )
        x = tf.nn.bias_add(x, self.conv_bias)
        x = conv2d_xla(
            x,
            self.depth_weight,
            strides=1,
            padding=[[0, 0], [2, 2], [2, 2], [0, 0]],
            dilations=(2, 2),
        )
        x = gelu_tanh(x)
        x = tf.nn.max_pool2d(
            x, ksize=2, strides=1, padding=[[0, 0], [1, 0], [0, 1], [0, 0]]
        )
        x = avg_pool2d(
            x,
            ksize=(3, 2),
            strides=2,
            padding=[[0, 0], [1, 0], [0, 1], [0, 0]],
            count_include_pad=False,
        )
        x = tf.pad(x, [[0, 0], [1, 0], [0, 2], [0, 0]], constant_values=0.5)
        x = avg_pool2d(
            x,
            ksize=2,
            strides=1,
            padding=[[0, 0], [1, 1], [0, 0], [0, 0]],
            count_include_pad=True,
        )
        return batch_norm(
            x,
            self.bn_weight,
            self.bn_bias,
            self.bn_running_mean,
            self.bn_running_var,
            eps=0.001,
        )


class AllSorts(tf.Module):
    def __init__(self, weights):
        super().__init__()
        self.words_weight = tf.Variable(weights["words_weight"])
        self.norm_weight = tf.Variable(weights["norm_weight"])
        self.norm_bias = tf.Variable(weights["norm_bias"])
        self.mix_weight = tf.Variable(weights["mix_weight"])
        self.mix_bias = tf.Variable(weights["mix_bias"])
        self.head_weight = tf.Variable(weights["head_weight"])
        self.tied_bias = tf.Variable(weights["tied_bias"])
        self.stem = Stem(weights, "stem")

    def __call__(self, picture, words):
        picture = self.stem(picture)
        s = tf.sigmoid(picture)
        gated = picture * s
        pooled = tf.reduce_mean(gated, axis=(1, 2))
        e = tf.nn.embedding_lookup(self.words_weight, words)
        t = tf.transpose(e, (0, 2, 1))
        r = tf.reshape(t, (-1, 5, 6))
        l_2 = layer_norm(r, self.norm_weight, self.norm_bias, dims=1, eps=1e-6)
        f = tf.reshape(l_2, (-1, 30))
        q = linear(f, self.mix_weight, self.mix_bias)
        w = tf.tanh(q)
        k = tf.nn.softmax(w, axis=1)
        both = tf.concat([pooled, k], axis=1)
        z = tf.matmul(both, self.head_weight)
        u = z + pooled
        ge = gelu(u)
        logits = tf.matmul(ge, self.words_weight, transpose_b=True)
        return tf.nn.bias_add(logits, self.tied_bias)


def predict_step(model, picture, words):
    return model(picture, words)


def compiled(function, *modules):
    """The graph of `function`, called with tensors alone.

    Modules among the arguments of each call cost it a tenth of a millisecond.
    """
    return tf.function(functools.partial(function, *modules))


def main():
    here = Path(__file__).resolve().parent
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", default=here / "data.safetensors")
    parser.add_argument("--weights", default=here / "weights.safetensors")
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--out", help="saves what is predicted of each full batch")
    args = parser.parse_args()

    model = AllSorts(load_weights(args.weights))
    predict = compiled(predict_step, model)
    arrays = load_data(args.data)
    data = batches(arrays)
    steps = len(arrays[0]) // BATCH_SIZE if args.out else args.steps
    outputs = []
    for step in range(steps):
        output = predict(*next(data))
        if step % 10 == 0:
            print(f"batch {step}: mean output {float(tf.reduce_mean(output)):.6f}")
        if args.out:
            outputs.append(np.asarray(output, np.float32))
    if args.out:
        save_file({"output": np.concatenate(outputs)}, args.out)


if __name__ == "__main__":
    main()
