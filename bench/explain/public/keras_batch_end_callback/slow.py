"""Image classifier that logs validation accuracy with its own callback."""
import os

os.environ["KERAS_BACKEND"] = "torch"

import time

import keras
import numpy as np

rng = np.random.default_rng(0)
x = rng.random(size=(2400, 14, 14, 1)).astype("float32")
y = rng.integers(0, 7, size=2400)
for c in range(7):
    x[y == c, 2 * c:2 * c + 2] += 0.3
x_train, y_train, x_val, y_val = x[:1600], y[:1600], x[1600:], y[1600:]


class ValidationAccuracy(keras.callbacks.Callback):
    def __init__(self, x_val, y_val):
        super().__init__()
        self.x_val, self.y_val = x_val, y_val
        self.scores = []

    def on_train_batch_end(self, batch, logs=None):
        predicted = self.model.predict(self.x_val, batch_size=100, verbose=0).argmax(axis=1)
        self.scores.append(float((predicted == self.y_val).mean()))


keras.utils.set_random_seed(0)
model = keras.Sequential([
    keras.Input((14, 14, 1)),
    keras.layers.Flatten(),
    keras.layers.Dense(64, activation="relu"),
    keras.layers.Dense(32, activation="relu"),
    keras.layers.Dense(7, activation="softmax"),
])
model.compile(optimizer="adam", loss="sparse_categorical_crossentropy")

watch = ValidationAccuracy(x_val, y_val)
for epoch in range(4):
    start = time.time()
    logs = model.fit(
        x_train, y_train, batch_size=32, epochs=1, verbose=0, callbacks=[watch]
    ).history
    print(f"epoch {epoch} loss {logs['loss'][0]:.4f} val acc {watch.scores[-1]:.3f} "
          f"{time.time() - start:.1f}s")
