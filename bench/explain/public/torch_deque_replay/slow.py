"""DQN updates from a large replay memory (control task with 8 state variables)."""
import random
import time
from collections import deque, namedtuple

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

random.seed(0)
np.random.seed(0)
torch.manual_seed(0)

Transition = namedtuple("Transition", "state action reward next_state done")
CAPACITY = 1_000_000
BATCH = 128
STEPS = 5000


class ReplayMemory:
    def __init__(self, capacity):
        self.memory = deque(maxlen=capacity)

    def push(self, *args):
        self.memory.append(Transition(*args))

    def sample(self, n):
        return random.sample(self.memory, n)

    def __len__(self):
        return len(self.memory)


def fill(memory):
    states = list(np.random.randn(CAPACITY + 1, 8).astype(np.float32))
    actions = np.random.randint(0, 4, CAPACITY).tolist()
    for i in range(CAPACITY):
        reward = float(-abs(states[i][0])) if i % 16 == 0 else 0.0
        memory.push(states[i], actions[i], reward, states[i + 1], i % 200 == 199)


q_net = nn.Sequential(nn.Linear(8, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 4))
target_net = nn.Sequential(nn.Linear(8, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 4))
target_net.load_state_dict(q_net.state_dict())
optimizer = torch.optim.Adam(q_net.parameters(), lr=1e-3)

memory = ReplayMemory(CAPACITY)
fill(memory)
print("memory holds", len(memory), "transitions")

start = time.time()
for step in range(1, STEPS + 1):
    batch = Transition(*zip(*memory.sample(BATCH)))
    state = torch.from_numpy(np.stack(batch.state))
    next_state = torch.from_numpy(np.stack(batch.next_state))
    action = torch.tensor(batch.action).unsqueeze(1)
    reward = torch.tensor(batch.reward)
    done = torch.tensor(batch.done, dtype=torch.float32)

    with torch.no_grad():
        target = reward + 0.99 * (1 - done) * target_net(next_state).max(1).values
    loss = F.smooth_l1_loss(q_net(state).gather(1, action).squeeze(1), target)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 500 == 0:
        target_net.load_state_dict(q_net.state_dict())
        print(f"step {step} loss {loss.item():.5f} {step / (time.time() - start):.0f} updates/s")
