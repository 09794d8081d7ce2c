"""Trains mlp_deep with TensorFlow."""

import argparse
import functools
import itertools
import json
from pathlib import Path

import numpy as np
import tensorflow as tf
from safetensors.numpy import load_file

BATCH_SIZE = 1000
LEARNING_RATE = 0.001
BETA_1 = 0.9
BETA_2 = 0.999
EPSILON = 1e-8
DROPOUT_RATE = 0.5

# float32 means float32, also on a GPU that has TF32.
tf.config.experimental.enable_tensor_float_32_execution(False)


def load_data(path):
    """The inputs as numpy arrays."""
    data = load_file(path)
    x = data["x"].astype(np.float32)
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


def half(x):
    return tf.cast(x, tf.bfloat16)


def in_float32(function, x, *arguments, **options):
    """What adds up many elements, here or for a gradient; x comes in half precision."""
    return half(function(tf.cast(x, tf.float32), *arguments, **options))


def linear(x, weight, bias):
    """tf.matmul would repeat the weight for every row of a sequence."""
    return in_float32(tf.nn.bias_add, tf.tensordot(x, weight, axes=1), bias)


def batch_norm(x, scale, shift, running_mean, running_var, *, eps, momentum):
    """Normalises with the statistics of the batch and updates the running ones."""
    mean, var = tf.nn.moments(x, axes=list(range(x.shape.rank - 1)))
    running_mean.assign((1 - momentum) * running_mean + momentum * mean)
    running_var.assign((1 - momentum) * running_var + momentum * var)
    return tf.nn.batch_normalization(x, mean, var, shift, scale, eps)


class MlpDeep(tf.Module):
    def __init__(self, weights):
        super().__init__()
        self.fc1_weight = tf.Variable(weights["fc1_weight"])
        self.fc1_bias = tf.Variable(weights["fc1_bias"])
        self.bn1_weight = tf.Variable(weights["bn1_weight"])
        self.bn1_bias = tf.Variable(weights["bn1_bias"])
        self.bn1_running_mean = tf.Variable(
            weights["bn1_running_mean"], trainable=False
        )
        self.bn1_running_var = tf.Variable(weights["bn1_running_var"], trainable=False)
        self.fc2_weight = tf.Variable(weights["fc2_weight"])
        self.fc2_bias = tf.Variable(weights["fc2_bias"])
        self.bn2_weight = tf.Variable(weights["bn2_weight"])
        self.bn2_bias = tf.Variable(weights["bn2_bias"])
        self.bn2_running_mean = tf.Variable(
            weights["bn2_running_mean"], trainable=False
        )
        self.bn2_running_var = tf.Variable(weights["bn2_running_var"], trainable=False)
        self.fc3_weight = tf.Variable(weights["fc3_weight"])
        self.fc3_bias = tf.Variable(weights["fc3_bias"])

    def __call__(self, x):
        x = half(x)
        x = linear(x, half(self.fc1_weight), self.fc1_bias)
        x = in_float32(
            batch_norm,
            x,
            self.bn1_weight,
            self.bn1_bias,
            self.bn1_running_mean,
            self.bn1_running_var,
            eps=1e-5,
            momentum=0.1,
        )
        x = tf.nn.relu(x)
        x = tf.nn.dropout(x, rate=DROPOUT_RATE)
        x = linear(x, half(self.fc2_weight), self.fc2_bias)
        x = in_float32(
            batch_norm,
            x,
            self.bn2_weight,
            self.bn2_bias,
            self.bn2_running_mean,
            self.bn2_running_var,
            eps=1e-5,
            momentum=0.1,
        )
        x = tf.nn.relu(x)
        x = tf.nn.dropout(x, rate=DROPOUT_RATE)
        logits = linear(x, half(self.fc3_weight), self.fc3_bias)
        return tf.cast(logits, tf.float32)


def loss_fn(logits, y):
    losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits)
    return tf.reduce_mean(losses)


def zeros_like(variables):
    return [tf.Variable(tf.zeros_like(v), trainable=False) for v in variables]


class Adam(tf.Module):
    """m_hat / (sqrt(v_hat) + epsilon)."""

    def __init__(self, variables):
        super().__init__()
        self.targets = list(variables)
        self.step = tf.Variable(0, dtype=tf.int64, trainable=False)
        self.moments = zeros_like(variables)
        self.squares = zeros_like(variables)

    def apply_gradients(self, gradients):
        t = tf.cast(self.step.assign_add(1), self.targets[0].dtype)
        root = tf.sqrt(1 - BETA_2**t)
        rate = LEARNING_RATE * root / (1 - BETA_1**t)
        for variable, g, moment, square in zip(
            self.targets, gradients, self.moments, self.squares, strict=True
        ):
            moment.assign_add((1 - BETA_1) * (g - moment))
            square.assign_add((1 - BETA_2) * (tf.square(g) - square))
            step = moment / (tf.sqrt(square) + EPSILON * root)
            variable.assign_sub(rate * step)


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

    model = MlpDeep(load_weights(args.weights))
    optimizer = Adam(model.trainable_variables)
    data = batches(load_data(args.data))
    train = compiled(train_step, model, optimizer)
    for step in range(args.steps):
        loss = train(*next(data))
        if step % 10 == 0:
            print(f"step {step}: loss {float(loss):.6f}")


if __name__ == "__main__":
    main()
