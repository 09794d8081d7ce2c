"""Text-like classifier that keeps checkpoints in case the job is killed."""
import os

os.environ["KERAS_BACKEND"] = "jax"

import shutil
import tempfile
import time

import keras
import numpy as np

VOCAB, LENGTH, ROWS = 5000, 20, 6400
EPOCHS = 6

rng = np.random.default_rng(0)
tokens = rng.integers(0, VOCAB, size=(ROWS, LENGTH)).astype("int32")
labels = (tokens.mean(axis=1) > VOCAB / 2).astype("float32")

keras.utils.set_random_seed(0)
model = keras.Sequential([
    keras.Input((LENGTH,), dtype="int32"),
    keras.layers.Embedding(VOCAB, 32),
    keras.layers.GlobalAveragePooling1D(),
    keras.layers.Dense(64, activation="relu"),
    keras.layers.Dense(1, activation="sigmoid"),
])
model.compile(optimizer="adam", loss="binary_crossentropy", metrics=["accuracy"])

folder = tempfile.mkdtemp(prefix="ckpt_")
checkpoint = keras.callbacks.ModelCheckpoint(
    os.path.join(folder, "latest.keras"),
    save_freq="epoch",
)

for epoch in range(EPOCHS):
    start = time.time()
    logs = model.fit(
        tokens, labels, batch_size=64, epochs=1, verbose=0, callbacks=[checkpoint]
    ).history
    print(f"epoch {epoch} loss {logs['loss'][0]:.4f} acc {logs['accuracy'][0]:.3f} "
          f"({time.time() - start:.1f}s)")
print("checkpoint size", os.path.getsize(os.path.join(folder, "latest.keras")))
shutil.rmtree(folder)
