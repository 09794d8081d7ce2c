"""Denoising autoencoder: every sample gets its own noise level and noise."""
import time

import jax
import jax.numpy as jnp
import numpy as np
import optax

DIM, HIDDEN, BATCH = 128, 256, 64
STEPS = 800

rng = np.random.default_rng(0)
basis = rng.normal(size=(8, DIM)).astype(np.float32)
clean = (rng.normal(size=(4096, 8)).astype(np.float32) @ basis) / 3.0


def init(key):
    k1, k2 = jax.random.split(key)
    return {
        "enc": jax.random.normal(k1, (DIM, HIDDEN)) * 0.08,
        "dec": jax.random.normal(k2, (HIDDEN, DIM)) * 0.06,
        "b": jnp.zeros(HIDDEN),
    }


def loss_fn(params, noisy, target):
    h = jax.nn.relu(noisy @ params["enc"] + params["b"])
    return jnp.mean((h @ params["dec"] - target) ** 2)


tx = optax.adam(1e-3)
params = init(jax.random.PRNGKey(0))
opt_state = tx.init(params)


@jax.jit
def train_step(params, opt_state, noisy, target):
    loss, grads = jax.value_and_grad(loss_fn)(params, noisy, target)
    updates, opt_state = tx.update(grads, opt_state)
    return optax.apply_updates(params, updates), opt_state, loss


def add_noise(key, batch):
    noisy = []
    for sample in batch:
        key, k_level, k_noise = jax.random.split(key, 3)
        sigma = jax.random.uniform(k_level, minval=0.05, maxval=0.5)
        noisy.append(sample + sigma * jax.random.normal(k_noise, sample.shape))
    return key, jnp.stack(noisy)


key = jax.random.PRNGKey(42)
start = time.time()
for step in range(STEPS):
    target = clean[rng.integers(0, len(clean), size=BATCH)]
    key, noisy = add_noise(key, target)
    params, opt_state, loss = train_step(params, opt_state, noisy, target)
    if step % 100 == 0:
        print(f"step {step} loss {float(loss):.4f} ({time.time() - start:.1f}s)")
