"""Classifier with label smoothing; the loss settings live in a small config object."""
import time
from dataclasses import dataclass
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

STEPS = 40
BATCH = 64
CLASSES = 10


@dataclass(frozen=True)
class LossConfig:
    smoothing: float
    weight_decay: float
    use_focal: bool


rng = np.random.default_rng(5)
xs = rng.normal(size=(4096, 100)).astype(np.float32)
ys = (np.abs(xs[:, :CLASSES]).argmax(axis=1)).astype(np.int32)


def init(key):
    k1, k2, k3 = jax.random.split(key, 3)
    return [
        (jax.random.normal(k1, (100, 200)) * 0.1, jnp.zeros(200)),
        (jax.random.normal(k2, (200, 200)) * 0.07, jnp.zeros(200)),
        (jax.random.normal(k3, (200, CLASSES)) * 0.07, jnp.zeros(CLASSES)),
    ]


def loss_fn(params, x, y, cfg):
    for w, b in params[:-1]:
        x = jax.nn.relu(x @ w + b)
    w, b = params[-1]
    logp = jax.nn.log_softmax(x @ w + b)
    target = jax.nn.one_hot(y, CLASSES) * (1 - cfg.smoothing) + cfg.smoothing / CLASSES
    per_class = -target * logp
    if cfg.use_focal:
        per_class = per_class * (1 - jnp.exp(logp)) ** 2
    l2 = sum(jnp.sum(w ** 2) for w, _ in params)
    return per_class.sum(axis=1).mean() + cfg.weight_decay * l2


@partial(jax.jit, static_argnames=("cfg",))
def train_step(params, x, y, cfg):
    loss, grads = jax.value_and_grad(loss_fn)(params, x, y, cfg)
    new = jax.tree_util.tree_map(lambda p, g: p - 0.1 * g, params, grads)
    return new, loss


params = init(jax.random.PRNGKey(0))
start = time.time()
for step in range(STEPS):
    pick = rng.integers(0, len(xs), size=BATCH)
    cfg = LossConfig(smoothing=0.1, weight_decay=1e-4, use_focal=step >= STEPS // 2)
    params, loss = train_step(params, xs[pick], ys[pick], cfg=cfg)
    if step % 5 == 0:
        print(f"step {step:3d} loss {float(loss):.4f} after {time.time() - start:.1f}s")
