"""TD3-like critic training from a preallocated replay buffer."""
import numpy as np
import torch
import torch.nn as nn

np.random.seed(2)
torch.manual_seed(2)

OBS, ACT = 11, 3
CAPACITY = 1_000_000
BATCH = 256
STEPS = 600


class ReplayBuffer:
    def __init__(self):
        self.obs = np.zeros((CAPACITY, OBS), np.float32)
        self.act = np.zeros((CAPACITY, ACT), np.float32)
        self.rew = np.zeros((CAPACITY, 1), np.float32)
        self.nxt = np.zeros((CAPACITY, OBS), np.float32)
        self.size = 0

    def fill(self, n):
        gen = np.random.default_rng(2)
        self.obs[:n] = gen.standard_normal((n, OBS), dtype=np.float32)
        self.act[:n] = gen.uniform(-1, 1, (n, ACT))
        self.rew[:n] = -np.square(self.obs[:n, :ACT] - self.act[:n]).sum(1, keepdims=True)
        self.nxt[:n] = 0.9 * self.obs[:n]
        self.size = n

    def sample(self, n):
        idx = np.random.randint(0, self.size, size=n)
        return tuple(torch.from_numpy(a[idx]) for a in (self.obs, self.act, self.rew, self.nxt))


def critic_net():
    return nn.Sequential(nn.Linear(OBS + ACT, 128), nn.ReLU(),
                         nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, 1))


critic, target = critic_net(), critic_net()
target.load_state_dict(critic.state_dict())
policy = nn.Sequential(nn.Linear(OBS, 64), nn.ReLU(), nn.Linear(64, ACT), nn.Tanh())
optimizer = torch.optim.Adam(critic.parameters(), lr=3e-4)

buffer = ReplayBuffer()
buffer.fill(CAPACITY)

for step in range(1, STEPS + 1):
    obs, act, rew, nxt = buffer.sample(BATCH)
    with torch.no_grad():
        y = rew + 0.99 * target(torch.cat([nxt, policy(nxt)], 1))
    loss = (critic(torch.cat([obs, act], 1)) - y).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    with torch.no_grad():
        for p, tp in zip(critic.parameters(), target.parameters()):
            tp.lerp_(p, 0.005)
    if step % 100 == 0:
        print(f"update {step}: critic loss {loss.item():.4f}")
