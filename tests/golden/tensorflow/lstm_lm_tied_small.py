"""Trains lstm_lm_tied_small with TensorFlow."""

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
    tokens = data["tokens"].astype(np.int32)
    labels = data["labels"].astype(np.int32)
    return tokens, labels


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


def lstm(x, weight_ih, weight_hh, bias):
    """The whole sequence from a zero state, unrolled; the gates are i, f, g, o."""
    gates = tf.tensordot(x, weight_ih, 1) + bias
    h = c = tf.zeros((x.shape[0], weight_hh.shape[0]), x.dtype)
    outputs = []
    for step in tf.unstack(gates, axis=1):
        i, f, g, o = tf.split(step + tf.matmul(h, weight_hh), 4, axis=-1)
        c = tf.sigmoid(f) * c + tf.sigmoid(i) * tf.tanh(g)
        h = tf.sigmoid(o) * tf.tanh(c)
        outputs.append(h)
    return tf.stack(outputs, axis=1)


class LstmLmTiedSmall(tf.Module):
    def __init__(self, weights):
        super().__init__()
        self.tokens_weight = tf.Variable(weights["tokens_weight"])
        self.lstm1_weight_ih_l0 = tf.Variable(weights["lstm1_weight_ih_l0"])
        self.lstm1_weight_hh_l0 = tf.Variable(weights["lstm1_weight_hh_l0"])
        self.lstm1_bias_ih_l0 = tf.Variable(weights["lstm1_bias_ih_l0"])
        self.lstm2_weight_ih_l0 = tf.Variable(weights["lstm2_weight_ih_l0"])
        self.lstm2_weight_hh_l0 = tf.Variable(weights["lstm2_weight_hh_l0"])
        self.lstm2_bias_ih_l0 = tf.Variable(weights["lstm2_bias_ih_l0"])
        self.decoder_bias = tf.Variable(weights["decoder_bias"])

    def __call__(self, tokens):
        x = tf.nn.embedding_lookup(self.tokens_weight, tokens)
        x = tf.nn.dropout(x, rate=DROPOUT_RATE)
        x = lstm(
            x, self.lstm1_weight_ih_l0, self.lstm1_weight_hh_l0, self.lstm1_bias_ih_l0
        )
        x = tf.nn.dropout(x, rate=DROPOUT_RATE)
        x = lstm(
            x, self.lstm2_weight_ih_l0, self.lstm2_weight_hh_l0, self.lstm2_bias_ih_l0
        )
        x = tf.nn.dropout(x, rate=DROPOUT_RATE)
        logits = tf.tensordot(x, self.tokens_weight, axes=(-1, 1))
        return tf.nn.bias_add(logits, self.decoder_bias)


def loss_fn(logits, labels):
    losses = tf.nn.sparse_softmax_cross_entropy_with_logits(
        labels=labels, logits=logits
    )
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
            g = tf.convert_to_tensor(g)
            moment.assign_add((1 - BETA_1) * (g - moment))
            square.assign_add((1 - BETA_2) * (tf.square(g) - square))
            step = moment / (tf.sqrt(square) + EPSILON * root)
            variable.assign_sub(rate * step)


def train_step(model, optimizer, tokens, labels):
    with tf.GradientTape() as tape:
        prediction = model(tokens)
        loss = loss_fn(prediction, labels)
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

    model = LstmLmTiedSmall(load_weights(args.weights))
    optimizer = Adam(model.trainable_variables)
    data = batches(load_data(args.data))
    train = compiled(train_step, model, optimizer)
    for step in range(args.steps):
        loss = train(*next(data))
        if step % 10 == 0:
            print(f"step {step}: loss {float(loss):.6f}")


if __name__ == "__main__":
    main()
