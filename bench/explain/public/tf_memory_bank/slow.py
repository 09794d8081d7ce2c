"""Instance discrimination (unsupervised features) with a memory bank of the
whole data set, NCE against negatives drawn from the bank."""
import os
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
import time

import numpy as np
import tensorflow as tf

N_ITEMS = 120_000
IN_DIM = 48
DIM = 128
BATCH = 64
NEGATIVES = 512
TEMPERATURE = 0.1
MOMENTUM = 0.5
STEPS = 640


class MemoryBank:
    """The latest (averaged) unit feature of every item of the data set."""

    def __init__(self, n, dim, seed=0):
        g = tf.random.Generator.from_seed(seed)
        self.features = tf.math.l2_normalize(g.normal((n, dim)), axis=1)
        self.n = n

    def lookup(self, idx):
        return tf.gather(self.features, idx)

    def negatives(self, k):
        idx = tf.random.uniform((k,), 0, self.n, tf.int32)
        return tf.gather(self.features, idx)

    def update(self, idx, feats):
        old = self.lookup(idx)
        new = tf.math.l2_normalize(MOMENTUM * old + (1 - MOMENTUM) * feats, axis=1)
        self.features = tf.tensor_scatter_nd_update(
            self.features, idx[:, None], new)


def make_encoder():
    return tf.keras.Sequential([
        tf.keras.Input((IN_DIM,)),
        tf.keras.layers.Dense(256, activation="relu"),
        tf.keras.layers.Dense(256, activation="relu"),
        tf.keras.layers.Dense(DIM),
        tf.keras.layers.UnitNormalization(),
    ])


def make_train_step(encoder, opt):
    @tf.function
    def train_step(x, own, neg):
        with tf.GradientTape() as tape:
            f = encoder(x, training=True)
            pos = tf.reduce_sum(f * own, 1, keepdims=True)
            logits = tf.concat([pos, tf.matmul(f, neg, transpose_b=True)], 1)
            labels = tf.zeros((tf.shape(x)[0],), tf.int32)
            loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(
                labels, logits / TEMPERATURE))
        grads = tape.gradient(loss, encoder.trainable_variables)
        opt.apply_gradients(zip(grads, encoder.trainable_variables))
        return loss, f
    return train_step


def make_items(seed=0):
    rng = np.random.default_rng(seed)
    centers = rng.normal(size=(50, IN_DIM))
    x = centers[rng.integers(0, 50, N_ITEMS)] + 0.3 * rng.normal(size=(N_ITEMS, IN_DIM))
    return x.astype(np.float32)


def main():
    tf.keras.utils.set_random_seed(0)
    items = make_items()
    rng = np.random.default_rng(1)
    hot = rng.choice(N_ITEMS, 2000, replace=False)   # items seen in this run
    bank = MemoryBank(N_ITEMS, DIM)
    encoder = make_encoder()
    opt = tf.keras.optimizers.Adam(1e-3)
    opt.build(encoder.trainable_variables)
    train_step = make_train_step(encoder, opt)
    history = []
    start = time.perf_counter()
    for step in range(1, STEPS + 1):
        idx = rng.choice(hot, BATCH, replace=False).astype(np.int32)
        x = tf.constant(items[idx])
        idx = tf.constant(idx)
        loss, feats = train_step(x, bank.lookup(idx), bank.negatives(NEGATIVES))
        bank.update(idx, feats)
        history.append(loss)
        if step % 80 == 0:
            print(f"step {step:4d}  nce loss "
                  f"{np.mean([float(l) for l in history[-80:]]):.4f}")
    print(f"time {time.perf_counter() - start:.1f}s")


if __name__ == "__main__":
    main()
