"""Image classifier with flips, row jitter, holes and colour gains."""
import time

import keras
import numpy as np
import tensorflow as tf

N, SIZE, BATCH, EPOCHS = 2500, 32, 50, 12

rng = np.random.default_rng(0)
images = rng.random(size=(N, SIZE, SIZE, 3)).astype("float32")
labels = rng.integers(0, 5, size=N).astype("int32")
for c in range(5):
    images[labels == c, c * 6:c * 6 + 6] += 0.4


def augment(image, label):
    image = tf.image.random_flip_left_right(image)
    shift = tf.random.uniform((SIZE, 1), -2, 3, dtype=tf.int32)
    columns = (tf.range(SIZE)[None, :] - shift) % SIZE
    image = tf.gather(image, columns, axis=1, batch_dims=1)
    corner = tf.random.uniform((2,), 0, SIZE - 8, dtype=tf.int32)
    grid = tf.range(SIZE)
    in_rows = (grid >= corner[0]) & (grid < corner[0] + 8)
    in_cols = (grid >= corner[1]) & (grid < corner[1] + 8)
    hole = in_rows[:, None] & in_cols[None, :]
    image = tf.where(hole[..., None], 0.0, image)
    gain = tf.random.uniform((3,), 0.8, 1.2)
    return tf.minimum(image * gain, 1.5), label


dataset = tf.data.Dataset.from_tensor_slices((images, labels)).shuffle(N, seed=0)
dataset = dataset.map(augment, num_parallel_calls=tf.data.AUTOTUNE)
dataset = dataset.batch(BATCH).prefetch(tf.data.AUTOTUNE)

keras.utils.set_random_seed(0)
model = keras.Sequential([
    keras.Input((SIZE, SIZE, 3)),
    keras.layers.Conv2D(8, 3, strides=4, activation="relu"),
    keras.layers.Flatten(),
    keras.layers.Dense(5, activation="softmax"),
])
model.compile(optimizer="adam", loss="sparse_categorical_crossentropy", metrics=["accuracy"])

for epoch in range(EPOCHS):
    start = time.time()
    logs = model.fit(dataset, epochs=1, verbose=0).history
    print(f"epoch {epoch} loss {logs['loss'][0]:.3f} acc {logs['accuracy'][0]:.3f} "
          f"{time.time() - start:.2f}s")
