"""The same CNN on the same pictures, prepared once and indexed by whole batches."""

import argparse

import torch
from mnist_dataset import Pictures, make_model
from torch import nn


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=41)
    args = parser.parse_args()
    torch.manual_seed(0)
    data = Pictures(10_000)
    x = (data.pictures.unsqueeze(1).float().div(255) - 0.1307) / 0.3081
    y = data.labels
    model = make_model()
    optimizer = torch.optim.RMSprop(model.parameters(), lr=1e-4)
    for epoch in range(args.epochs):
        order = torch.randperm(len(y))
        for first in range(0, len(y), 256):
            rows = order[first : first + 256]
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(x[rows]), y[rows])
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch}: loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
