"""Classifies small pictures with a convolutional network."""

# mypy: ignore-errors

import argparse

import numpy as np
import torch
from torch import nn


def block(inputs, outputs):
    return nn.Sequential(
        nn.Conv2d(inputs, outputs, 3, padding=1, bias=False),
        nn.BatchNorm2d(outputs),
        nn.ReLU(),
        nn.MaxPool2d(2),
    )


def build():
    return nn.Sequential(
        block(3, 32),
        block(32, 64),
        block(64, 64),
        nn.Flatten(),
        nn.Linear(64 * 4 * 4, 10),
    )


def pictures(count, seed):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 10, count)
    x = rng.standard_normal((count, 3, 32, 32)) + y[:, None, None, None] / 5
    return torch.tensor(x, dtype=torch.float32), torch.tensor(y)


def train_epoch(model, optimizer, criterion, images, labels, batch):
    model.train()
    losses = []
    order = torch.randperm(len(images))
    for i in range(len(images) // batch):
        rows = order[i * batch : (i + 1) * batch]
        output = model(images[rows])
        loss = criterion(output, labels[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return sum(losses) / len(losses)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=1000)
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--lr", type=float, default=0.01)
    args = parser.parse_args()

    torch.manual_seed(1)
    images, labels = pictures(1024, seed=1)
    images = images.to(memory_format=torch.channels_last)
    model = build().to(memory_format=torch.channels_last)
    optimizer = torch.optim.SGD(
        model.parameters(), lr=args.lr, momentum=0.9, fused=True
    )
    criterion = nn.CrossEntropyLoss()
    for epoch in range(args.epochs):
        loss = train_epoch(model, optimizer, criterion, images, labels, args.batch_size)
        print(f"epoch {epoch}: loss {loss:.4f}", flush=True)


if __name__ == "__main__":
    main()
