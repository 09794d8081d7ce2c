"""Regression on tabular rows that come as plain Python lists."""
import random
import time

import jax
import jax.numpy as jnp
import numpy as np
import optax

EPOCHS = 4
BATCH = 128
N_ROWS = 3072
N_COLS = 400

random.seed(0)
coef = [random.gauss(0.0, 1.0) for _ in range(N_COLS)]
rows, targets = [], []
for _ in range(N_ROWS):
    row = [random.gauss(0.0, 1.0) for _ in range(N_COLS)]
    rows.append(row)
    targets.append(sum(c * v for c, v in zip(coef, row)) / N_COLS)


def init(key):
    k1, k2 = jax.random.split(key)
    return {
        "w1": jax.random.normal(k1, (N_COLS, 64)) * 0.05,
        "b1": jnp.zeros(64),
        "w2": jax.random.normal(k2, (64, 1)) * 0.1,
        "b2": jnp.zeros(1),
    }


def predict(params, x):
    h = jnp.tanh(x @ params["w1"] + params["b1"])
    return (h @ params["w2"] + params["b2"])[:, 0]


def loss_fn(params, x, y):
    return jnp.mean((predict(params, x) - y) ** 2)


opt = optax.adam(1e-3)
params = init(jax.random.PRNGKey(0))
opt_state = opt.init(params)


@jax.jit
def train_step(params, opt_state, x, y):
    loss, grads = jax.value_and_grad(loss_fn)(params, x, y)
    updates, opt_state = opt.update(grads, opt_state)
    return optax.apply_updates(params, updates), opt_state, loss


order = list(range(N_ROWS))
for epoch in range(EPOCHS):
    random.shuffle(order)
    t0, total = time.time(), 0.0
    for i in range(0, N_ROWS, BATCH):
        pick = order[i:i + BATCH]
        x = jnp.asarray(np.array([rows[j] for j in pick], dtype=np.float32))
        y = jnp.asarray(np.array([targets[j] for j in pick], dtype=np.float32))
        params, opt_state, loss = train_step(params, opt_state, x, y)
        total += float(loss)
    print(f"epoch {epoch}: loss {total / (N_ROWS // BATCH):.5f}  ({time.time() - t0:.2f}s)")
