import os

os.environ["KERAS_BACKEND"] = "tensorflow"
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import tempfile
import time

import h5py
import keras
import numpy as np
from keras import layers

keras.utils.set_random_seed(17)

ROWS = 20000
COLS = 128
BATCH = 128
EPOCHS = 3


def build_file(path):
    rng = np.random.default_rng(17)
    x = rng.normal(size=(ROWS, COLS)).astype("float32")
    w = rng.normal(size=(COLS, 8)).astype("float32") / 8.0
    y = np.sin(x @ w).sum(axis=1) + 0.05 * rng.normal(size=ROWS)
    with h5py.File(path, "w") as f:
        f.create_dataset("features", data=x, chunks=(64, COLS), compression="gzip", compression_opts=1)
        f.create_dataset("target", data=y.astype("float32")[:, None], chunks=(64, 1))


class TableDataset(keras.utils.PyDataset):
    def __init__(self, path, batch_size, seed=0, **kwargs):
        super().__init__(**kwargs)
        self.file = h5py.File(path, "r")
        self.features = self.file["features"]
        self.target = self.file["target"]
        self.batch_size = batch_size
        self.rng = np.random.default_rng(seed)
        self.order = self.rng.permutation(len(self.target))

    def __len__(self):
        return len(self.target) // self.batch_size

    def __getitem__(self, i):
        rows = np.sort(self.order[i * self.batch_size:(i + 1) * self.batch_size])
        return self.features[rows], self.target[rows]

    def on_epoch_end(self):
        self.order = self.rng.permutation(len(self.target))


def build_model():
    model = keras.Sequential([
        layers.Input((COLS,)),
        layers.Dense(256, activation="relu"),
        layers.Dense(256, activation="relu"),
        layers.Dense(1),
    ])
    model.compile(optimizer=keras.optimizers.Adam(1e-3), loss="mse")
    return model


def main():
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "table.h5")
        build_file(path)
        data = TableDataset(path, BATCH, seed=3)
        model = build_model()
        start = time.time()
        history = model.fit(data, epochs=EPOCHS, shuffle=False, verbose=2)
        print("losses", [round(v, 4) for v in history.history["loss"]])
        print(f"fit took {time.time() - start:.1f}s for {EPOCHS * len(data)} steps")


if __name__ == "__main__":
    main()
