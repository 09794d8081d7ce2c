"""The ResNet of recipes/resnet18_small.toml in TensorFlow, as one would type it."""

# mypy: ignore-errors

import tensorflow as tf
from pairing.bursts import Bursts
from tensorflow_loop import (
    SGD,
    Model,
    cross_entropy,
    load_batches,
    pictures,
    train_loop,
)


class ResNet(Model):
    def native(self, name, w):
        return w.transpose(2, 3, 1, 0) if w.ndim == 4 else w.T

    def conv(self, name, x, stride=1):
        w = self.p[name + ".weight"]
        pad = [[0, 0], *[[size // 2, size // 2] for size in w.shape[:2]], [0, 0]]
        return tf.nn.conv2d(x, w, stride, pad)

    def loss(self, x, y):
        x = tf.nn.relu(self.batch_norm("bn1", self.conv("conv1", x, 2)))
        x = tf.nn.max_pool2d(x, 3, 2, [[0, 0], [1, 1], [1, 1], [0, 0]])
        for stage in range(1, 5):
            for block in range(2):
                name = f"layer{stage}.{block}."
                stride = 2 if stage > 1 and block == 0 else 1
                h = self.conv(name + "conv1", x, stride)
                h = tf.nn.relu(self.batch_norm(name + "bn1", h))
                h = self.batch_norm(name + "bn2", self.conv(name + "conv2", h))
                if stride == 2:
                    x = self.conv(name + "downsample.0", x, stride)
                    x = self.batch_norm(name + "downsample.1", x)
                x = tf.nn.relu(h + x)
        x = tf.reduce_mean(x, (1, 2))
        return cross_entropy(self.dense("fc", x), y)


def train(bursts: Bursts, data: str, weights: str) -> None:
    model = ResNet(weights)
    optimizer = SGD(model.trainable_variables, 2e-4, momentum=0.9, decay=1e-4)
    batches = load_batches(data, ("x", "y"), 32, pictures)
    train_loop(bursts, model, optimizer, batches)
