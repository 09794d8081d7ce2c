"""Transfer learning: a frozen MobileNet and a small head for our own photos."""
import os
os.environ.setdefault("KERAS_BACKEND", "tensorflow")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
import time

import keras
import numpy as np
from keras import layers

IMG = 64
N_TRAIN = 1024
N_VAL = 128
N_CLASSES = 8
BATCH = 32
EPOCHS = 16


def make_photos(n, seed):
    """Blobs of a colour and a texture that depend on the class."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, N_CLASSES, n)
    u = np.linspace(0, 1, IMG, dtype=np.float32)
    xx, yy = np.meshgrid(u, u)
    imgs = np.empty((n, IMG, IMG, 3), np.float32)
    for i, c in enumerate(y):
        freq = 4 + 5 * (c % 4)
        wave = np.sin(freq * 6.28 * (xx if c < 4 else yy) + rng.uniform(0, 6.28))
        colour = 0.5 + 0.4 * np.cos(c + np.arange(3) * 2.1)
        imgs[i] = 0.5 + 0.4 * wave[..., None] * colour
    imgs += 0.1 * rng.normal(size=imgs.shape).astype(np.float32)
    return (imgs * 2.0 - 1.0).astype(np.float32), y.astype(np.int32)


def build_base(images):
    # stands for our checkpoint: no downloads on this machine, so random filters
    # with the statistics of the normalization layers set from some images
    base = keras.applications.MobileNet(
        input_shape=(IMG, IMG, 3), alpha=0.5, include_top=False,
        weights=None, pooling="avg")
    for layer in base.layers:
        if isinstance(layer, layers.BatchNormalization):
            layer.momentum = 0.3
    for _ in range(5):
        base(images, training=True)
    base.trainable = False
    return base


def build_head(n_features):
    return keras.Sequential([
        keras.Input((n_features,)),
        layers.BatchNormalization(),
        layers.Dense(128, activation="relu"),
        layers.Dropout(0.2),
        layers.Dense(N_CLASSES, activation="softmax"),
    ], name="head")


class Timer(keras.callbacks.Callback):
    def on_epoch_begin(self, epoch, logs=None):
        self.t0 = time.perf_counter()

    def on_epoch_end(self, epoch, logs=None):
        print(f"epoch {epoch + 1:2d}  loss {logs['loss']:.4f}  "
              f"val_acc {logs['val_accuracy']:.3f}  "
              f"{time.perf_counter() - self.t0:.2f}s")


def main():
    keras.utils.set_random_seed(3)
    x_train, y_train = make_photos(N_TRAIN, 0)
    x_val, y_val = make_photos(N_VAL, 1)
    start = time.perf_counter()

    base = build_base(x_train[:128])
    head = build_head(base.output_shape[-1])
    inputs = keras.Input((IMG, IMG, 3))
    outputs = head(base(inputs, training=False))
    model = keras.Model(inputs, outputs)
    model.compile(optimizer=keras.optimizers.Adam(1e-3),
                  loss="sparse_categorical_crossentropy",
                  metrics=["accuracy"])
    model.fit(x_train, y_train, batch_size=BATCH, epochs=EPOCHS,
              validation_data=(x_val, y_val), verbose=0, callbacks=[Timer()])
    print(f"trained the head in {time.perf_counter() - start:.1f}s")


if __name__ == "__main__":
    main()
