"""Wasserstein GAN on synthetic sensor profiles, several critic updates per generator update."""
import time

import numpy as np
import tensorflow as tf

PROFILES = 8000
WIDTH = 96
LATENT = 16
BATCH = 64
ROUNDS = 220
CRITIC_STEPS = 3

rng = np.random.default_rng(0)
tf.random.set_seed(0)
grid = np.linspace(0, 1, WIDTH)
centers = rng.uniform(0.2, 0.8, size=(PROFILES, 1))
widths = rng.uniform(0.03, 0.15, size=(PROFILES, 1))
profiles = np.exp(-((grid - centers) / widths) ** 2).astype(np.float32)

dataset = tf.data.Dataset.from_tensor_slices(profiles)
dataset = dataset.shuffle(PROFILES, seed=0).batch(BATCH, drop_remainder=True)


def mlp(sizes):
    pairs = list(zip(sizes[:-1], sizes[1:]))
    return [(tf.Variable(tf.random.normal([a, b], stddev=(2.0 / a) ** 0.5)),
             tf.Variable(tf.zeros([b]))) for a, b in pairs]


def forward(layers, h):
    for w, b in layers[:-1]:
        h = tf.nn.leaky_relu(h @ w + b)
    w, b = layers[-1]
    return h @ w + b


generator = mlp([LATENT, 64, 64, WIDTH])
critic = mlp([WIDTH, 64, 64, 1])
gen_vars = [v for layer in generator for v in layer]
critic_vars = [v for layer in critic for v in layer]


def descend(variables, grads, rate):
    for v, g in zip(variables, grads):
        v.assign_sub(rate * tf.clip_by_norm(g, 1.0))


@tf.function
def critic_step(real):
    noise = tf.random.normal([BATCH, LATENT])
    with tf.GradientTape() as tape:
        gap = (tf.reduce_mean(forward(critic, forward(generator, noise)))
               - tf.reduce_mean(forward(critic, real)))
    descend(critic_vars, tape.gradient(gap, critic_vars), 0.01)
    for v in critic_vars:
        v.assign(tf.clip_by_value(v, -0.2, 0.2))
    return gap


@tf.function
def generator_step():
    noise = tf.random.normal([BATCH, LATENT])
    with tf.GradientTape() as tape:
        loss = -tf.reduce_mean(forward(critic, forward(generator, noise)))
    descend(gen_vars, tape.gradient(loss, gen_vars), 0.01)
    return loss


began = time.time()
for round_ in range(ROUNDS):
    for _ in range(CRITIC_STEPS):
        real = next(iter(dataset))
        gap = critic_step(real)
    loss = generator_step()
    if round_ % 20 == 0:
        print(f"round {round_:4d} critic gap {float(gap):+.4f} generator {float(loss):+.4f} "
              f"[{time.time() - began:.1f}s]")
