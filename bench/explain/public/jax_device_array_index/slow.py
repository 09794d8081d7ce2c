"""REINFORCE with a value baseline (A2C style) on a small batched navigation task."""
import time

import jax
import jax.numpy as jnp
import numpy as np

OBS, ACT, HID = 12, 4, 64
HORIZON = 48
GAMMA, LAM = 0.99, 0.95
LR = 3e-3
UPDATES = 700


class PointEnv:
    """A point that has to go to a goal; the observation holds both and some noise channels."""

    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)
        self.moves = np.array([[1, 0], [-1, 0], [0, 1], [0, -1]], np.float32) * 0.1

    def reset(self):
        self.pos = self.rng.uniform(-1, 1, 2).astype(np.float32)
        self.goal = self.rng.uniform(-1, 1, 2).astype(np.float32)
        return self.obs()

    def obs(self):
        noise = self.rng.normal(size=OBS - 4).astype(np.float32) * 0.1
        return np.concatenate([self.pos, self.goal, noise])

    def step(self, action):
        self.pos = np.clip(self.pos + self.moves[action], -1.5, 1.5)
        dist = float(np.linalg.norm(self.pos - self.goal))
        done = dist < 0.12
        return self.obs(), (1.0 if done else -0.1 * dist), done


def init(key):
    k = jax.random.split(key, 4)
    s = lambda kk, i, o: jax.random.normal(kk, (i, o)) / np.sqrt(i)
    return {"w1": s(k[0], OBS, HID), "b1": jnp.zeros(HID),
            "w2": s(k[1], HID, HID), "b2": jnp.zeros(HID),
            "pi": s(k[2], HID, ACT) * 0.01, "v": s(k[3], HID, 1) * 0.1}


def net(params, x):
    h = jnp.tanh(x @ params["w1"] + params["b1"])
    h = jnp.tanh(h @ params["w2"] + params["b2"])
    return h @ params["pi"], (h @ params["v"])[..., 0]


policy = jax.jit(net)


def loss_fn(params, obs, act, adv, ret):
    logits, v = net(params, obs)
    logp = jax.nn.log_softmax(logits)
    chosen = jnp.take_along_axis(logp, act[:, None], 1)[:, 0]
    entropy = -(jnp.exp(logp) * logp).sum(-1).mean()
    return -(chosen * adv).mean() + 0.5 * ((v - ret) ** 2).mean() - 0.01 * entropy


@jax.jit
def update(params, obs, act, adv, ret):
    adv = (adv - adv.mean()) / (adv.std() + 1e-6)
    loss, g = jax.value_and_grad(loss_fn)(params, obs, act, adv, ret)
    return jax.tree_util.tree_map(lambda p, d: p - LR * d, params, g), loss


def gae(rewards, values, dones, last_value):
    adv, acc, nxt = [], 0.0, last_value
    for t in reversed(range(HORIZON)):
        mask = 1.0 - dones[t]
        delta = rewards[t] + GAMMA * nxt * mask - values[t]
        acc = delta + GAMMA * LAM * mask * acc
        nxt = values[t]
        adv.append(acc)
    return jnp.stack(adv[::-1])


def main():
    env, rng = PointEnv(0), np.random.default_rng(1)
    params = init(jax.random.PRNGKey(0))
    obs, start = env.reset(), time.time()
    for it in range(UPDATES):
        O, A, R, D = [], [], [], []
        for _ in range(HORIZON):
            logits = np.asarray(policy(params, obs)[0])
            a = int(np.argmax(logits + rng.gumbel(size=ACT)))
            nobs, r, done = env.step(a)
            O.append(obs), A.append(a), R.append(r), D.append(float(done))
            obs = env.reset() if done else nobs
        batch = jnp.asarray(np.stack(O))
        values = policy(params, batch)[1]
        last = policy(params, obs)[1]
        rewards, dones = jnp.asarray(R, jnp.float32), jnp.asarray(D, jnp.float32)
        adv = gae(rewards, values, dones, last)
        params, loss = update(params, batch, jnp.asarray(A), adv, adv + values)
        if it % 50 == 0:
            print(f"update {it:4d} loss {float(loss):.4f} reward {np.mean(R):.4f} {time.time() - start:.1f}s", flush=True)


if __name__ == "__main__":
    main()
