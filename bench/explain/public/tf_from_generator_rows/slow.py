"""Click prediction on a table of numeric features."""
import time

import keras
import numpy as np
import tensorflow as tf

ROWS, COLS = 25000, 30
BATCH = 256
EPOCHS = 4

rng = np.random.default_rng(0)
features = rng.normal(size=(ROWS, COLS)).astype("float32")
weights = rng.normal(size=COLS).astype("float32")
clicks = (features @ weights + rng.normal(size=ROWS) > 0).astype("float32")
hours = rng.integers(0, 24, size=ROWS).astype("int32")


def record_generator():
    for i in range(ROWS):
        yield {"numeric": features[i], "hour": hours[i]}, clicks[i]


dataset = tf.data.Dataset.from_generator(
    record_generator,
    output_signature=(
        {
            "numeric": tf.TensorSpec((COLS,), tf.float32),
            "hour": tf.TensorSpec((), tf.int32),
        },
        tf.TensorSpec((), tf.float32),
    ),
)
dataset = dataset.batch(BATCH).prefetch(tf.data.AUTOTUNE)

keras.utils.set_random_seed(0)
numeric = keras.Input((COLS,), name="numeric")
hour = keras.Input((), dtype="int32", name="hour")
h = keras.layers.Concatenate()([numeric, keras.layers.Embedding(24, 4)(hour)])
h = keras.layers.Dense(32, activation="relu")(h)
out = keras.layers.Dense(1, activation="sigmoid")(h)
model = keras.Model({"numeric": numeric, "hour": hour}, out)
model.compile(optimizer="adam", loss="binary_crossentropy", metrics=["accuracy"])

for epoch in range(EPOCHS):
    start = time.time()
    history = model.fit(dataset, epochs=1, verbose=0)
    print(f"epoch {epoch}: loss {history.history['loss'][0]:.4f} "
          f"acc {history.history['accuracy'][0]:.3f} in {time.time() - start:.1f}s")
