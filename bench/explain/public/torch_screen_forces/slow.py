"""Screen a large batch of candidate structures with a small neural interatomic potential and keep the most stable ones."""
import time

import numpy as np
import torch
import torch.nn as nn

N_STRUCTURES = 48000
N_ATOMS = 16
N_SPECIES = 4
BATCH = 32
KEEP = 10


class Potential(nn.Module):
    def __init__(self, dim=48, n_rbf=24, n_layers=3, cutoff=5.0):
        super().__init__()
        self.cutoff = cutoff
        self.register_buffer("centers", torch.linspace(0.5, cutoff, n_rbf))
        self.embed = nn.Embedding(N_SPECIES, dim)
        self.filters = nn.ModuleList(
            nn.Sequential(nn.Linear(n_rbf, dim), nn.SiLU(), nn.Linear(dim, dim)) for _ in range(n_layers)
        )
        self.updates = nn.ModuleList(
            nn.Sequential(nn.Linear(dim, dim), nn.SiLU(), nn.Linear(dim, dim)) for _ in range(n_layers)
        )
        self.readout = nn.Sequential(nn.Linear(dim, 32), nn.SiLU(), nn.Linear(32, 1))
        self.register_buffer("pair_mask", 1.0 - torch.eye(N_ATOMS))

    def energy(self, species, positions):
        diff = positions.unsqueeze(2) - positions.unsqueeze(1)
        dist = (diff.pow(2).sum(-1) + 1e-6).sqrt()
        rbf = torch.exp(-4.0 * (dist.unsqueeze(-1) - self.centers) ** 2)
        envelope = 0.5 * (torch.cos(np.pi * dist.clamp(max=self.cutoff) / self.cutoff) + 1.0) * self.pair_mask
        h = self.embed(species)
        for filt, update in zip(self.filters, self.updates):
            weights = filt(rbf) * envelope.unsqueeze(-1)
            h = h + update((weights * h.unsqueeze(1)).sum(2))
        return self.readout(h).sum(dim=(1, 2))

    def forward(self, species, positions):
        positions = positions.requires_grad_(True)
        energy = self.energy(species, positions)
        forces = -torch.autograd.grad(energy.sum(), positions, create_graph=True)[0]
        return {"energy": energy, "forces": forces}


def make_structures(seed=7):
    rng = np.random.default_rng(seed)
    grid = np.stack(np.meshgrid(range(4), range(2), range(2), indexing="ij"), -1).reshape(-1, 3) * 1.8
    positions = grid[None] + 0.25 * rng.standard_normal((N_STRUCTURES, N_ATOMS, 3))
    species = rng.integers(0, N_SPECIES, (N_STRUCTURES, N_ATOMS))
    return torch.from_numpy(species), torch.from_numpy(positions.astype(np.float32))


def screen(model, species, positions):
    energies = []
    start = time.time()
    for i in range(0, N_STRUCTURES, BATCH):
        out = model(species[i:i + BATCH], positions[i:i + BATCH])
        energies.append(out["energy"].detach() / N_ATOMS)
        if (i // BATCH + 1) % 100 == 0:
            done = i + BATCH
            mean = torch.cat(energies).mean().item()
            print(f"{done:6d} structures, mean energy {mean:+.4f} per atom, {time.time() - start:.1f}s", flush=True)
    return torch.cat(energies)


def main():
    torch.manual_seed(0)
    model = Potential().eval()
    species, positions = make_structures()
    energies = screen(model, species, positions)
    best = energies.argsort()[:KEEP]
    print("most stable candidates:")
    for idx in best.tolist():
        print(f"  structure {idx:5d}  {energies[idx].item():+.5f}")


if __name__ == "__main__":
    main()
