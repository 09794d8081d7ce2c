"""Model-based RL: score action sequences with an ensemble of learned dynamics models (random-shooting MPC)."""
import time

import torch
import torch.nn as nn

torch.manual_seed(3)

STATE, ACTION, HIDDEN = 12, 4, 48
MEMBERS = 32
CANDIDATES, HORIZON = 8, 12
ENV_STEPS = 500


class Dynamics(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(STATE + ACTION, HIDDEN)
        self.fc2 = nn.Linear(HIDDEN, HIDDEN)
        self.fc3 = nn.Linear(HIDDEN, STATE)

    def forward(self, x):
        x = torch.relu(self.fc1(x))
        x = torch.relu(self.fc2(x))
        return self.fc3(x)


class Ensemble(nn.Module):
    def __init__(self, members):
        super().__init__()
        self.members = nn.ModuleList(members)

    def forward(self, x):
        return torch.stack([net(x[i]) for i, net in enumerate(self.members)])


def reward(state, action):
    return -(state ** 2).mean(-1) - 0.05 * (action ** 2).mean(-1)


def plan(ensemble, state):
    actions = torch.randn(HORIZON, CANDIDATES, ACTION)
    states = state.expand(MEMBERS, CANDIDATES, STATE)
    total = torch.zeros(MEMBERS, CANDIDATES)
    for t in range(HORIZON):
        act = actions[t].expand(MEMBERS, CANDIDATES, ACTION)
        states = states + 0.1 * ensemble(torch.cat([states, act], dim=-1))
        total = total + reward(states, act)
    best = total.mean(0).argmax()
    return actions[0, best]


ensemble = Ensemble([Dynamics() for _ in range(MEMBERS)]).eval()
mixing = torch.randn(ACTION, STATE) * 0.1
state = torch.randn(STATE)

start = time.time()
with torch.no_grad():
    for step in range(1, ENV_STEPS + 1):
        action = plan(ensemble, state)
        state = 0.98 * state + action @ mixing
        if step % 50 == 0:
            cost = (state ** 2).mean().item()
            print(f"env step {step} cost {cost:.4f} {step / (time.time() - start):.1f} plans/s")
