"""Trains residual_cnn with TensorFlow."""

import argparse
import functools
import itertools
import json
from pathlib import Path

import numpy as np
import tensorflow as tf
from safetensors.numpy import load_file

BATCH_SIZE = 256
LEARNING_RATE = 0.1
MOMENTUM = 0.9
WEIGHT_DECAY = 5e-4

# float32 means float32, also on a GPU that has TF32.
tf.config.experimental.enable_tensor_float_32_execution(False)


def load_data(path):
    """The inputs as numpy arrays, pictures in N, H, W, C."""
    data = load_file(path)
    x = data["x"].astype(np.float32) / 255.0
    x = x.transpose(0, 2, 3, 1)
    y = data["y"].astype(np.int32)
    return x, y


def load_weights(path):
    """Initial weights (kernels O, I, H, W; linear O, I) as this script stores them."""
    layout_file = Path(__file__).with_name("train_tensorflow.layout.json")
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


def batch_norm(x, scale, shift, running_mean, running_var, *, eps, momentum):
    """Normalises with the statistics of the batch and updates the running ones."""
    if x.dtype == tf.float32 and x.shape.rank == 4:  # one kernel does all of it
        y, mean, var, *_ = tf.raw_ops.FusedBatchNormV3(
            x=x, scale=scale, offset=shift, mean=[], variance=[], epsilon=eps
        )
        count = tf.cast(tf.size(x) // x.shape[-1], x.dtype)
        var *= 1 - 1 / count  # the kernel divides by count - 1
    else:
        mean, var = tf.nn.moments(x, axes=list(range(x.shape.rank - 1)))
        y = tf.nn.batch_normalization(x, mean, var, shift, scale, eps)
    running_mean.assign((1 - momentum) * running_mean + momentum * mean)
    running_var.assign((1 - momentum) * running_var + momentum * var)
    return y


class Block(tf.Module):
    def __init__(self, weights, prefix):
        super().__init__()
        self.conv1_weight = tf.Variable(weights[f"{prefix}.conv1_weight"])
        self.bn1_weight = tf.Variable(weights[f"{prefix}.bn1_weight"])
        self.bn1_bias = tf.Variable(weights[f"{prefix}.bn1_bias"])
        self.bn1_running_mean = tf.Variable(
            weights[f"{prefix}.bn1_running_mean"], trainable=False
        )
        self.bn1_running_var = tf.Variable(
            weights[f"{prefix}.bn1_running_var"], trainable=False
        )
        self.conv2_weight = tf.Variable(weights[f"{prefix}.conv2_weight"])
        self.bn2_weight = tf.Variable(weights[f"{prefix}.bn2_weight"])
        self.bn2_bias = tf.Variable(weights[f"{prefix}.bn2_bias"])
        self.bn2_running_mean = tf.Variable(
            weights[f"{prefix}.bn2_running_mean"], trainable=False
        )
        self.bn2_running_var = tf.Variable(
            weights[f"{prefix}.bn2_running_var"], trainable=False
        )

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
            eps=1e-5,
            momentum=0.1,
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
            eps=1e-5,
            momentum=0.1,
        )


class DownBlock(tf.Module):
    def __init__(self, weights, prefix):
        super().__init__()
        self.down_conv_weight = tf.Variable(weights[f"{prefix}.down_conv_weight"])
        self.down_bn_weight = tf.Variable(weights[f"{prefix}.down_bn_weight"])
        self.down_bn_bias = tf.Variable(weights[f"{prefix}.down_bn_bias"])
        self.down_bn_running_mean = tf.Variable(
            weights[f"{prefix}.down_bn_running_mean"], trainable=False
        )
        self.down_bn_running_var = tf.Variable(
            weights[f"{prefix}.down_bn_running_var"], trainable=False
        )
        self.conv1_weight = tf.Variable(weights[f"{prefix}.conv1_weight"])
        self.bn1_weight = tf.Variable(weights[f"{prefix}.bn1_weight"])
        self.bn1_bias = tf.Variable(weights[f"{prefix}.bn1_bias"])
        self.bn1_running_mean = tf.Variable(
            weights[f"{prefix}.bn1_running_mean"], trainable=False
        )
        self.bn1_running_var = tf.Variable(
            weights[f"{prefix}.bn1_running_var"], trainable=False
        )
        self.conv2_weight = tf.Variable(weights[f"{prefix}.conv2_weight"])
        self.bn2_weight = tf.Variable(weights[f"{prefix}.bn2_weight"])
        self.bn2_bias = tf.Variable(weights[f"{prefix}.bn2_bias"])
        self.bn2_running_mean = tf.Variable(
            weights[f"{prefix}.bn2_running_mean"], trainable=False
        )
        self.bn2_running_var = tf.Variable(
            weights[f"{prefix}.bn2_running_var"], trainable=False
        )

    def __call__(self, x):
        h = tf.nn.conv2d(x, self.down_conv_weight, strides=2, padding="VALID")
        h = batch_norm(
            h,
            self.down_bn_weight,
            self.down_bn_bias,
            self.down_bn_running_mean,
            self.down_bn_running_var,
            eps=1e-5,
            momentum=0.1,
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
            eps=1e-5,
            momentum=0.1,
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
            eps=1e-5,
            momentum=0.1,
        )
        return x + h


class ResidualCnn(tf.Module):
    def __init__(self, weights):
        super().__init__()
        self.stem_conv_weight = tf.Variable(weights["stem_conv_weight"])
        self.stem_bn_weight = tf.Variable(weights["stem_bn_weight"])
        self.stem_bn_bias = tf.Variable(weights["stem_bn_bias"])
        self.stem_bn_running_mean = tf.Variable(
            weights["stem_bn_running_mean"], trainable=False
        )
        self.stem_bn_running_var = tf.Variable(
            weights["stem_bn_running_var"], trainable=False
        )
        self.fc_weight = tf.Variable(weights["fc_weight"])
        self.fc_bias = tf.Variable(weights["fc_bias"])
        self.block1 = Block(weights, "block1")
        self.block2 = DownBlock(weights, "block2")

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
            eps=1e-5,
            momentum=0.1,
        )
        x = tf.nn.relu(x)
        h = self.block1(x)
        x = h + x
        x = tf.nn.relu(x)
        x = self.block2(x)
        x = tf.nn.relu(x)
        x = tf.reduce_mean(x, axis=(1, 2))
        return linear(x, self.fc_weight, self.fc_bias)


def loss_fn(logits, y):
    losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits)
    return tf.reduce_mean(losses)


def zeros_like(variables):
    return [tf.Variable(tf.zeros_like(v), trainable=False) for v in variables]


class SGD(tf.Module):
    """Gradient descent with Nesterov momentum."""

    def __init__(self, variables):
        super().__init__()
        self.targets = list(variables)
        self.velocities = zeros_like(variables)

    def apply_gradients(self, gradients):
        for variable, g, velocity in zip(
            self.targets, gradients, self.velocities, strict=True
        ):
            g = g + WEIGHT_DECAY * variable
            u = MOMENTUM * velocity + g
            velocity.assign(u)
            variable.assign_sub(LEARNING_RATE * (g + MOMENTUM * u))


def train_step(model, optimizer, x, y):
    with tf.GradientTape() as tape:
        prediction = model(x)
        loss = loss_fn(prediction, y)
    gradients = tape.gradient(loss, optimizer.targets)
    optimizer.apply_gradients(gradients)
    return loss


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
    args = parser.parse_args()

    model = ResidualCnn(load_weights(args.weights))
    optimizer = SGD(model.trainable_variables)
    data = batches(load_data(args.data))
    train = compiled(train_step, model, optimizer)
    for step in range(args.steps):
        loss = train(*next(data))
        if step % 10 == 0:
            print(f"step {step}: loss {float(loss):.6f}")


if __name__ == "__main__":
    main()
