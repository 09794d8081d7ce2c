"""Leaky recurrent net that has to remember the sign of its first inputs."""
import time

import numpy as np
import tensorflow as tf

SEQ_LEN, INPUTS, UNITS, BATCH = 250, 3, 24, 16
STEPS = 100

rng = np.random.default_rng(4)
gen = tf.random.Generator.from_seed(4)
w_in = tf.Variable(gen.normal((INPUTS, UNITS)) * 0.3)
w_rec = tf.Variable(gen.normal((UNITS, UNITS)) * 0.15)
w_gate = tf.Variable(gen.normal((UNITS + INPUTS, UNITS)) * 0.2)
w_out = tf.Variable(gen.normal((UNITS, 1)) * 0.3)
params = [w_in, w_rec, w_gate, w_out]


def make_batch():
    x = rng.normal(size=(BATCH, SEQ_LEN, INPUTS)).astype("float32")
    y = (x[:, :10].mean(axis=(1, 2)) > 0).astype("float32")[:, None]
    return tf.constant(x), tf.constant(y)


@tf.function
def train_step(x, y):
    with tf.GradientTape() as tape:
        h = tf.zeros((BATCH, UNITS))
        for t in range(SEQ_LEN):
            x_t = x[:, t]
            gate = tf.sigmoid(tf.concat([h, x_t], axis=1) @ w_gate)
            h = gate * h + (1.0 - gate) * tf.tanh(x_t @ w_in + h @ w_rec)
        logits = h @ w_out
        loss = tf.reduce_mean(
            tf.nn.sigmoid_cross_entropy_with_logits(labels=y, logits=logits))
    grads = tape.gradient(loss, params)
    grads, _ = tf.clip_by_global_norm(grads, 1.0)
    for p, g in zip(params, grads):
        p.assign_sub(0.05 * g)
    return loss


start = time.time()
for step in range(STEPS):
    x, y = make_batch()
    loss = train_step(x, y)
    if step % 10 == 0:
        print(f"step {step} loss {loss.numpy():.4f} total {time.time() - start:.1f}s")
