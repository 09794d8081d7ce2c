"""Data-efficient Rainbow-ish DQN with prioritised replay on a toy corridor world."""
import time

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

SEED = 3
OBS_DIM = 24
N_ACTIONS = 6
CAPACITY = 1 << 17
BATCH = 256
UPDATES = 1000
GAMMA = 0.97


class SumTree:
    """Binary tree whose inner nodes hold the sum of their children."""

    def __init__(self, size):
        self.size = size
        self.start = size - 1
        self.tree = np.zeros(2 * size - 1, dtype=np.float64)

    def fill(self, values):
        self.tree[self.start:self.start + len(values)] = values
        for i in range(self.start - 1, -1, -1):
            self.tree[i] = self.tree[2 * i + 1] + self.tree[2 * i + 2]

    def _propagate(self, node):
        while node != 0:
            node = (node - 1) // 2
            self.tree[node] = self.tree[2 * node + 1] + self.tree[2 * node + 2]

    def update(self, leaf, value):
        self.tree[self.start + leaf] = value
        self._propagate(self.start + leaf)

    def find(self, value):
        node = 0
        while node < self.start:
            left = 2 * node + 1
            if value <= self.tree[left]:
                node = left
            else:
                value -= self.tree[left]
                node = left + 1
        return node - self.start, self.tree[node]

    @property
    def total(self):
        return self.tree[0]


class PrioritizedReplay:
    def __init__(self, capacity, alpha=0.5, beta=0.4):
        rng = np.random.default_rng(SEED)
        self.rng = rng
        self.capacity, self.alpha, self.beta = capacity, alpha, beta
        self.obs = rng.standard_normal((capacity, OBS_DIM), dtype=np.float32)
        self.act = rng.integers(0, N_ACTIONS, capacity)
        self.rew = (self.obs[:, 0] * (self.act % 3 - 1)).astype(np.float32)
        self.nxt = (0.9 * self.obs + 0.1 * np.roll(self.obs, 1, axis=1)).astype(np.float32)
        self.done = (rng.random(capacity) < 0.02).astype(np.float32)
        self.tree = SumTree(capacity)
        self.tree.fill(np.ones(capacity))

    def sample(self, n):
        segment = self.tree.total / n
        idx, prob = [], []
        for i in range(n):
            leaf, p = self.tree.find(self.rng.uniform(i * segment, (i + 1) * segment))
            idx.append(leaf)
            prob.append(p)
        idx = np.array(idx)
        prob = np.array(prob) / self.tree.total
        w = (self.capacity * prob) ** -self.beta
        w = torch.from_numpy((w / w.max()).astype(np.float32))
        fields = (self.obs, self.act, self.rew, self.nxt, self.done)
        return idx, w, [torch.from_numpy(f[idx]) for f in fields]

    def update_priorities(self, idx, td):
        values = (td + 1e-3) ** self.alpha
        for leaf, v in zip(idx, values):
            self.tree.update(leaf, v)


def q_net():
    return nn.Sequential(nn.Linear(OBS_DIM, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU(),
                         nn.Linear(128, N_ACTIONS))


def main():
    torch.set_num_threads(1)
    torch.manual_seed(SEED)
    memory = PrioritizedReplay(CAPACITY)
    online, target = q_net(), q_net()
    target.load_state_dict(online.state_dict())
    opt = torch.optim.Adam(online.parameters(), lr=5e-4)
    start = time.time()
    for step in range(1, UPDATES + 1):
        idx, w, (o, a, r, o2, d) = memory.sample(BATCH)
        with torch.no_grad():
            best = online(o2).argmax(1, keepdim=True)
            y = r + GAMMA * (1 - d) * target(o2).gather(1, best).squeeze(1)
        q = online(o).gather(1, a[:, None]).squeeze(1)
        loss = (w * F.smooth_l1_loss(q, y, reduction="none")).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        memory.update_priorities(idx, (q.detach() - y).abs().numpy())
        if step % 200 == 0:
            target.load_state_dict(online.state_dict())
        if step % 250 == 0:
            print(f"update {step}: loss {loss.item():.4f}  mean q {q.mean().item():+.3f}  "
                  f"{step / (time.time() - start):.1f} updates/s")


if __name__ == "__main__":
    main()
