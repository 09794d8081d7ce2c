"""Classifies small pictures, with Keras."""

# mypy: ignore-errors

import os

os.environ["KERAS_BACKEND"] = "tensorflow"

import keras  # noqa: E402
import numpy as np  # noqa: E402
from keras import layers  # noqa: E402

BATCH = 32
EPOCHS = 1000

inputs = keras.Input((28, 28, 1))
h = layers.Conv2D(16, 3, activation="relu", padding="same")(inputs)
h = layers.MaxPooling2D()(h)
h = layers.Conv2D(32, 3, activation="relu", padding="same")(h)
h = layers.MaxPooling2D()(h)
h = layers.Flatten()(h)
outputs = layers.Dense(10, activation="softmax")(h)
model = keras.Model(inputs, outputs)

rng = np.random.default_rng(3)
images = rng.random((1600, 28, 28, 1), dtype=np.float32)
labels = rng.integers(0, 10, 1600)

model.compile(
    optimizer=keras.optimizers.SGD(0.05, momentum=0.9),
    loss="sparse_categorical_crossentropy",
    jit_compile=False,
)
model.fit(images, labels, batch_size=BATCH, epochs=EPOCHS, verbose=2)
