import math
import random
import time

import numpy as np
import torch
from torch import nn, optim

CAPACITY, BATCH, GAMMA, ALPHA = 2 ** 17, 48, 0.99, 0.5
WARMUP, STEPS, TARGET_UPDATE = 500, 2250, 200


class Pendulum:
    def __init__(self, seed):
        self.rng = np.random.RandomState(seed)

    def _obs(self):
        return torch.tensor([math.cos(self.th), math.sin(self.th), self.thdot / 8])

    def reset(self):
        self.th, self.thdot, self.t = self.rng.uniform(-math.pi, math.pi), self.rng.uniform(-1, 1), 0
        return self._obs()

    def step(self, action):
        u, ang = 2.0 * (action - 1), (self.th + math.pi) % (2 * math.pi) - math.pi
        cost = ang ** 2 + 0.1 * self.thdot ** 2 + 0.001 * u ** 2
        self.thdot = min(max(self.thdot + (15 * math.sin(self.th) + 3 * u) * 0.05, -8), 8)
        self.th += self.thdot * 0.05
        self.t += 1
        return self._obs(), -cost, self.t >= 200


class ReplayMemory:
    def __init__(self, capacity, beta=0.4):
        self.capacity, self.beta = capacity, beta
        self.tree = [0] * (2 * capacity - 1)
        self.data = [None] * capacity
        self.pos, self.size, self.max_priority = 0, 0, 1.0

    def set(self, index, value):
        self.tree[index] = value
        while index > 0:
            index = (index - 1) // 2
            self.tree[index] = self.tree[2 * index + 1] + self.tree[2 * index + 2]

    def append(self, transition):
        self.data[self.pos] = transition
        self.set(self.pos + self.capacity - 1, self.max_priority)
        self.pos = (self.pos + 1) % self.capacity
        self.size = min(self.size + 1, self.capacity)

    def find(self, value):
        index = 0
        while index < self.capacity - 1:
            left = 2 * index + 1
            mass = float(self.tree[left])
            index, value = (left, value) if value <= mass else (left + 1, value - mass)
        return index

    def sample(self, batch_size):
        segment = float(self.tree[0]) / batch_size
        idxs = [self.find(random.uniform(i * segment, (i + 1) * segment)) for i in range(batch_size)]
        probs = torch.tensor([float(self.tree[i]) for i in idxs]) / float(self.tree[0])
        s, a, r, s2, nt = zip(*(self.data[i - self.capacity + 1] for i in idxs))
        weights = (self.size * probs) ** -self.beta
        return idxs, (torch.stack(s), torch.tensor(a), torch.tensor(r), torch.stack(s2), torch.tensor(nt)), weights / weights.max()

    def update_priorities(self, idxs, priorities):
        for index, priority in zip(idxs, priorities):
            self.set(index, priority)
            self.max_priority = max(self.max_priority, priority)


def make_net():
    return nn.Sequential(nn.Linear(3, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 3))


def learn(online, target, optimiser, mem):
    idxs, (s, a, r, s2, nonterminal), weights = mem.sample(BATCH)
    q = online(s).gather(1, a.unsqueeze(1)).squeeze(1)
    with torch.no_grad():
        best = online(s2).argmax(1, keepdim=True)
        y = r / 10 + GAMMA * nonterminal * target(s2).gather(1, best).squeeze(1)
    td = (q - y).abs()
    loss = (weights * td ** 2).mean()
    optimiser.zero_grad()
    loss.backward()
    optimiser.step()
    mem.update_priorities(idxs, (td.detach().double() + 1e-5).pow(ALPHA))
    return loss.item()


def main():
    random.seed(1)
    torch.manual_seed(1)
    torch.set_num_threads(1)
    env = Pendulum(seed=1)
    online, target = make_net(), make_net()
    target.load_state_dict(online.state_dict())
    optimiser = optim.Adam(online.parameters(), lr=1e-3)
    mem = ReplayMemory(CAPACITY)

    state, start, losses = env.reset(), time.time(), []
    for t in range(WARMUP + STEPS):
        eps = max(0.05, 1 - t / 1500)
        action = random.randrange(3) if random.random() < eps else online(state).argmax().item()
        next_state, reward, done = env.step(action)
        mem.append((state, action, reward, next_state, float(not done)))
        state = env.reset() if done else next_state
        if t >= WARMUP:
            losses.append(learn(online, target, optimiser, mem))
            if (t + 1) % TARGET_UPDATE == 0:
                target.load_state_dict(online.state_dict())
        if (t + 1) % 250 == 0 and losses:
            print(f"T = {t + 1} | loss {np.mean(losses[-250:]):.4f} | {time.time() - start:.1f}s")


if __name__ == "__main__":
    main()
