"""Variational autoencoder on small vectors, one call of train_epoch per epoch."""
import time

import keras
import numpy as np
import tensorflow as tf

DIM, LATENT = 40, 4
BATCH = 64
EPOCHS = 26

rng = np.random.default_rng(2)
mix = rng.normal(size=(LATENT, DIM)).astype("float32")
samples = np.tanh(rng.normal(size=(640, LATENT)).astype("float32") @ mix)
batches = tf.data.Dataset.from_tensor_slices(samples).shuffle(640, seed=1).batch(BATCH)

keras.utils.set_random_seed(2)
encoder = keras.Sequential([
    keras.Input((DIM,)),
    keras.layers.Dense(64, activation="relu"),
    keras.layers.Dense(32, activation="relu"),
    keras.layers.Dense(2 * LATENT),
])
decoder = keras.Sequential([
    keras.Input((LATENT,)),
    keras.layers.Dense(32, activation="relu"),
    keras.layers.Dense(64, activation="relu"),
    keras.layers.Dense(DIM),
])
optimizer = keras.optimizers.Adam(1e-3)
variables = encoder.trainable_variables + decoder.trainable_variables
optimizer.build(variables)


def elbo_loss(x):
    mean, logvar = tf.split(encoder(x, training=True), 2, axis=1)
    z = mean + tf.exp(0.5 * logvar) * tf.random.normal(tf.shape(mean))
    recon = tf.reduce_sum((decoder(z, training=True) - x) ** 2, axis=1)
    kl = -0.5 * tf.reduce_sum(1 + logvar - mean ** 2 - tf.exp(logvar), axis=1)
    return tf.reduce_mean(recon + kl)


def train_epoch():
    @tf.function
    def step(x):
        with tf.GradientTape() as tape:
            loss = elbo_loss(x)
        grads = tape.gradient(loss, variables)
        optimizer.apply_gradients(zip(grads, variables))
        return loss

    losses = [step(x) for x in batches]
    return float(tf.reduce_mean(losses))


for epoch in range(EPOCHS):
    start = time.time()
    loss = train_epoch()
    if epoch % 5 == 0:
        print(f"epoch {epoch} loss {loss:.3f} ({time.time() - start:.2f}s)")
