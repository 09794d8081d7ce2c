"""Land-cover map from a multispectral image: every pixel is classified by a small network."""
import os

os.environ["KERAS_BACKEND"] = "torch"

import time

import keras
import numpy as np
import torch

ROWS, COLS, BANDS, CLASSES = 400, 512, 6, 5
STRIP = 4

torch.set_num_threads(1)  # the other core serves the map
rng = np.random.default_rng(0)
signatures = rng.uniform(0.1, 0.9, size=(CLASSES, BANDS)).astype("float32")


def make_scene():
    """Patches of the five classes with noise and a brightness gradient."""
    patches = rng.integers(0, CLASSES, size=(ROWS // 20, COLS // 16))
    labels = np.kron(patches, np.ones((20, 16), dtype=int))
    light = np.linspace(0.8, 1.2, COLS, dtype="float32")[None, :, None]
    image = signatures[labels] * light + 0.1 * rng.normal(size=(ROWS, COLS, BANDS))
    return image.astype("float32"), labels


image, labels = make_scene()

keras.utils.set_random_seed(0)
model = keras.Sequential([
    keras.Input((BANDS,)),
    keras.layers.Dense(32, activation="relu"),
    keras.layers.BatchNormalization(),
    keras.layers.Dense(32, activation="relu"),
    keras.layers.Dense(CLASSES, activation="softmax"),
])
model.compile(optimizer=keras.optimizers.Adam(1e-2),
              loss="sparse_categorical_crossentropy", metrics=["accuracy"])
picked = rng.integers(0, ROWS * COLS, size=10000)
model.fit(image.reshape(-1, BANDS)[picked], labels.reshape(-1)[picked],
          batch_size=256, epochs=3, verbose=2)

began = time.time()
cover = np.zeros((ROWS, COLS), dtype=int)
for top in range(0, ROWS, STRIP):
    pixels = image[top:top + STRIP].reshape(-1, BANDS)
    probs = model.predict(pixels, verbose=0)
    cover[top:top + STRIP] = probs.argmax(axis=1).reshape(STRIP, COLS)
    if top % (10 * STRIP) == 0:
        right = (cover[:top + STRIP] == labels[:top + STRIP]).mean()
        print(f"row {top:4d} accuracy so far {right:.4f} [{time.time() - began:.1f}s]")
share = np.bincount(cover.reshape(-1), minlength=CLASSES) / cover.size
print("class shares", np.round(share, 3), "accuracy", round(float((cover == labels).mean()), 4))
