"""Classifies rows of a table."""

# mypy: ignore-errors

import argparse

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn


class Net(nn.Module):
    def __init__(self, features, width, classes):
        super().__init__()
        self.fc1 = nn.Linear(features, width)
        self.fc2 = nn.Linear(width, width)
        self.fc3 = nn.Linear(width, classes)

    def forward(self, x):
        x = F.relu(self.fc1(x))
        x = F.relu(self.fc2(x))
        return self.fc3(x)


def make_data(rows, features, classes, seed):
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((rows, features)).astype(np.float32)
    y = np.argmax(x @ rng.standard_normal((features, classes)), axis=1)
    return torch.from_numpy(x), torch.from_numpy(y)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=2000)
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--width", type=int, default=512)
    parser.add_argument("--lr", type=float, default=1e-3)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()

    torch.manual_seed(args.seed)
    x, y = make_data(16384, 128, 10, args.seed)
    model = Net(128, args.width, 10)
    optimizer = torch.optim.Adam(model.parameters(), lr=args.lr, fused=True)

    for epoch in range(args.epochs):
        total = 0.0
        order = torch.randperm(len(x))
        for begin in range(0, len(x), args.batch):
            index = order[begin : begin + args.batch]
            xb, yb = x[index], y[index]
            optimizer.zero_grad()
            loss = F.cross_entropy(model(xb), yb)
            loss.backward()
            optimizer.step()
            total += loss.item()
        print(f"epoch {epoch}: loss {total * args.batch / len(x):.4f}", flush=True)


if __name__ == "__main__":
    main()
