"""MLP on 28x28 inputs with a custom training loop."""
import time

import keras
import numpy as np
import tensorflow as tf

STEPS = 700
BATCH = 64

rng = np.random.default_rng(0)
x_train = rng.random(size=(10000, 784)).astype("float32")
centers = rng.random(size=(10, 784)).astype("float32")
y_train = rng.integers(0, 10, size=10000)
x_train = 0.7 * x_train + 0.3 * centers[y_train]

keras.utils.set_random_seed(0)
model = keras.Sequential([
    keras.Input((784,)),
    keras.layers.Dense(64, activation="relu"),
    keras.layers.Dense(64, activation="relu"),
    keras.layers.BatchNormalization(),
    keras.layers.Dense(64, activation="relu"),
    keras.layers.Dense(10),
])
optimizer = keras.optimizers.RMSprop(1e-3)
loss_fn = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
train_acc = keras.metrics.SparseCategoricalAccuracy()

dataset = tf.data.Dataset.from_tensor_slices((x_train, y_train))
dataset = dataset.shuffle(10000, seed=0).repeat().batch(BATCH).prefetch(2)


@tf.function
def train_step(x, y):
    with tf.GradientTape() as tape:
        logits = model(x, training=True)
        loss = loss_fn(y, logits)
    grads = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(grads, model.trainable_variables))
    train_acc.update_state(y, logits)
    return loss


start = time.time()
for step, (x, y) in enumerate(dataset.take(STEPS)):
    loss = train_step(x, y)
    if step % 100 == 0:
        print(f"step {step:4d} loss {float(loss):.4f} acc {float(train_acc.result()):.3f} "
              f"{time.time() - start:.1f}s")
        train_acc.reset_state()
