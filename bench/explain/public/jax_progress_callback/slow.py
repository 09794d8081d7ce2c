"""Random-walk Metropolis sampling of a logistic regression posterior, all inside lax.scan."""
import time

import jax
import jax.numpy as jnp
import numpy as np

ROUNDS, STEPS, DIM, ROWS, PRINT_RATE = 105, 500, 8, 60, 12000
rng = np.random.default_rng(0)
X = jnp.asarray(rng.standard_normal((ROWS, DIM)), jnp.float32)
w_true = jnp.asarray(rng.standard_normal(DIM), jnp.float32)
y = jnp.asarray(rng.random(ROWS) < 1 / (1 + np.exp(-np.asarray(X @ w_true))), jnp.float32)
start = time.time()


def log_post(w):
    z = X @ w
    return jnp.sum(y * z - jnp.logaddexp(0.0, z)) - 0.5 * jnp.sum(w ** 2)


def show_progress(i, lp):
    if i % PRINT_RATE == 0:
        print(f"iteration {i}/{ROUNDS * STEPS} log posterior {lp:.2f} "
              f"{time.time() - start:.1f} s", flush=True)


def kernel(carry, inp):
    w, lp = carry
    i, key = inp
    k1, k2 = jax.random.split(key)
    prop = w + 0.3 * jax.random.normal(k1, w.shape)
    lp_prop = log_post(prop)
    accept = jnp.log(jax.random.uniform(k2)) < lp_prop - lp
    w = jnp.where(accept, prop, w)
    lp = jnp.where(accept, lp_prop, lp)
    jax.debug.callback(show_progress, i, lp)
    return (w, lp), w


@jax.jit
def sample(carry, first, key):
    keys = jax.random.split(key, STEPS)
    return jax.lax.scan(kernel, carry, (first + jnp.arange(STEPS), keys))


key = jax.random.key(0)
w = jnp.zeros(DIM)
carry = (w, log_post(w))
means = []
for r in range(ROUNDS):
    key, sub = jax.random.split(key)
    carry, chain = sample(carry, r * STEPS, sub)
    means.append(np.asarray(chain.mean(0)))
jax.effects_barrier()
print("posterior mean", np.round(np.mean(means[5:], 0), 2))
print(f"total {time.time() - start:.1f} s")
