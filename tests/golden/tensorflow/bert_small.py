"""Trains bert_small with TensorFlow."""

import argparse
import functools
import itertools
import json
import math
from pathlib import Path

import numpy as np
import tensorflow as tf
from safetensors.numpy import load_file

BATCH_SIZE = 1000
LEARNING_RATE = 0.001
BETA_1 = 0.9
BETA_2 = 0.999
EPSILON = 1e-8
DROPOUT_RATE = 0.1

# float32 means float32, also on a GPU that has TF32.
tf.config.experimental.enable_tensor_float_32_execution(False)


def load_data(path):
    """The inputs as numpy arrays."""
    data = load_file(path)
    tokens = data["tokens"].astype(np.int32)
    token_types = data["token_types"].astype(np.int32)
    last = data["last"].astype(np.int32)
    labels = data["labels"].astype(np.int32)
    return tokens, token_types, last, labels


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
    """tf.matmul would repeat the weight for every row of a sequence."""
    return tf.nn.bias_add(tf.tensordot(x, weight, axes=1), bias)


def layer_norm(x, scale, shift, *, dims, eps):
    mean, var = tf.nn.moments(x, axes=list(range(-dims, 0)), keepdims=True)
    return tf.nn.batch_normalization(x, mean, var, shift, scale, eps)


def gelu(x):
    """Exact also in float64, where tf.nn.gelu has its constants rounded to float32."""
    return 0.5 * x * (1 + tf.math.erf(x / math.sqrt(2)))


def attention(q, k, v, last):
    q, k, v = (tf.transpose(heads, (0, 2, 1, 3)) for heads in (q, k, v))
    scores = tf.matmul(q, k, transpose_b=True) * q.shape[-1] ** -0.5
    after = tf.range(scores.shape[-1]) > last[:, None, None, None]
    scores += tf.cast(after, scores.dtype) * (scores.dtype.min / 2)
    weights = tf.nn.softmax(scores)
    return tf.transpose(tf.matmul(weights, v), (0, 2, 1, 3))


class Attention(tf.Module):
    def __init__(self, weights, prefix):
        super().__init__()
        self.query_weight = tf.Variable(weights[f"{prefix}.query_weight"])
        self.query_bias = tf.Variable(weights[f"{prefix}.query_bias"])
        self.key_weight = tf.Variable(weights[f"{prefix}.key_weight"])
        self.key_bias = tf.Variable(weights[f"{prefix}.key_bias"])
        self.value_weight = tf.Variable(weights[f"{prefix}.value_weight"])
        self.value_bias = tf.Variable(weights[f"{prefix}.value_bias"])
        self.output_weight = tf.Variable(weights[f"{prefix}.output_weight"])
        self.output_bias = tf.Variable(weights[f"{prefix}.output_bias"])
        self.norm_weight = tf.Variable(weights[f"{prefix}.norm_weight"])
        self.norm_bias = tf.Variable(weights[f"{prefix}.norm_bias"])

    def __call__(self, x, last):
        q = linear(x, self.query_weight, self.query_bias)
        q = tf.reshape(q, (-1, 24, 4, 16))
        k = linear(x, self.key_weight, self.key_bias)
        k = tf.reshape(k, (-1, 24, 4, 16))
        v = linear(x, self.value_weight, self.value_bias)
        v = tf.reshape(v, (-1, 24, 4, 16))
        h = attention(q, k, v, last)
        h = tf.reshape(h, (-1, 24, 64))
        h = linear(h, self.output_weight, self.output_bias)
        h = tf.nn.dropout(h, rate=DROPOUT_RATE)
        x = x + h
        return layer_norm(x, self.norm_weight, self.norm_bias, dims=1, eps=1e-12)


class EncoderBlock(tf.Module):
    def __init__(self, weights, prefix):
        super().__init__()
        self.intermediate_weight = tf.Variable(weights[f"{prefix}.intermediate_weight"])
        self.intermediate_bias = tf.Variable(weights[f"{prefix}.intermediate_bias"])
        self.output_weight = tf.Variable(weights[f"{prefix}.output_weight"])
        self.output_bias = tf.Variable(weights[f"{prefix}.output_bias"])
        self.norm_weight = tf.Variable(weights[f"{prefix}.norm_weight"])
        self.norm_bias = tf.Variable(weights[f"{prefix}.norm_bias"])
        self.attention = Attention(weights, f"{prefix}.attention")

    def __call__(self, x, last):
        x = self.attention(x, last)
        h = linear(x, self.intermediate_weight, self.intermediate_bias)
        h = gelu(h)
        h = linear(h, self.output_weight, self.output_bias)
        h = tf.nn.dropout(h, rate=DROPOUT_RATE)
        x = x + h
        return layer_norm(x, self.norm_weight, self.norm_bias, dims=1, eps=1e-12)


class Head(tf.Module):
    def __init__(self, weights, prefix):
        super().__init__()
        self.dense_weight = tf.Variable(weights[f"{prefix}.dense_weight"])
        self.dense_bias = tf.Variable(weights[f"{prefix}.dense_bias"])
        self.norm_weight = tf.Variable(weights[f"{prefix}.norm_weight"])
        self.norm_bias = tf.Variable(weights[f"{prefix}.norm_bias"])

    def __call__(self, x):
        x = linear(x, self.dense_weight, self.dense_bias)
        x = gelu(x)
        return layer_norm(x, self.norm_weight, self.norm_bias, dims=1, eps=1e-12)


class BertSmall(tf.Module):
    def __init__(self, weights):
        super().__init__()
        self.embeddings_word_weight = tf.Variable(weights["embeddings_word_weight"])
        self.embeddings_token_type_weight = tf.Variable(
            weights["embeddings_token_type_weight"]
        )
        self.embeddings_position_weight = tf.Variable(
            weights["embeddings_position_weight"]
        )
        self.embeddings_norm_weight = tf.Variable(weights["embeddings_norm_weight"])
        self.embeddings_norm_bias = tf.Variable(weights["embeddings_norm_bias"])
        self.decoder_bias = tf.Variable(weights["decoder_bias"])
        self.encoder = [EncoderBlock(weights, f"encoder.{i}") for i in range(2)]
        self.head = Head(weights, "head")

    def __call__(self, tokens, token_types, last):
        x = tf.nn.embedding_lookup(self.embeddings_word_weight, tokens)
        h = tf.nn.embedding_lookup(self.embeddings_token_type_weight, token_types)
        x = x + h
        x = x + self.embeddings_position_weight[:24]
        x = layer_norm(
            x, self.embeddings_norm_weight, self.embeddings_norm_bias, dims=1, eps=1e-12
        )
        x = tf.nn.dropout(x, rate=DROPOUT_RATE)
        for block in self.encoder:
            x = block(x, last)
        x = self.head(x)
        logits = tf.tensordot(x, self.embeddings_word_weight, axes=(-1, 1))
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


def train_step(model, optimizer, tokens, token_types, last, labels):
    with tf.GradientTape() as tape:
        prediction = model(tokens, token_types, last)
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

    model = BertSmall(load_weights(args.weights))
    optimizer = Adam(model.trainable_variables)
    data = batches(load_data(args.data))
    train = compiled(train_step, model, optimizer)
    for step in range(args.steps):
        loss = train(*next(data))
        if step % 10 == 0:
            print(f"step {step}: loss {float(loss):.6f}")


if __name__ == "__main__":
    main()
