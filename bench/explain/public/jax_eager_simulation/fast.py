"""Evolution strategy for a pendulum swing-up policy, simulated with jnp."""
import time

import jax
import jax.numpy as jnp
import numpy as np

HORIZON = 100
POPULATION = 32
GENERATIONS = 10
SIGMA, LR = 0.1, 0.05


def policy(theta, obs):
    w1 = theta[:48].reshape(3, 16)
    b1 = theta[48:64]
    w2 = theta[64:80].reshape(16, 1)
    return 2.0 * jnp.tanh(jnp.tanh(obs @ w1 + b1) @ w2)[:, 0]


@jax.jit
def env_step(theta, state):
    angle, speed, cost = state
    obs = jnp.stack([jnp.cos(angle), jnp.sin(angle), speed / 8.0], axis=-1)
    torque = jnp.clip(policy(theta, obs), -2.0, 2.0)
    wrapped = jnp.mod(angle + jnp.pi, 2 * jnp.pi) - jnp.pi
    cost = cost + wrapped ** 2 + 0.1 * speed ** 2 + 0.001 * torque ** 2
    speed = jnp.clip(speed + (15.0 * jnp.sin(angle) + 3.0 * torque) * 0.05, -8.0, 8.0)
    angle = angle + speed * 0.05
    return angle, speed, cost


def rollout(theta, start_angle):
    state = (start_angle, jnp.zeros_like(start_angle), jnp.zeros_like(start_angle))
    for _ in range(HORIZON):
        state = env_step(theta, state)
    return state[2].mean()


rng = np.random.default_rng(0)
theta = rng.normal(size=80).astype(np.float32) * 0.3
start_angle = jnp.asarray(rng.uniform(-np.pi, np.pi, size=16).astype(np.float32))

began = time.time()
for gen in range(GENERATIONS):
    noise = rng.normal(size=(POPULATION // 2, 80)).astype(np.float32)
    noise = np.concatenate([noise, -noise])
    costs = np.array([rollout(theta + SIGMA * eps, start_angle) for eps in noise])
    ranked = (costs - costs.mean()) / (costs.std() + 1e-6)
    theta = theta - LR / (POPULATION * SIGMA) * (ranked @ noise).astype(np.float32)
    if gen % 2 == 0:
        print(f"generation {gen} mean cost {costs.mean():.2f} best {costs.min():.2f} "
              f"[{time.time() - began:.1f}s]")
