"""Keras as a notebook has it: a model, compile, fit."""

import keras
import numpy as np
from keras import layers

x_train = np.random.normal(size=(1000, 100)).astype("float32")
y_train = np.random.randint(0, 10, 1000)

model = keras.Sequential(
    [
        layers.Dense(32, activation="relu"),
        layers.Dense(10),
    ]
)
model.compile(
    optimizer=keras.optimizers.SGD(0.1),
    loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
    metrics=["accuracy"],
)
model.fit(x_train, y_train, batch_size=50, epochs=3)
