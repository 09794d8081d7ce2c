"""Trains mlp_small with TensorFlow."""

import argparse
import functools
import itertools
import json
from pathlib import Path

import numpy as np
import tensorflow as tf
from safetensors.numpy import load_file

BATCH_SIZE = 1000
LEARNING_RATE = 0.1
MOMENTUM = 0.9
WEIGHT_DECAY = 0.01
WARMUP_STEPS = 10
WARMUP_FROM = 0.1
DECAY_STEPS = 90
FINAL_SHARE = 0.01
CLIP_NORM = 1.0
EMA_DECAY = 0.99
ACCUMULATE = 4

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


def linear(x, weight, bias):
    return tf.nn.bias_add(tf.matmul(x, weight), bias)


class MlpSmall(tf.Module):
    def __init__(self, weights):
        super().__init__()
        self.fc1_weight = tf.Variable(weights["fc1_weight"])
        self.fc1_bias = tf.Variable(weights["fc1_bias"])
        self.fc2_weight = tf.Variable(weights["fc2_weight"])
        self.fc2_bias = tf.Variable(weights["fc2_bias"])

    def __call__(self, x):
        x = linear(x, self.fc1_weight, self.fc1_bias)
        x = tf.nn.relu(x)
        return linear(x, self.fc2_weight, self.fc2_bias)


def loss_fn(logits, y):
    losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits)
    return tf.reduce_mean(losses)


def zeros_like(variables):
    return [tf.Variable(tf.zeros_like(v), trainable=False) for v in variables]


def learning_rate(step):
    """That of a step; steps are counted from 0."""
    step = tf.convert_to_tensor(step)
    after = step - WARMUP_STEPS
    done = tf.minimum(after / DECAY_STEPS, 1.0)
    warm = WARMUP_FROM + (1 - WARMUP_FROM) * step / WARMUP_STEPS
    share = FINAL_SHARE + (1 - FINAL_SHARE) * (1 + tf.cos(np.pi * done)) / 2
    return LEARNING_RATE * tf.where(step < WARMUP_STEPS, warm, share)


class SGD(tf.Module):
    """Gradient descent with momentum."""

    def __init__(self, variables, kept):
        super().__init__()
        self.targets = list(variables)
        names = {id(variable) for variable in kept}  # that do not decay
        self.decays = [0.0 if id(v) in names else WEIGHT_DECAY for v in variables]
        self.step = tf.Variable(0, dtype=tf.int64, trainable=False)
        self.velocities = zeros_like(variables)
        self.averages = zeros_like(variables)

    def apply_gradients(self, gradients):
        gradients, _ = tf.clip_by_global_norm(gradients, CLIP_NORM)
        done = tf.cast(self.step, self.targets[0].dtype)
        lr = learning_rate(done)
        kept = EMA_DECAY * tf.cast(done > 0, done.dtype)  # the first update copies
        self.step.assign_add(1)
        for variable, g, velocity, average, decay in zip(
            self.targets,
            gradients,
            self.velocities,
            self.averages,
            self.decays,
            strict=True,
        ):
            g = g + decay * variable
            u = MOMENTUM * velocity + g
            velocity.assign(u)
            variable.assign_sub(lr * u)
            average.assign(kept * average + (1 - kept) * variable)


def make_optimizer(model):
    kept = [model.fc1_bias, model.fc2_bias]
    return SGD(model.trainable_variables, kept)


def train_step(model, optimizer, *batch):
    losses, sums = [], None
    parts = zip(*(tf.split(t, ACCUMULATE) for t in batch), strict=True)
    for x, y in parts:
        with tf.GradientTape() as tape:
            prediction = model(x)
            loss = loss_fn(prediction, y)
            loss = loss / ACCUMULATE
        gradients = tape.gradient(loss, optimizer.targets)
        if sums is not None:
            gradients = [s + g for s, g in zip(sums, gradients, strict=True)]
        sums = gradients
        losses.append(loss)
    optimizer.apply_gradients(sums)
    return tf.add_n(losses)


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

    model = MlpSmall(load_weights(args.weights))
    optimizer = make_optimizer(model)
    data = batches(load_data(args.data))
    train = compiled(train_step, model, optimizer)
    for step in range(args.steps):
        loss = train(*next(data))
        if step % 10 == 0:
            print(f"step {step}: loss {float(loss):.6f}")


if __name__ == "__main__":
    main()
