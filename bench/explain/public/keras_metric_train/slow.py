"""Metric learning (Keras 3 on jax): embeddings of products, with the retrieval
quality (mean average precision inside the batch) followed during training."""
import os
os.environ["KERAS_BACKEND"] = "jax"
import time

import keras
import numpy as np
from keras import layers, ops

N_TRAIN = 8192
N_VAL = 1024
N_CLASSES = 24
IN_DIM = 64
DIM = 32
BATCH = 512
EPOCHS = 20


def make_products(n, seed):
    rng = np.random.default_rng(seed)
    centers = np.random.default_rng(99).normal(size=(N_CLASSES, IN_DIM))
    y = rng.integers(0, N_CLASSES, n)
    x = centers[y] + 1.6 * rng.normal(size=(n, IN_DIM))
    return x.astype(np.float32), y.astype(np.int32)


def pairwise_distances(a):
    sq = ops.sum(ops.square(a), axis=1)
    return sq[:, None] + sq[None, :] - 2.0 * ops.matmul(a, ops.transpose(a))


def contrastive_loss(y_true, emb):
    y = ops.reshape(y_true, (-1,))
    same = ops.cast(y[:, None] == y[None, :], "float32")
    d2 = ops.maximum(pairwise_distances(emb), 1e-6)
    pull = same * d2
    push = (1.0 - same) * ops.square(ops.relu(1.0 - ops.sqrt(d2)))
    return ops.mean(pull + push, axis=1)


class BatchMAP(keras.metrics.Metric):
    """Each item is a query; the rest of the batch, ranked, is the gallery."""

    def __init__(self, name="map", **kwargs):
        super().__init__(name=name, **kwargs)
        self.total = self.add_weight(name="total", initializer="zeros")
        self.count = self.add_weight(name="count", initializer="zeros")

    def update_state(self, y_true, emb, sample_weight=None):
        y = ops.reshape(y_true, (-1,))
        n = ops.shape(emb)[0]
        d2 = pairwise_distances(emb) + 1e9 * ops.eye(n)
        order = ops.argsort(d2, axis=1)
        rel = ops.cast(ops.take(y, order) == y[:, None], "float32")
        rel = rel[:, :-1]
        hits = ops.cumsum(rel, axis=1)
        rank = ops.cast(ops.arange(1, n), "float32")
        ap = ops.sum(rel * hits / rank, axis=1) / ops.maximum(hits[:, -1], 1.0)
        self.total.assign_add(ops.sum(ap))
        self.count.assign_add(ops.cast(n, "float32"))

    def result(self):
        return self.total / ops.maximum(self.count, 1.0)


def build_model():
    model = keras.Sequential([
        keras.Input((IN_DIM,)),
        layers.Dense(128, activation="relu"),
        layers.Dense(128, activation="relu"),
        layers.Dense(DIM),
        layers.UnitNormalization(),
    ])
    model.compile(optimizer=keras.optimizers.Adam(1e-3), loss=contrastive_loss,
                  metrics=[BatchMAP()])
    return model


class Report(keras.callbacks.Callback):
    def on_epoch_end(self, epoch, logs=None):
        print(f"epoch {epoch + 1:2d}  loss {logs['loss']:.4f}  "
              f"val_loss {logs['val_loss']:.4f}  val_map {logs['val_map']:.4f}")


def main():
    keras.utils.set_random_seed(0)
    x, y = make_products(N_TRAIN, 0)
    x_val, y_val = make_products(N_VAL, 1)
    model = build_model()
    start = time.perf_counter()
    model.fit(x, y, batch_size=BATCH, epochs=EPOCHS, verbose=0,
              validation_data=(x_val, y_val), callbacks=[Report()])
    spent = time.perf_counter() - start
    print(f"{EPOCHS * (N_TRAIN // BATCH) / spent:.1f} steps/s, {spent:.1f}s")


if __name__ == "__main__":
    main()
