"""Classifies pictures that tf.data brings, with layers of Keras and a loop of its own."""

# mypy: ignore-errors

import argparse

import keras
import numpy as np
import tensorflow as tf


def prepare(image, label):
    image = tf.image.resize(tf.cast(image, tf.float32), (32, 32))
    image = tf.image.per_image_standardization(image)
    image = tf.image.adjust_contrast(image, 1.2)
    return image, label


def pipeline(images, labels, batch):
    data = tf.data.Dataset.from_tensor_slices((images, labels))
    data = data.map(prepare, num_parallel_calls=tf.data.AUTOTUNE).cache()
    data = data.shuffle(512).batch(batch, drop_remainder=True)
    return data.prefetch(tf.data.AUTOTUNE)


def build():
    return keras.Sequential(
        [
            keras.layers.Input((32, 32, 1)),
            keras.layers.Conv2D(8, 3, strides=2, activation="relu"),
            keras.layers.Conv2D(16, 3, strides=2, activation="relu"),
            keras.layers.Flatten(),
            keras.layers.Dense(10),
        ]
    )


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=1000)
    parser.add_argument("--batch", type=int, default=32)
    args = parser.parse_args()

    rng = np.random.default_rng(0)
    images = rng.integers(0, 256, (1600, 64, 64, 1), dtype=np.uint8)
    labels = rng.integers(0, 10, 1600)
    data = pipeline(images, labels, args.batch)
    model = build()
    optimizer = keras.optimizers.Adam(1e-3)
    optimizer.build(model.trainable_variables)
    criterion = keras.losses.SparseCategoricalCrossentropy(from_logits=True)

    @tf.function
    def train_step(x, y):
        with tf.GradientTape() as tape:
            loss = criterion(y, model(x, training=True))
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(
            zip(gradients, model.trainable_variables, strict=True)
        )
        return loss

    for epoch in range(args.epochs):
        for x, y in data:
            loss = train_step(x, y)
        print(f"epoch {epoch}: loss {loss.numpy():.4f}", flush=True)


if __name__ == "__main__":
    main()
