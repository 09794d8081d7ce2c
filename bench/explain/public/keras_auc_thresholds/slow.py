"""Multi-label tagging of synthetic documents with a small network, tracking ROC and PR areas."""
import os

os.environ["KERAS_BACKEND"] = "tensorflow"

import time

import keras
import numpy as np

DOCS = 16000
FEATURES, LABELS = 200, 20
BATCH = 128
EPOCHS = 4

rng = np.random.default_rng(0)
x = rng.normal(size=(DOCS, FEATURES)).astype("float32")
mixing = rng.normal(size=(FEATURES, LABELS)).astype("float32") / np.sqrt(FEATURES)
y = (x @ mixing + 0.5 * rng.normal(size=(DOCS, LABELS)) > 1.0).astype("float32")

keras.utils.set_random_seed(0)
model = keras.Sequential([
    keras.Input((FEATURES,)),
    keras.layers.Dense(256, activation="relu"),
    keras.layers.Dropout(0.2),
    keras.layers.Dense(128, activation="relu"),
    keras.layers.Dense(LABELS, activation="sigmoid"),
])
model.compile(
    optimizer=keras.optimizers.Adam(1e-3),
    loss="binary_crossentropy",
    metrics=[
        keras.metrics.BinaryAccuracy(name="acc"),
        keras.metrics.AUC(thresholds=list(np.geomspace(1e-4, 0.999, 1000)), name="auc"),
        keras.metrics.AUC(thresholds=list(np.geomspace(1e-4, 0.999, 1000)), curve="PR",
                          name="pr_auc"),
    ],
)


class Progress(keras.callbacks.Callback):
    def on_train_begin(self, logs=None):
        self.began = time.time()

    def on_train_batch_end(self, batch, logs=None):
        if batch % 50 == 0:
            print(f"batch {batch:4d} loss {logs['loss']:.4f} auc {logs['auc']:.4f} "
                  f"[{time.time() - self.began:.1f}s]")


model.fit(x, y, batch_size=BATCH, epochs=EPOCHS, verbose=0, callbacks=[Progress()])
scores = model.evaluate(x, y, batch_size=1000, verbose=0)
print("train loss %.4f accuracy %.4f auc %.4f pr %.4f" % tuple(scores))
