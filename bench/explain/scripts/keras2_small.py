"""A small classifier with Keras 2, many steps of little work."""

# mypy: ignore-errors

import numpy as np
import tf_keras as keras
from tf_keras import layers

EPOCHS = 2000
BATCH = 32

rng = np.random.default_rng(0)
x_train = rng.standard_normal((19200, 20)).astype("float32")
y_train = (x_train[:, 0] * x_train[:, 1] > 0).astype("float32")

inputs = keras.Input((20,))
hidden = layers.Dense(64, activation="relu")(inputs)
outputs = layers.Dense(1, activation="sigmoid")(hidden)
model = keras.Model(inputs, outputs)
model.compile(
    optimizer="sgd",
    loss="binary_crossentropy",
    steps_per_execution=50,
)
model.fit(x_train, y_train, batch_size=BATCH, epochs=EPOCHS, verbose=2)
