import time

import jax
import jax.numpy as jnp
import numpy as np
import optax

OBS = 48
ACTIONS = 5
CAPACITY = 4000
BATCH = 512
STEPS = 400
ALPHA = 0.6
GAMMA = 0.95

rng = np.random.default_rng(13)


def init_net(key):
    k1, k2, k3 = jax.random.split(key, 3)
    return {
        "w1": jax.random.normal(k1, (OBS, 256)) / np.sqrt(OBS), "b1": jnp.zeros(256),
        "w2": jax.random.normal(k2, (256, 256)) / 16.0, "b2": jnp.zeros(256),
        "w3": jax.random.normal(k3, (256, ACTIONS)) / 16.0, "b3": jnp.zeros(ACTIONS),
    }


def q_values(net, obs):
    h = jax.nn.relu(obs @ net["w1"] + net["b1"])
    h = jax.nn.relu(h @ net["w2"] + net["b2"])
    return h @ net["w3"] + net["b3"]


optimizer = optax.adam(1e-3)


@jax.jit
def train_step(net, target, opt_state, batch, weights):
    obs, action, reward, nxt = batch

    def loss_fn(net):
        q = jnp.take_along_axis(q_values(net, obs), action[:, None], axis=1)[:, 0]
        goal = reward + GAMMA * q_values(target, nxt).max(axis=1)
        td = q - jax.lax.stop_gradient(goal)
        return jnp.mean(weights * td ** 2), td

    (loss, td), grads = jax.value_and_grad(loss_fn, has_aux=True)(net)
    updates, opt_state = optimizer.update(grads, opt_state)
    return optax.apply_updates(net, updates), opt_state, loss, jnp.abs(td)


class PrioritizedReplay:
    def __init__(self):
        self.obs = rng.normal(size=(CAPACITY, OBS)).astype(np.float32)
        self.nxt = (0.8 * self.obs + 0.2 * rng.normal(size=self.obs.shape)).astype(np.float32)
        self.action = rng.integers(0, ACTIONS, CAPACITY)
        taste = rng.normal(size=(OBS, ACTIONS)).astype(np.float32) / np.sqrt(OBS)
        self.reward = np.tanh(self.obs @ taste)[np.arange(CAPACITY), self.action]
        self.priority = np.ones(CAPACITY)

    def sample(self):
        p = self.priority ** ALPHA
        p /= p.sum()
        idx = rng.choice(CAPACITY, BATCH, p=p)
        weights = (CAPACITY * p[idx]) ** -0.5
        weights = (weights / weights.max()).astype(np.float32)
        return idx, (self.obs[idx], self.action[idx], self.reward[idx], self.nxt[idx]), weights

    def update(self, idx, errors):
        for k in range(len(idx)):
            self.priority[idx[k]] = float(errors[k]) + 1e-3


def main():
    replay = PrioritizedReplay()
    net = init_net(jax.random.PRNGKey(2))
    target = net
    opt_state = optimizer.init(net)
    start = time.time()
    for step in range(STEPS):
        idx, batch, weights = replay.sample()
        net, opt_state, loss, errors = train_step(net, target, opt_state, batch, weights)
        replay.update(idx, errors)
        if step % 50 == 0:
            target = net
            print(f"step {step} loss {float(loss):.5f}")
    print(f"final loss {float(loss):.5f} time {time.time() - start:.1f}s")


if __name__ == "__main__":
    main()
