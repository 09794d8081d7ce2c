"""Small conv net fed by a PyDataset that augments the images."""
import os

os.environ["KERAS_BACKEND"] = "torch"

import time

import keras
import numpy as np

SIZE, BATCH, EPOCHS = 32, 64, 4

rng = np.random.default_rng(0)
images = rng.random(size=(1280, SIZE, SIZE, 3)).astype("float32")
labels = rng.integers(0, 4, size=1280)
for c in range(4):
    images[labels == c, :, c * 8:c * 8 + 8] += 0.3


class AugmentedImages(keras.utils.PyDataset):
    def __init__(self, images, labels, batch_size, **kwargs):
        super().__init__(**kwargs)
        self.images, self.labels, self.batch_size = images, labels, batch_size
        self.rng = np.random.default_rng(1)

    def __len__(self):
        return len(self.images) // self.batch_size

    def __getitem__(self, index):
        lo = index * self.batch_size
        batch = np.zeros((self.batch_size, SIZE, SIZE, 3), dtype="float32")
        gains = self.rng.uniform(0.8, 1.2, size=self.batch_size)
        shifts = self.rng.integers(0, 4, size=self.batch_size)
        for n in range(self.batch_size):
            batch[n] = np.roll(self.images[lo + n], -shifts[n], axis=0) * gains[n]
        return batch, self.labels[lo:lo + self.batch_size]


keras.utils.set_random_seed(0)
model = keras.Sequential([
    keras.Input((SIZE, SIZE, 3)),
    keras.layers.Conv2D(8, 3, strides=2, activation="relu"),
    keras.layers.Conv2D(16, 3, strides=2, activation="relu"),
    keras.layers.GlobalAveragePooling2D(),
    keras.layers.Dense(4, activation="softmax"),
])
model.compile(optimizer="adam", loss="sparse_categorical_crossentropy", metrics=["accuracy"])

data = AugmentedImages(images, labels, BATCH)
for epoch in range(EPOCHS):
    start = time.time()
    logs = model.fit(data, epochs=1, verbose=0).history
    print(f"epoch {epoch} loss {logs['loss'][0]:.3f} acc {logs['accuracy'][0]:.3f} "
          f"{time.time() - start:.1f}s")
