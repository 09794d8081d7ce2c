"""Predicts with mnist_cnn in TensorFlow."""

import argparse
import functools
import itertools
import json
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
    x = data["x"].astype(np.float32) / 255.0
    x = x.transpose(0, 2, 3, 1)
    return (x,)


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


class MnistCnn(tf.Module):
    def __init__(self, weights):
        super().__init__()
        self.conv1_weight = tf.Variable(weights["conv1_weight"])
        self.conv1_bias = tf.Variable(weights["conv1_bias"])
        self.conv2_weight = tf.Variable(weights["conv2_weight"])
        self.conv2_bias = tf.Variable(weights["conv2_bias"])
        self.conv3_weight = tf.Variable(weights["conv3_weight"])
        self.conv3_bias = tf.Variable(weights["conv3_bias"])
        self.conv4_weight = tf.Variable(weights["conv4_weight"])
        self.conv4_bias = tf.Variable(weights["conv4_bias"])
        self.fc1_weight = tf.Variable(weights["fc1_weight"])
        self.fc1_bias = tf.Variable(weights["fc1_bias"])
        self.fc2_weight = tf.Variable(weights["fc2_weight"])
        self.fc2_bias = tf.Variable(weights["fc2_bias"])

    def __call__(self, x):
        x = tf.nn.conv2d(x, self.conv1_weight, strides=1, padding="VALID")
        x = tf.nn.bias_add(x, self.conv1_bias)
        x = tf.nn.relu(x)
        x = tf.nn.conv2d(x, self.conv2_weight, strides=1, padding="VALID")
        x = tf.nn.bias_add(x, self.conv2_bias)
        x = tf.nn.relu(x)
        x = tf.nn.max_pool2d(x, ksize=2, strides=2, padding="VALID")
        x = tf.nn.conv2d(x, self.conv3_weight, strides=1, padding="VALID")
        x = tf.nn.bias_add(x, self.conv3_bias)
        x = tf.nn.relu(x)
        x = tf.nn.conv2d(x, self.conv4_weight, strides=1, padding="VALID")
        x = tf.nn.bias_add(x, self.conv4_bias)
        x = tf.nn.relu(x)
        x = tf.reshape(x, (-1, 4096))
        x = linear(x, self.fc1_weight, self.fc1_bias)
        x = tf.nn.relu(x)
        return linear(x, self.fc2_weight, self.fc2_bias)


def predict_step(model, x):
    return model(x)


def compiled(function, *modules):
    """The graph of `function`, called with tensors alone.

    Modules among the arguments of each call cost it a tenth of a millisecond.
    """
    return tf.function(functools.partial(function, *modules), jit_compile=True)


def main():
    here = Path(__file__).resolve().parent
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", default=here / "data.safetensors")
    parser.add_argument("--weights", default=here / "weights.safetensors")
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--out", help="saves what is predicted of each full batch")
    args = parser.parse_args()

    model = MnistCnn(load_weights(args.weights))
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
