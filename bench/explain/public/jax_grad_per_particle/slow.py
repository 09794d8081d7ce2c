"""Fit a 1-d energy by score matching, then sample it with Langevin dynamics."""
import time

import jax
import jax.numpy as jnp
import numpy as np
import optax

HIDDEN = 64
PARTICLES = 256
FIT_STEPS = 200
SAMPLE_STEPS = 3000
DT = 0.01

rng = np.random.default_rng(11)
data = np.concatenate([rng.normal(-2, 0.5, 2000), rng.normal(1.5, 0.8, 3000)]).astype(np.float32)


def init(key):
    k1, k2, k3 = jax.random.split(key, 3)
    return {
        "w1": jax.random.normal(k1, (1, HIDDEN)),
        "b1": jax.random.normal(k3, (HIDDEN,)),
        "w2": jax.random.normal(k2, (HIDDEN, 1)) * 0.1,
    }


def energy(params, x):
    h = jnp.tanh(x.reshape(1, 1) @ params["w1"] + params["b1"])
    return (h @ params["w2"])[0, 0] + 0.05 * x ** 2


def score_matching(params, x, noise):
    noisy = x + 0.3 * noise
    force = jax.vmap(jax.grad(energy, argnums=1), (None, 0))(params, noisy)
    return jnp.mean((force - noise / 0.3) ** 2)


tx = optax.adam(5e-3)
params = init(jax.random.PRNGKey(0))
opt_state = tx.init(params)


@jax.jit
def fit_step(params, opt_state, x, noise):
    loss, grads = jax.value_and_grad(score_matching)(params, x, noise)
    updates, opt_state = tx.update(grads, opt_state)
    return optax.apply_updates(params, updates), opt_state, loss


for step in range(FIT_STEPS):
    x = data[rng.integers(0, len(data), size=256)]
    noise = rng.normal(size=256).astype(np.float32)
    params, opt_state, loss = fit_step(params, opt_state, x, noise)
print("score matching loss", float(loss))

d_energy = jax.jit(jax.grad(energy, argnums=1))
xs = rng.normal(0, 3, size=PARTICLES).astype(np.float32)
start = time.time()
for step in range(SAMPLE_STEPS):
    force = np.array(list(map(lambda x: float(d_energy(params, x)), xs)), dtype=np.float32)
    xs = xs - DT * force + np.sqrt(2 * DT) * rng.normal(size=PARTICLES).astype(np.float32)
    xs = xs.astype(np.float32)
    if step % 300 == 0:
        print(f"step {step} mean {xs.mean():.3f} std {xs.std():.3f} {time.time() - start:.1f}s")
