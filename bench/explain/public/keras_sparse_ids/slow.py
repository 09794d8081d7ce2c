"""Click model: user and item embeddings from shop ids, small network on top."""
import os

os.environ["KERAS_BACKEND"] = "jax"

import time

import keras
import numpy as np

EVENTS = 16000
BATCH = 128
EPOCHS = 2
DIM = 24

rng = np.random.default_rng(0)
# ids as they come from the shop's database: large numbers, few of them in this sample
user_pool = rng.choice(150_000, size=3000, replace=False)
item_pool = rng.choice(150_000, size=1500, replace=False)
user_taste = rng.normal(size=(3000, 6))
item_taste = rng.normal(size=(1500, 6))
u = rng.integers(0, 3000, size=EVENTS)
v = rng.integers(0, 1500, size=EVENTS)
clicked = ((user_taste[u] * item_taste[v]).sum(axis=1) > 1.0).astype("float32")
user_id, item_id = user_pool[u], item_pool[v]

users = user_id.astype("int32")
items = item_id.astype("int32")

keras.utils.set_random_seed(0)
user_in = keras.Input((), dtype="int32")
item_in = keras.Input((), dtype="int32")
user_vec = keras.layers.Embedding(int(users.max()) + 1, DIM)(user_in)
item_vec = keras.layers.Embedding(int(items.max()) + 1, DIM)(item_in)
h = keras.layers.Concatenate()([user_vec, item_vec, user_vec * item_vec])
h = keras.layers.Dense(64, activation="relu")(h)
h = keras.layers.Dense(32, activation="relu")(h)
out = keras.layers.Dense(1, activation="sigmoid")(h)
model = keras.Model([user_in, item_in], out)
model.compile(optimizer=keras.optimizers.Adam(1e-3), loss="binary_crossentropy",
              metrics=["accuracy"])


class Progress(keras.callbacks.Callback):
    def on_train_begin(self, logs=None):
        self.began = time.time()

    def on_train_batch_end(self, batch, logs=None):
        if batch % 25 == 0:
            print(f"batch {batch:4d} loss {logs['loss']:.4f} acc {logs['accuracy']:.4f} "
                  f"[{time.time() - self.began:.1f}s]")


model.fit([users, items], clicked, batch_size=BATCH, epochs=EPOCHS, verbose=0,
          callbacks=[Progress()])
print("loss %.4f accuracy %.4f" % tuple(
    model.evaluate([users, items], clicked, batch_size=1000, verbose=0)))
