"""Particle swarm in a potential; every 25 steps the slow pair correction is refreshed."""
import time

import jax
import jax.numpy as jnp
import numpy as np

ENVS = 24
BODIES = 160
REFRESH = 25
STEPS = 1300
DT = 0.01


def pair_correction(pos):
    """Expensive: all pairs, with a few rounds of self-consistent screening."""
    diff = pos[:, None, :] - pos[None, :, :]
    dist2 = jnp.sum(diff ** 2, axis=-1) + 0.05
    weight = jnp.exp(-dist2)
    charge = jnp.ones(pos.shape[0])
    for _ in range(3):
        charge = 1.0 / (1.0 + weight @ charge / BODIES)
    strength = weight * charge[:, None] * charge[None, :] / jnp.sqrt(dist2)
    return jnp.sum(strength[..., None] * diff, axis=1)


def env_step(state):
    pos, vel, corr, count = state
    corr = jax.lax.cond(count % REFRESH == 0, pair_correction, lambda _: corr, pos)
    force = -pos + 0.3 * jnp.sin(3.0 * pos) + 0.1 * corr
    vel = 0.999 * vel + DT * force
    pos = pos + DT * vel
    return pos, vel, corr, count + 1


@jax.jit
def simulate_step(state):
    return jax.vmap(env_step)(state)


rng = np.random.default_rng(0)
pos = jnp.asarray(rng.normal(size=(ENVS, BODIES, 3)).astype(np.float32))
vel = jnp.zeros_like(pos)
corr = jnp.zeros_like(pos)
state = (pos, vel, corr, jnp.zeros(ENVS, dtype=jnp.int32))

began = time.time()
for step in range(STEPS):
    state = simulate_step(state)
    if step % 100 == 0:
        energy = 0.5 * float(jnp.sum(state[1] ** 2)) / ENVS
        spread = float(jnp.std(state[0]))
        print(f"step {step:4d} kinetic {energy:8.4f} spread {spread:.4f} "
              f"[{time.time() - began:.1f}s]")
print(f"final spread {float(jnp.std(state[0])):.4f}")
