"""Deep residual MLP trained with optax.adamw."""
import time

import jax
import jax.numpy as jnp
import numpy as np
import optax

DEPTH, WIDTH, BATCH = 16, 48, 64
STEPS = 600

rng = np.random.default_rng(3)
data_x = rng.normal(size=(4096, WIDTH)).astype(np.float32)
data_y = np.sin(data_x.sum(axis=1, keepdims=True) * 0.3).astype(np.float32)


def init(key):
    params = []
    for k in jax.random.split(key, DEPTH):
        params.append({
            "w": jax.random.normal(k, (WIDTH, WIDTH)) * 0.03,
            "b": jnp.zeros(WIDTH),
            "scale": jnp.ones(WIDTH),
        })
    return params


def forward(params, x):
    for layer in params:
        h = x * layer["scale"]
        x = x + jax.nn.relu(h @ layer["w"] + layer["b"])
    return x.mean(axis=1, keepdims=True)


def loss_and_grad(params, x, y):
    return jax.value_and_grad(lambda p: jnp.mean((forward(p, x) - y) ** 2))(params)


tx = optax.chain(
    optax.clip_by_global_norm(1.0),
    optax.adamw(optax.cosine_decay_schedule(1e-3, STEPS), weight_decay=1e-4),
)
params = init(jax.random.PRNGKey(0))
opt_state = tx.init(params)


@jax.jit
def train_step(params, opt_state, x, y):
    loss, grads = loss_and_grad(params, x, y)
    updates, opt_state = tx.update(grads, opt_state, params)
    params = optax.apply_updates(params, updates)
    return params, opt_state, loss


start = time.time()
for step in range(STEPS):
    idx = rng.integers(0, len(data_x), size=BATCH)
    params, opt_state, loss = train_step(params, opt_state, data_x[idx], data_y[idx])
    if step % 100 == 0:
        print(f"{step:5d} loss={float(loss):.5f} time={time.time() - start:.1f}s")
print("done", float(loss))
