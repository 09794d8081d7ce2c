"""Online training of a fault classifier: one chunk of sensor windows per round."""
import os
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "2"
import time

import numpy as np
import tensorflow as tf

tf.random.set_seed(0)
rng = np.random.default_rng(0)
WINDOWS, LENGTH, CHUNK, CLASSES = 8192, 256, 128, 5
ROUNDS = WINDOWS // CHUNK

signals = rng.standard_normal((WINDOWS, LENGTH)).astype(np.float32)
labels = rng.integers(0, CLASSES, WINDOWS)
signals += np.sin(np.arange(LENGTH) * (0.1 + 0.1 * labels[:, None])).astype(np.float32)


def to_features(signal, label):
    signal = (signal - tf.reduce_mean(signal)) / tf.math.reduce_std(signal)
    spectrum = tf.abs(tf.signal.rfft(signal))
    return tf.math.log1p(spectrum), label


dataset = tf.data.Dataset.from_tensor_slices((signals, labels)).map(
    to_features, num_parallel_calls=2)

model = tf.keras.Sequential([
    tf.keras.layers.Dense(128, activation="relu"),
    tf.keras.layers.Dense(64, activation="relu"),
    tf.keras.layers.Dense(CLASSES),
])
model.build((None, LENGTH // 2 + 1))
optimizer = tf.keras.optimizers.Adam(1e-3)
loss_fn = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)


@tf.function
def train_step(x, y):
    with tf.GradientTape() as tape:
        loss = loss_fn(y, model(x, training=True))
    grads = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(grads, model.trainable_variables))
    return loss


start = time.time()
for r in range(ROUNDS):
    chunk = dataset.skip(r * CHUNK).take(CHUNK).batch(CHUNK)
    for x, y in chunk:
        loss = train_step(x, y)
    if (r + 1) % 10 == 0:
        print(f"round {r + 1}/{ROUNDS} loss {float(loss):.4f} "
              f"{(time.time() - start) / (r + 1) * 1e3:.0f} ms/round", flush=True)
print(f"total {time.time() - start:.1f} s")
