"""Small conv net with a hand written SGD step and a per-step learning rate."""
import math
import time

import numpy as np
import tensorflow as tf

STEPS = 240
BATCH = 32
BASE_LR = 0.05

rng = np.random.default_rng(0)
images = rng.normal(size=(2048, 16, 16, 1)).astype("float32")
labels = (images.mean(axis=(1, 2, 3)) > 0).astype("int32")
images += labels[:, None, None, None] * 0.3


class ConvNet(tf.Module):
    def __init__(self):
        init = tf.random.Generator.from_seed(1)
        shapes = [(3, 3, 1, 16), (3, 3, 16, 32), (3, 3, 32, 32)]
        self.kernels = [tf.Variable(init.normal(s) * 0.1) for s in shapes]
        self.biases = [tf.Variable(tf.zeros(s[-1])) for s in shapes]
        self.head = tf.Variable(init.normal((32, 2)) * 0.1)

    def __call__(self, x):
        for k, b in zip(self.kernels, self.biases):
            x = tf.nn.relu(tf.nn.conv2d(x, k, strides=1, padding="SAME") + b)
            x = tf.nn.max_pool2d(x, 2, 2, "SAME")
        return tf.reduce_mean(x, axis=[1, 2]) @ self.head


model = ConvNet()
velocity = [tf.Variable(tf.zeros_like(v)) for v in model.trainable_variables]


@tf.function
def train_step(x, y, lr):
    with tf.GradientTape() as tape:
        logits = model(x)
        loss = tf.reduce_mean(
            tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits))
    grads = tape.gradient(loss, model.trainable_variables)
    for var, vel, g in zip(model.trainable_variables, velocity, grads):
        vel.assign(0.9 * vel + g)
        var.assign_sub(lr * vel)
    return loss


start = time.time()
for step in range(STEPS):
    idx = rng.integers(0, len(images), size=BATCH)
    lr = BASE_LR * 0.5 * (1 + math.cos(math.pi * step / STEPS))
    loss = train_step(tf.constant(images[idx]), tf.constant(labels[idx]), lr)
    if step % 20 == 0:
        print(f"step {step} lr {lr:.4f} loss {loss.numpy():.4f} ({time.time() - start:.1f}s)")
