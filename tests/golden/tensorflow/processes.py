"""Trains all_sorts with TensorFlow."""

import argparse
import functools
import itertools
import json
import math
import os
import sys
from pathlib import Path

import numpy as np
import tensorflow as tf
from safetensors.numpy import load_file

BATCH_SIZE = 1000
LEARNING_RATE = 0.001
BETA_1 = 0.9
BETA_2 = 0.999
EPSILON = 1e-8
DEVICES = 2
DROPOUT_RATE = 0.25

# float32 means float32, also on a GPU that has TF32.
tf.config.experimental.enable_tensor_float_32_execution(False)

# One process for each device; TF_CONFIG says where they are, and which one this is.
if "TF_CONFIG" not in os.environ:
    workers = [f"localhost:{12355 + i}" for i in range(DEVICES)]
    task = {"type": "worker", "index": 0}
    config = json.dumps({"cluster": {"worker": workers}, "task": task})
    every = f"index 0 to {DEVICES - 1}: TF_CONFIG='{config}' python {__file__}"
    sys.exit(f"start one process for each device, {every}")
PROCESS = json.loads(os.environ["TF_CONFIG"])["task"]["index"]
GPUS = tf.config.list_physical_devices("GPU")
tf.config.set_visible_devices(GPUS[PROCESS : PROCESS + 1], "GPU")
STRATEGY = tf.distribute.MultiWorkerMirroredStrategy()


def load_data(path):
    """The inputs as numpy arrays, pictures in N, H, W, C."""
    data = load_file(path)
    picture = data["picture"].astype(np.float32)
    picture = picture.transpose(0, 2, 3, 1)
    words = data["words"].astype(np.int32)
    y = data["y"].astype(np.int32)
    return picture, words, y


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


def split_rows(array):
    """A part of the rows in each process, the first rows in the first one."""
    parts = np.split(array, DEVICES)
    return STRATEGY.experimental_distribute_values_from_function(
        lambda replica: tf.constant(parts[replica.replica_id_in_sync_group])
    )


def batches(arrays):
    """Endless batches in file order, their rows split over the devices."""
    if len(arrays[0]) < BATCH_SIZE:
        raise ValueError("the data has fewer rows than one batch")
    starts = range(0, len(arrays[0]) - BATCH_SIZE + 1, BATCH_SIZE)
    ready = [tuple(split_rows(a[i : i + BATCH_SIZE]) for a in arrays) for i in starts]
    return itertools.cycle(ready)


def linear(x, weight, bias):
    return tf.nn.bias_add(tf.matmul(x, weight), bias)


def conv2d_xla(x, kernel, *, strides, padding, dilations):
    """For convolutions whose gradient TensorFlow's own CPU kernels lack."""

    @tf.function(jit_compile=True)
    def convolve(x, kernel):
        return tf.nn.conv2d(x, kernel, strides, padding, dilations=dilations)

    return convolve(x, tf.identity(kernel))


def batch_norm(x, scale, shift, running_mean, running_var, *, eps, momentum):
    """Normalises with statistics of the whole batch and updates the running ones."""
    replica = tf.distribute.get_replica_context()
    axes = list(range(x.shape.rank - 1))
    mean = replica.all_reduce("mean", tf.reduce_mean(x, axes))
    var = replica.all_reduce("mean", tf.reduce_mean(tf.square(x - mean), axes))
    running_mean.assign((1 - momentum) * running_mean + momentum * mean)
    running_var.assign((1 - momentum) * running_var + momentum * var)
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
            weights[f"{prefix}.bn_running_mean"],
            trainable=False,
            synchronization=tf.VariableSynchronization.ON_READ,
            aggregation=tf.VariableAggregation.MEAN,
        )
        self.bn_running_var = tf.Variable(
            weights[f"{prefix}.bn_running_var"],
            trainable=False,
            synchronization=tf.VariableSynchronization.ON_READ,
            aggregation=tf.VariableAggregation.MEAN,
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
            momentum=0.01,
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
        d = tf.nn.dropout(f, rate=DROPOUT_RATE)
        q = linear(d, self.mix_weight, self.mix_bias)
        w = tf.tanh(q)
        k = tf.nn.softmax(w, axis=1)
        both = tf.concat([pooled, k], axis=1)
        z = tf.matmul(both, self.head_weight)
        u = z + pooled
        ge = gelu(u)
        logits = tf.matmul(ge, self.words_weight, transpose_b=True)
        return tf.nn.bias_add(logits, self.tied_bias)


def loss_fn(logits, y):
    losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits)
    return tf.reduce_sum(losses)


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
            g = tf.convert_to_tensor(g)
            moment.assign_add((1 - BETA_1) * (g - moment))
            square.assign_add((1 - BETA_2) * (tf.square(g) - square))
            step = moment / (tf.sqrt(square) + EPSILON * root)
            variable.assign_sub(rate * step)


def train_step(model, optimizer, picture, words, y):
    def part(picture, words, y):
        with tf.GradientTape() as tape:
            prediction = model(picture, words)
            loss = loss_fn(prediction, y)
        return loss, tape.gradient(loss, optimizer.targets)

    loss, gradients = STRATEGY.run(part, args=(picture, words, y))
    gradients = [STRATEGY.reduce("sum", g, axis=None) for g in gradients]
    optimizer.apply_gradients(gradients)
    return STRATEGY.reduce("sum", loss, axis=None)


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

    with STRATEGY.scope():
        model = AllSorts(load_weights(args.weights))
        optimizer = Adam(model.trainable_variables)
    data = batches(load_data(args.data))
    train = compiled(train_step, model, optimizer)
    for step in range(args.steps):
        loss = train(*next(data))
        if step % 10 == 0 and PROCESS == 0:
            print(f"step {step}: loss {float(loss):.6f}")


if __name__ == "__main__":
    main()
