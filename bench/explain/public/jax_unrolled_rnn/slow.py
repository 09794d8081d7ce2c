"""GRU that reads a long noisy signal and says which of four waves it was."""
import time

import jax
import jax.numpy as jnp
import numpy as np
import optax

SEQ_LEN, FEATURES, HIDDEN, BATCH = 32, 4, 32, 32
STEPS = 150

rng = np.random.default_rng(7)


def make_batch():
    t = np.linspace(0, 2 * np.pi, SEQ_LEN)
    labels = rng.integers(0, 4, size=BATCH)
    wave = np.sin(t[None, :, None] * (1 + labels[:, None, None]) + np.arange(FEATURES))
    return (wave + 0.3 * rng.normal(size=wave.shape)).astype(np.float32), labels


def init(key):
    ks = jax.random.split(key, 5)
    return {
        "wz": jax.random.normal(ks[0], (FEATURES + HIDDEN, HIDDEN)) * 0.2,
        "wr": jax.random.normal(ks[1], (FEATURES + HIDDEN, HIDDEN)) * 0.2,
        "wh": jax.random.normal(ks[2], (FEATURES + HIDDEN, HIDDEN)) * 0.2,
        "out": jax.random.normal(ks[3], (HIDDEN, 4)) * 0.2,
    }


def gru_cell(params, h, x_t):
    hx = jnp.concatenate([h, x_t], axis=1)
    z = jax.nn.sigmoid(hx @ params["wz"])
    r = jax.nn.sigmoid(hx @ params["wr"])
    cand = jnp.tanh(jnp.concatenate([r * h, x_t], axis=1) @ params["wh"])
    return (1 - z) * h + z * cand


def forward(params, x):
    h = jnp.zeros((x.shape[0], HIDDEN))
    for t in range(x.shape[1]):
        h = gru_cell(params, h, x[:, t])
    return h @ params["out"]


def loss_fn(params, x, y):
    return optax.softmax_cross_entropy_with_integer_labels(forward(params, x), y).mean()


tx = optax.adam(3e-3)
params = init(jax.random.PRNGKey(0))
opt_state = tx.init(params)


@jax.jit
def train_step(params, opt_state, x, y):
    loss, grads = jax.value_and_grad(loss_fn)(params, x, y)
    updates, opt_state = tx.update(grads, opt_state)
    return optax.apply_updates(params, updates), opt_state, loss


start = time.time()
for step in range(STEPS):
    x, y = make_batch()
    params, opt_state, loss = train_step(params, opt_state, x, y)
    if step % 25 == 0:
        print(f"step {step}: loss {float(loss):.4f}, {time.time() - start:.1f}s since start")
