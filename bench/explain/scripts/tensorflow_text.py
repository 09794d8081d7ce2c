"""Predicts a rating from words in TensorFlow; texts are padded to one length."""

# mypy: ignore-errors

import numpy as np
import tensorflow as tf

EPOCHS, BATCH, LONGEST, WIDTH = 1000, 32, 48, 64

rng = np.random.default_rng(0)
texts = [rng.integers(1, 1000, rng.integers(8, LONGEST)) for _ in range(1600)]
ratings = rng.random(1600).astype(np.float32)

embedding = tf.Variable(rng.standard_normal((1000, WIDTH)).astype(np.float32))
mix = tf.Variable(rng.standard_normal((WIDTH, WIDTH)).astype(np.float32) / 8)
out = tf.Variable(rng.standard_normal((WIDTH, 1)).astype(np.float32) / 8)
variables = [embedding, mix, out]


def padded(rows):
    length = LONGEST
    batch = np.zeros((len(rows), length), np.int64)
    for i, row in enumerate(rows):
        batch[i, : len(row)] = row
    return tf.constant(batch)


@tf.function
def train(tokens, wanted):
    with tf.GradientTape() as tape:
        h = tf.nn.tanh(tf.gather(embedding, tokens) @ mix)
        rating = tf.squeeze(tf.reduce_mean(h, axis=1) @ out, -1)
        loss = tf.reduce_mean((rating - wanted) ** 2)
    for v, g in zip(variables, tape.gradient(loss, variables), strict=True):
        v.assign_sub(0.01 * tf.convert_to_tensor(g))
    return loss


for epoch in range(EPOCHS):
    order = rng.permutation(1600)
    for i in range(0, 1600, BATCH):
        chosen = order[i : i + BATCH]
        loss = train(padded([texts[k] for k in chosen]), ratings[chosen])
    print(f"epoch {epoch}: loss {loss.numpy():.4f}", flush=True)
