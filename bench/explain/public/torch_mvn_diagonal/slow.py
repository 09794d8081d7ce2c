"""PPO update for a 24-joint walker (continuous actions), rollouts already collected."""
import time

import torch
from torch import nn
from torch.distributions import MultivariateNormal

torch.manual_seed(0)
OBS, ACT, ROLLOUT, MINIBATCH, EPOCHS, ITERS = 60, 24, 2048, 512, 4, 30


class ActorCritic(nn.Module):
    def __init__(self):
        super().__init__()
        self.actor = nn.Sequential(
            nn.Linear(OBS, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(),
            nn.Linear(64, ACT))
        self.critic = nn.Sequential(
            nn.Linear(OBS, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(),
            nn.Linear(64, 1))
        self.log_std = nn.Parameter(torch.full((ACT,), -0.5))

    def dist(self, obs):
        mean = self.actor(obs)
        var = (2 * self.log_std).exp().expand_as(mean)
        return MultivariateNormal(mean, torch.diag_embed(var))

    def evaluate(self, obs, actions):
        d = self.dist(obs)
        return d.log_prob(actions), d.entropy(), self.critic(obs).squeeze(-1)


policy = ActorCritic()
opt = torch.optim.Adam(policy.parameters(), lr=3e-4)
start = time.time()
updates = 0
for it in range(ITERS):
    obs = torch.randn(ROLLOUT, OBS)
    with torch.no_grad():
        d = policy.dist(obs)
        actions = d.sample()
        old_logp = d.log_prob(actions)
    returns = torch.tanh(obs[:, :ACT] * actions).sum(1) * 0.1
    adv = returns - returns.mean()
    for epoch in range(EPOCHS):
        for idx in torch.randperm(ROLLOUT).split(MINIBATCH):
            logp, entropy, value = policy.evaluate(obs[idx], actions[idx])
            ratio = (logp - old_logp[idx]).exp()
            clipped = ratio.clamp(0.8, 1.2) * adv[idx]
            loss = (-torch.min(ratio * adv[idx], clipped).mean()
                    + 0.5 * (value - returns[idx]).pow(2).mean()
                    - 0.001 * entropy.mean())
            opt.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(policy.parameters(), 0.5)
            opt.step()
            updates += 1
    print(f"iter {it} return {returns.mean():.3f} loss {loss.item():.3f} "
          f"{(time.time() - start) / updates * 1e3:.1f} ms/update", flush=True)
print(f"total {time.time() - start:.1f} s")
