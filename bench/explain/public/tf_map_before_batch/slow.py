"""Sensor readings: scale, add features, one-hot the label, train a linear model."""
import time

import numpy as np
import tensorflow as tf

ROWS, CHANNELS, CLASSES = 40000, 24, 6
BATCH = 200
EPOCHS = 10

rng = np.random.default_rng(0)
raw = rng.integers(0, 4096, size=(ROWS, CHANNELS)).astype("int32")
labels = (raw[:, :CLASSES].argmax(axis=1)).astype("int32")
means = tf.constant(raw.mean(axis=0), tf.float32)
stds = tf.constant(raw.std(axis=0), tf.float32)


def prepare(x, y):
    x = tf.cast(x, tf.float32)
    x = (x - means) / stds
    x = tf.clip_by_value(x, -3.0, 3.0)
    x = tf.concat([x, x ** 2, tf.abs(x)], axis=-1)
    y = tf.one_hot(y, CLASSES)
    return x, y


dataset = tf.data.Dataset.from_tensor_slices((raw, labels))
dataset = dataset.shuffle(10000, seed=0)
dataset = dataset.map(prepare).batch(BATCH)
dataset = dataset.prefetch(2)

w = tf.Variable(tf.zeros((3 * CHANNELS, CLASSES)))
b = tf.Variable(tf.zeros(CLASSES))


@tf.function
def train_step(x, y):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.nn.softmax_cross_entropy_with_logits(labels=y, logits=x @ w + b))
    dw, db = tape.gradient(loss, [w, b])
    w.assign_sub(0.2 * dw)
    b.assign_sub(0.2 * db)
    return loss


for epoch in range(EPOCHS):
    start, total, n = time.time(), 0.0, 0
    for x, y in dataset:
        total += train_step(x, y)
        n += 1
    print(f"epoch {epoch}: loss {float(total) / n:.4f}, {ROWS / (time.time() - start):.0f} rows/s")
