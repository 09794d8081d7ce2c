"""Classifies rows of a table by a loop of its own in TensorFlow."""

# mypy: ignore-errors

import argparse

import numpy as np
import tensorflow as tf


class Dense(tf.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        start = tf.random.normal((inputs, outputs)) * (2.0 / inputs) ** 0.5
        self.w = tf.Variable(start)
        self.b = tf.Variable(tf.zeros(outputs))

    def __call__(self, x):
        return x @ self.w + self.b


class Network(tf.Module):
    def __init__(self, width):
        super().__init__()
        self.hidden = [Dense(64, width), Dense(width, width)]
        self.out = Dense(width, 10)

    def __call__(self, x):
        for layer in self.hidden:
            x = tf.nn.relu(layer(x))
        return self.out(x)


class Trainer:
    def __init__(self, width):
        self.net = Network(width)
        self.momenta = [tf.Variable(tf.zeros_like(v)) for v in self.net.variables]

    @tf.function
    def step(self, x, y, rate):
        with tf.GradientTape() as tape:
            losses = tf.nn.sparse_softmax_cross_entropy_with_logits(y, self.net(x))
            loss = tf.reduce_mean(losses)
        variables = self.net.trainable_variables
        gradients = tape.gradient(loss, variables)
        for v, m, g in zip(variables, self.momenta, gradients, strict=True):
            m.assign(0.9 * m + g)
            v.assign_sub(rate * m)
        return loss


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=1000)
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("--width", type=int, default=512)
    args = parser.parse_args()
    rng = np.random.default_rng(0)
    x = tf.constant(rng.standard_normal((6400, 64)), tf.float32)
    y = tf.constant(rng.integers(0, 10, 6400))
    trainer = Trainer(args.width)
    count = 0
    for epoch in range(args.epochs):
        for begin in range(0, len(x), args.batch):
            rate = tf.constant(0.05 / (1 + 0.001 * count))
            end = begin + args.batch
            loss = trainer.step(x[begin:end], y[begin:end], rate)
            count += 1
        print(f"epoch {epoch}: loss {float(loss):.4f}", flush=True)


if __name__ == "__main__":
    main()
