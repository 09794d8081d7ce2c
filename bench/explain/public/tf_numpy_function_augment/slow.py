"""Image classifier whose augmentation was first written in numpy."""
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


def augment_numpy(image):
    image = image.copy()
    if np.random.rand() < 0.5:
        image = image[:, ::-1].copy()
    for row in range(SIZE):
        image[row] = np.roll(image[row], np.random.randint(-2, 3), axis=0)
    top, left = np.random.randint(0, SIZE - 8, size=2)
    for row in range(top, top + 8):
        for col in range(left, left + 8):
            image[row, col] = 0.0
    for channel in range(3):
        gain = np.random.uniform(0.8, 1.2)
        for row in range(SIZE):
            image[row, :, channel] = np.minimum(image[row, :, channel] * gain, 1.5)
    return image


def augment(image, label):
    image = tf.numpy_function(augment_numpy, [image], tf.float32)
    image.set_shape((SIZE, SIZE, 3))
    return image, label


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
