"""Trains mlp_deep with TensorFlow."""

import argparse
import functools
import math
from pathlib import Path

import numpy as np
import tensorflow as tf
from safetensors.numpy import load_file

BATCH_SIZE = 1000
LEARNING_RATE = 0.001
BETA_1 = 0.9
BETA_2 = 0.999
EPSILON = 1e-7
STEPS_PER_CALL = 8
DROPOUT_RATE = 0.5


def load_data(path):
    """The inputs as numpy arrays."""
    data = load_file(path)
    x = data["x"].astype(np.float32)
    y = data["y"].astype(np.int32)
    return x, y


def batches(arrays):
    """Endless batches of rows in random order."""
    if len(arrays[0]) < STEPS_PER_CALL * BATCH_SIZE:
        raise ValueError("the data has fewer rows than one call")
    data = tf.data.Dataset.from_tensor_slices(arrays)
    data = data.shuffle(len(arrays[0])).batch(BATCH_SIZE, drop_remainder=True)
    data = data.batch(STEPS_PER_CALL, drop_remainder=True)
    return iter(data.repeat().prefetch(tf.data.AUTOTUNE))


def linear(x, weight, bias):
    return tf.nn.bias_add(tf.matmul(x, weight), bias)


def batch_norm(x, scale, shift, running_mean, running_var, *, eps=1e-3, momentum=0.01):
    """Normalises with the statistics of the batch and updates the running ones."""
    mean, var = tf.nn.moments(x, axes=list(range(x.shape.rank - 1)))
    running_mean.assign((1 - momentum) * running_mean + momentum * mean)
    running_var.assign((1 - momentum) * running_var + momentum * var)
    return tf.nn.batch_normalization(x, mean, var, shift, scale, eps)


def glorot_uniform(shape):
    fan_in, fan_out = (math.prod(shape[:-2]) * n for n in shape[-2:])
    limit = math.sqrt(6 / (fan_in + fan_out))
    return tf.random.uniform(shape, -limit, limit)


class MlpDeep(tf.Module):
    def __init__(self):
        super().__init__()
        self.fc1_weight = tf.Variable(glorot_uniform((100, 256)))
        self.fc1_bias = tf.Variable(tf.zeros((256,)))
        self.bn1_weight = tf.Variable(tf.ones((256,)))
        self.bn1_bias = tf.Variable(tf.zeros((256,)))
        self.bn1_running_mean = tf.Variable(tf.zeros((256,)), trainable=False)
        self.bn1_running_var = tf.Variable(tf.ones((256,)), trainable=False)
        self.fc2_weight = tf.Variable(glorot_uniform((256, 128)))
        self.fc2_bias = tf.Variable(tf.zeros((128,)))
        self.bn2_weight = tf.Variable(tf.ones((128,)))
        self.bn2_bias = tf.Variable(tf.zeros((128,)))
        self.bn2_running_mean = tf.Variable(tf.zeros((128,)), trainable=False)
        self.bn2_running_var = tf.Variable(tf.ones((128,)), trainable=False)
        self.fc3_weight = tf.Variable(glorot_uniform((128, 10)))
        self.fc3_bias = tf.Variable(tf.zeros((10,)))

    def __call__(self, x):
        x = linear(x, self.fc1_weight, self.fc1_bias)
        x = batch_norm(
            x,
            self.bn1_weight,
            self.bn1_bias,
            self.bn1_running_mean,
            self.bn1_running_var,
        )
        x = tf.nn.relu(x)
        x = tf.nn.dropout(x, rate=DROPOUT_RATE)
        x = linear(x, self.fc2_weight, self.fc2_bias)
        x = batch_norm(
            x,
            self.bn2_weight,
            self.bn2_bias,
            self.bn2_running_mean,
            self.bn2_running_var,
        )
        x = tf.nn.relu(x)
        x = tf.nn.dropout(x, rate=DROPOUT_RATE)
        return linear(x, self.fc3_weight, self.fc3_bias)


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


def train_steps(model, optimizer, x, y):
    """STEPS_PER_CALL training steps in one call."""
    losses = tf.TensorArray(optimizer.targets[0].dtype, STEPS_PER_CALL)
    for i in tf.range(STEPS_PER_CALL):
        loss = train_step(model, optimizer, x[i], y[i])
        losses = losses.write(i, loss)
    return losses.stack()


def compiled(function, *modules):
    """The graph of `function`, called with tensors alone.

    Modules among the arguments of each call cost it a tenth of a millisecond.
    """
    return tf.function(functools.partial(function, *modules), jit_compile=True)


def main():
    here = Path(__file__).resolve().parent
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", default=here / "data.safetensors")
    parser.add_argument("--steps", type=int, default=100)
    args = parser.parse_args()

    model = MlpDeep()
    optimizer = Adam(model.trainable_variables)
    data = batches(load_data(args.data))
    train = compiled(train_steps, model, optimizer)
    for step in range(0, args.steps, STEPS_PER_CALL):
        losses = train(*next(data))
        print(f"step {step}: loss {float(losses[0]):.6f}")


if __name__ == "__main__":
    main()
