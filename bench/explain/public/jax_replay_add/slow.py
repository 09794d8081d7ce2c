"""Q-learning on a toy point-mass task with a replay buffer kept in JAX arrays."""
import time

import jax
import jax.numpy as jnp
import numpy as np

CAPACITY = 100_000
OBS, ACTIONS = 48, 5
STEPS = 1500
BATCH = 64
GAMMA, LR = 0.97, 1e-3

rng = np.random.default_rng(0)
moves = rng.normal(size=(ACTIONS, OBS)).astype(np.float32) * 0.03


def init_params(key):
    k1, k2 = jax.random.split(key)
    return {"w1": jax.random.normal(k1, (OBS, 64)) * 0.1, "b1": jnp.zeros(64),
            "w2": jax.random.normal(k2, (64, ACTIONS)) * 0.1, "b2": jnp.zeros(ACTIONS)}


def q_values(params, obs):
    return jnp.tanh(obs @ params["w1"] + params["b1"]) @ params["w2"] + params["b2"]


def add(buffer, at, obs, action, reward, next_obs):
    return {"obs": buffer["obs"].at[at].set(obs),
            "action": buffer["action"].at[at].set(action),
            "reward": buffer["reward"].at[at].set(reward),
            "next_obs": buffer["next_obs"].at[at].set(next_obs)}


def td_loss(params, obs, action, reward, next_obs):
    target = reward + GAMMA * jax.lax.stop_gradient(q_values(params, next_obs).max(axis=1))
    chosen = jnp.take_along_axis(q_values(params, obs), action[:, None], axis=1)[:, 0]
    return jnp.mean((chosen - target) ** 2)


@jax.jit
def learn(params, buffer, idx):
    batch = {name: column[idx] for name, column in buffer.items()}
    loss, grads = jax.value_and_grad(td_loss)(params, **batch)
    return jax.tree.map(lambda p, g: p - LR * g, params, grads), loss


act = jax.jit(lambda params, obs: jnp.argmax(q_values(params, obs)))
add = jax.jit(add)

params = init_params(jax.random.key(0))
buffer = {"obs": jnp.zeros((CAPACITY, OBS)), "action": jnp.zeros(CAPACITY, jnp.int32),
          "reward": jnp.zeros(CAPACITY), "next_obs": jnp.zeros((CAPACITY, OBS))}
obs = rng.normal(size=OBS).astype(np.float32)
began, total = time.time(), 0.0
for step in range(STEPS):
    greedy = int(act(params, obs))
    action = greedy if rng.random() > 0.1 else int(rng.integers(ACTIONS))
    next_obs = (0.99 * obs + moves[action]).astype(np.float32)
    reward = np.float32(-np.mean(next_obs ** 2))
    buffer = add(buffer, step % CAPACITY, obs, np.int32(action), reward, next_obs)
    idx = rng.integers(0, step + 1, size=BATCH)
    params, loss = learn(params, buffer, idx)
    total += float(reward)
    obs = next_obs
    if step % 100 == 0:
        print(f"step {step:4d} loss {float(loss):.5f} mean reward {total / (step + 1):.4f} "
              f"[{time.time() - began:.1f}s]")
