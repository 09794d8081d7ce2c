"""Keyword spotting on synthetic audio features: a small separable 1-D convnet."""
import time

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import lax

BATCH = 24
LENGTH = 160
CHANNELS = 40
KERNEL = 9
N_BLOCKS = 3
N_CLASSES = 6
N_STEPS = 330


class Features:
    """Noisy chirps; the class is the rate of the chirp."""

    def __init__(self, n=2048, seed=0):
        rng = np.random.default_rng(seed)
        self.y = rng.integers(0, N_CLASSES, n).astype(np.int32)
        t = np.linspace(0, 1, LENGTH, dtype=np.float32)[None, :, None]
        f = np.linspace(1, 4, CHANNELS, dtype=np.float32)[None, None, :]
        rate = (self.y[:, None, None] + 1) * 3.0
        phase = rng.uniform(0, 6.28, (n, 1, 1)).astype(np.float32)
        x = np.sin(rate * t * f + phase)
        self.x = (x + 0.5 * rng.normal(size=x.shape)).astype(np.float32)
        self.rng = rng

    def batch(self):
        i = self.rng.integers(0, len(self.y), BATCH)
        return self.x[i], self.y[i]


def init_params(key):
    blocks = []
    for _ in range(N_BLOCKS):
        key, k1, k2 = jax.random.split(key, 3)
        blocks.append({
            "dw": jax.random.normal(k1, (KERNEL, 1, CHANNELS)) / np.sqrt(KERNEL),
            "pw": jax.random.normal(k2, (CHANNELS, CHANNELS)) / np.sqrt(CHANNELS),
            "b": jnp.zeros(CHANNELS),
        })
    key, k = jax.random.split(key)
    head = {"w": jax.random.normal(k, (CHANNELS, N_CLASSES)) * 0.1,
            "b": jnp.zeros(N_CLASSES)}
    return {"blocks": blocks, "head": head}


def depthwise(x, w):
    """One filter a channel, same padding; x is (N, T, C), w is (K, 1, C)."""
    return lax.conv_general_dilated(
        x, w, window_strides=(1,), padding="SAME",
        dimension_numbers=("NWC", "WIO", "NWC"),
        feature_group_count=x.shape[-1])


def forward(params, x):
    for blk in params["blocks"]:
        h = depthwise(x, blk["dw"])
        h = jax.nn.relu(h @ blk["pw"] + blk["b"])
        x = x + h
    x = x.mean(axis=1)
    return x @ params["head"]["w"] + params["head"]["b"]


def loss_fn(params, x, y):
    logits = forward(params, x)
    loss = optax.softmax_cross_entropy_with_integer_labels(logits, y).mean()
    return loss, (logits.argmax(-1) == y).mean()


optimizer = optax.adamw(2e-3)


@jax.jit
def train_step(params, opt_state, x, y):
    (loss, acc), grads = jax.value_and_grad(loss_fn, has_aux=True)(params, x, y)
    updates, opt_state = optimizer.update(grads, opt_state, params)
    return optax.apply_updates(params, updates), opt_state, loss, acc


def main():
    data = Features()
    params = init_params(jax.random.key(0))
    opt_state = optimizer.init(params)
    start = time.perf_counter()
    for step in range(1, N_STEPS + 1):
        x, y = data.batch()
        params, opt_state, loss, acc = train_step(params, opt_state, x, y)
        if step % 30 == 0:
            print(f"step {step:4d}  loss {float(loss):.4f}  acc {float(acc):.3f}")
    print(f"done in {time.perf_counter() - start:.1f}s")


if __name__ == "__main__":
    main()
