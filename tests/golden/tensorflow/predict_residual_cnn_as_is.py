"""Predicts with residual_cnn in TensorFlow."""

import argparse
import functools
import itertools
import math
from pathlib import Path

import numpy as np
import tensorflow as tf
from safetensors.numpy import load_file, save_file

BATCH_SIZE = 256


def load_data(path):
    """The inputs as numpy arrays, pictures in N, H, W, C."""
    data = load_file(path)
    x = data["x"].astype(np.float32) / 255.0
    x = x.transpose(0, 2, 3, 1)
    return (x,)


def batches(arrays):
    """Endless batches as tensors, in file order; rows left over are dropped."""
    if len(arrays[0]) < BATCH_SIZE:
        raise ValueError("the data has fewer rows than one batch")
    starts = range(0, len(arrays[0]) - BATCH_SIZE + 1, BATCH_SIZE)
    ready = [tuple(tf.constant(a[i : i + BATCH_SIZE]) for a in arrays) for i in starts]
    return itertools.cycle(ready)


def linear(x, weight, bias):
    return tf.nn.bias_add(tf.matmul(x, weight), bias)


def batch_norm(x, scale, shift, mean, var, *, eps=1e-3):
    """Normalises with the running statistics."""
    if x.dtype == tf.float32 and x.shape.rank == 4:  # one kernel does all of it
        return tf.raw_ops.FusedBatchNormV3(
            x=x,
            scale=scale,
            offset=shift,
            mean=mean,
            variance=var,
            is_training=False,
        )[0]
    return tf.nn.batch_normalization(x, mean, var, shift, scale, eps)


def glorot_uniform(shape):
    fan_in, fan_out = (math.prod(shape[:-2]) * n for n in shape[-2:])
    limit = math.sqrt(6 / (fan_in + fan_out))
    return tf.random.uniform(shape, -limit, limit)


class Block(tf.Module):
    def __init__(self):
        super().__init__()
        self.conv1_weight = tf.Variable(glorot_uniform((3, 3, 16, 16)))
        self.bn1_weight = tf.Variable(tf.ones((16,)))
        self.bn1_bias = tf.Variable(tf.zeros((16,)))
        self.bn1_running_mean = tf.Variable(tf.zeros((16,)), trainable=False)
        self.bn1_running_var = tf.Variable(tf.ones((16,)), trainable=False)
        self.conv2_weight = tf.Variable(glorot_uniform((3, 3, 16, 16)))
        self.bn2_weight = tf.Variable(tf.ones((16,)))
        self.bn2_bias = tf.Variable(tf.zeros((16,)))
        self.bn2_running_mean = tf.Variable(tf.zeros((16,)), trainable=False)
        self.bn2_running_var = tf.Variable(tf.ones((16,)), trainable=False)

    def __call__(self, x):
        x = tf.nn.conv2d(
            x, self.conv1_weight, strides=1, padding=[[0, 0], [1, 1], [1, 1], [0, 0]]
        )
        x = batch_norm(
            x,
            self.bn1_weight,
            self.bn1_bias,
            self.bn1_running_mean,
            self.bn1_running_var,
        )
        x = tf.nn.relu(x)
        x = tf.nn.conv2d(
            x, self.conv2_weight, strides=1, padding=[[0, 0], [1, 1], [1, 1], [0, 0]]
        )
        return batch_norm(
            x,
            self.bn2_weight,
            self.bn2_bias,
            self.bn2_running_mean,
            self.bn2_running_var,
        )


class DownBlock(tf.Module):
    def __init__(self):
        super().__init__()
        self.down_conv_weight = tf.Variable(glorot_uniform((1, 1, 16, 32)))
        self.down_bn_weight = tf.Variable(tf.ones((32,)))
        self.down_bn_bias = tf.Variable(tf.zeros((32,)))
        self.down_bn_running_mean = tf.Variable(tf.zeros((32,)), trainable=False)
        self.down_bn_running_var = tf.Variable(tf.ones((32,)), trainable=False)
        self.conv1_weight = tf.Variable(glorot_uniform((3, 3, 16, 32)))
        self.bn1_weight = tf.Variable(tf.ones((32,)))
        self.bn1_bias = tf.Variable(tf.zeros((32,)))
        self.bn1_running_mean = tf.Variable(tf.zeros((32,)), trainable=False)
        self.bn1_running_var = tf.Variable(tf.ones((32,)), trainable=False)
        self.conv2_weight = tf.Variable(glorot_uniform((3, 3, 32, 32)))
        self.bn2_weight = tf.Variable(tf.ones((32,)))
        self.bn2_bias = tf.Variable(tf.zeros((32,)))
        self.bn2_running_mean = tf.Variable(tf.zeros((32,)), trainable=False)
        self.bn2_running_var = tf.Variable(tf.ones((32,)), trainable=False)

    def __call__(self, x):
        h = tf.nn.conv2d(x, self.down_conv_weight, strides=2, padding="VALID")
        h = batch_norm(
            h,
            self.down_bn_weight,
            self.down_bn_bias,
            self.down_bn_running_mean,
            self.down_bn_running_var,
        )
        x = tf.nn.conv2d(
            x, self.conv1_weight, strides=2, padding=[[0, 0], [1, 1], [1, 1], [0, 0]]
        )
        x = batch_norm(
            x,
            self.bn1_weight,
            self.bn1_bias,
            self.bn1_running_mean,
            self.bn1_running_var,
        )
        x = tf.nn.relu(x)
        x = tf.nn.conv2d(
            x, self.conv2_weight, strides=1, padding=[[0, 0], [1, 1], [1, 1], [0, 0]]
        )
        x = batch_norm(
            x,
            self.bn2_weight,
            self.bn2_bias,
            self.bn2_running_mean,
            self.bn2_running_var,
        )
        return x + h


class ResidualCnn(tf.Module):
    def __init__(self):
        super().__init__()
        self.stem_conv_weight = tf.Variable(glorot_uniform((3, 3, 1, 16)))
        self.stem_bn_weight = tf.Variable(tf.ones((16,)))
        self.stem_bn_bias = tf.Variable(tf.zeros((16,)))
        self.stem_bn_running_mean = tf.Variable(tf.zeros((16,)), trainable=False)
        self.stem_bn_running_var = tf.Variable(tf.ones((16,)), trainable=False)
        self.fc_weight = tf.Variable(glorot_uniform((32, 10)))
        self.fc_bias = tf.Variable(tf.zeros((10,)))
        self.block1 = Block()
        self.block2 = DownBlock()

    def __call__(self, x):
        x = tf.nn.conv2d(
            x,
            self.stem_conv_weight,
            strides=2,
            padding=[[0, 0], [1, 1], [1, 1], [0, 0]],
        )
        x = batch_norm(
            x,
            self.stem_bn_weight,
            self.stem_bn_bias,
            self.stem_bn_running_mean,
            self.stem_bn_running_var,
        )
        x = tf.nn.relu(x)
        h = self.block1(x)
        x = h + x
        x = tf.nn.relu(x)
        x = self.block2(x)
        x = tf.nn.relu(x)
        x = tf.reduce_mean(x, axis=(1, 2))
        return linear(x, self.fc_weight, self.fc_bias)


def predict_step(model, x):
    return model(x)


def compiled(function, *modules):
    """The graph of `function`, called with tensors alone.

    Modules among the arguments of each call cost it a tenth of a millisecond.
    """
    return tf.function(functools.partial(function, *modules))


def main():
    here = Path(__file__).resolve().parent
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", default=here / "data.safetensors")
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--out", help="saves what is predicted of each full batch")
    args = parser.parse_args()

    model = ResidualCnn()
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
