"""Soft actor-critic style updates on random transitions of a toy arm."""
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.distributions import Normal

torch.autograd.set_detect_anomaly(True)
torch.manual_seed(1)

OBS, ACT, HIDDEN = 17, 6, 64
BATCH = 128
STEPS = 1500


def mlp(inp, out):
    return nn.Sequential(nn.Linear(inp, HIDDEN), nn.ReLU(),
                         nn.Linear(HIDDEN, HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, out))


class Actor(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = mlp(OBS, 2 * ACT)

    def sample(self, obs):
        mean, log_std = self.net(obs).chunk(2, dim=-1)
        dist = Normal(mean, log_std.clamp(-5, 2).exp())
        raw = dist.rsample()
        action = torch.tanh(raw)
        logp = dist.log_prob(raw) - torch.log(1 - action.pow(2) + 1e-6)
        return action, logp.sum(-1, keepdim=True)


actor = Actor()
q1, q2 = mlp(OBS + ACT, 1), mlp(OBS + ACT, 1)
actor_opt = torch.optim.Adam(actor.parameters(), lr=3e-4)
critic_opt = torch.optim.Adam([*q1.parameters(), *q2.parameters()], lr=3e-4)
alpha, gamma = 0.2, 0.99

data_obs = torch.randn(20_000, OBS)
data_act = torch.rand(20_000, ACT) * 2 - 1
data_rew = -data_obs[:, :ACT].sub(data_act).pow(2).mean(1, keepdim=True)
data_next = data_obs + 0.1 * torch.randn_like(data_obs)

for step in range(1, STEPS + 1):
    idx = torch.randint(0, len(data_obs), (BATCH,))
    obs, act, rew, nxt = data_obs[idx], data_act[idx], data_rew[idx], data_next[idx]

    with torch.no_grad():
        na, nlogp = actor.sample(nxt)
        nsa = torch.cat([nxt, na], 1)
        target = rew + gamma * (torch.min(q1(nsa), q2(nsa)) - alpha * nlogp)
    sa = torch.cat([obs, act], 1)
    critic_loss = F.mse_loss(q1(sa), target) + F.mse_loss(q2(sa), target)
    critic_opt.zero_grad()
    critic_loss.backward()
    critic_opt.step()

    a, logp = actor.sample(obs)
    sa = torch.cat([obs, a], 1)
    actor_loss = (alpha * logp - torch.min(q1(sa), q2(sa))).mean()
    actor_opt.zero_grad()
    actor_loss.backward()
    actor_opt.step()

    if step % 250 == 0:
        print(f"step {step} critic {critic_loss.item():.4f} actor {actor_loss.item():.4f}")
