"""The same MLP with PyTorch, as the same article timed it; its outputs are logits."""

import argparse
import time

import numpy as np
import torch
from torch import nn


def make_model(deep: bool) -> nn.Module:
    if deep:
        return nn.Sequential(
            nn.Linear(100, 256),
            nn.ReLU(),
            nn.BatchNorm1d(256),
            nn.Dropout(0.5),
            nn.Linear(256, 128),
            nn.ReLU(),
            nn.BatchNorm1d(128),
            nn.Dropout(0.5),
            nn.Linear(128, 10),
        )
    return nn.Sequential(nn.Linear(100, 128), nn.ReLU(), nn.Linear(128, 10))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--deep", action="store_true")
    parser.add_argument("--epochs", type=int, default=10)
    args = parser.parse_args()
    torch.manual_seed(0)
    rng = np.random.default_rng(0)
    x = torch.tensor(rng.standard_normal((1000, 100)), dtype=torch.float32)
    y = torch.tensor(rng.integers(0, 10, 1000))
    model = make_model(args.deep)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    loss_of = nn.CrossEntropyLoss()
    begin = time.perf_counter()
    for _ in range(args.epochs):
        optimizer.zero_grad()
        loss = loss_of(model(x), y)
        loss.backward()
        optimizer.step()
    print(f"{time.perf_counter() - begin:.3f} s, loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
