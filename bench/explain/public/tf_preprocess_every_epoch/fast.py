"""Keyword spotting on synthetic clips with log-mel features."""
import time

import keras
import numpy as np
import tensorflow as tf

CLIPS, RATE = 240, 16000
BATCH = 24
EPOCHS = 50

rng = np.random.default_rng(0)
labels = rng.integers(0, 4, size=CLIPS).astype("int32")
t = np.arange(RATE) / RATE
audio = np.stack([np.sin(2 * np.pi * (300 + 400 * c) * t) for c in labels])
audio = (audio + rng.normal(size=audio.shape)).astype("float32")

mel_matrix = tf.signal.linear_to_mel_weight_matrix(40, 513, RATE, 60.0, 7600.0)


def log_mel(clip, label):
    spectrum = tf.abs(tf.signal.stft(clip, frame_length=1024, frame_step=128))
    mel = tf.tensordot(spectrum ** 2, mel_matrix, 1)
    mel = tf.math.log(mel + 1e-6)
    return (mel - tf.reduce_mean(mel)) / tf.math.reduce_std(mel), label


dataset = tf.data.Dataset.from_tensor_slices((audio, labels))
dataset = dataset.map(log_mel, num_parallel_calls=tf.data.AUTOTUNE)
dataset = dataset.cache()
dataset = dataset.shuffle(CLIPS, seed=0).batch(BATCH).prefetch(tf.data.AUTOTUNE)

keras.utils.set_random_seed(0)
model = keras.Sequential([
    keras.Input((118, 40)),
    keras.layers.AveragePooling1D(4),
    keras.layers.Flatten(),
    keras.layers.Dense(16, activation="relu"),
    keras.layers.Dense(4, activation="softmax"),
])
model.compile(optimizer="adam", loss="sparse_categorical_crossentropy", metrics=["accuracy"])

start = time.time()
for epoch in range(EPOCHS):
    logs = model.fit(dataset, epochs=1, verbose=0).history
    if epoch % 5 == 0:
        print(f"epoch {epoch} loss {logs['loss'][0]:.4f} acc {logs['accuracy'][0]:.3f} "
              f"at {time.time() - start:.1f}s")
