"""Compute fingerprints of many molecules and fit a linear energy model on them."""
import time

import torch

torch.manual_seed(5)

STRUCTURES = 1800
ATOMS = 12
WIDTH = 400


def fingerprint(positions, centers, widths):
    d = torch.cdist(positions, positions)
    cutoff = 0.5 * (torch.cos(torch.pi * d.clamp(max=6.0) / 6.0) + 1)
    g = torch.exp(-widths * (d.unsqueeze(-1) - centers) ** 2) * cutoff.unsqueeze(-1)
    return g.sum(1)


def load_structures():
    for i in range(STRUCTURES):
        positions = torch.rand(ATOMS, 3) * 6
        energy = -positions.var().item() + 0.1 * positions.norm(dim=1).mean().item()
        yield positions, energy


centers = torch.linspace(0.5, 6.0, WIDTH)
widths = torch.full((WIDTH,), 4.0)

features = []
owner = []
energies = []
start = time.time()
for i, (positions, energy) in enumerate(load_structures()):
    fp = fingerprint(positions, centers, widths)
    features.append(fp)
    owner.append(torch.full((len(fp),), i))
    energies.append(energy)
    if (i + 1) % 500 == 0:
        print(f"{i + 1} structures, {time.time() - start:.1f}s")

features = torch.cat(features)
owner = torch.cat(owner)
target = torch.tensor(energies)
pooled = torch.zeros(STRUCTURES, WIDTH).index_add_(0, owner, features)
pooled = (pooled - pooled.mean(0)) / (pooled.std(0) + 1e-6)
weight = torch.zeros(WIDTH, requires_grad=True)
optimizer = torch.optim.Adam([weight], lr=1e-2)
for epoch in range(100):
    optimizer.zero_grad()
    loss = ((pooled @ weight - (target - target.mean())) ** 2).mean()
    loss.backward()
    optimizer.step()
print(f"final mse {loss.item():.5f}, total {time.time() - start:.1f}s")
