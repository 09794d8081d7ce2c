"""A small transformer that classifies sequences."""

# mypy: ignore-errors

import argparse

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm1 = nn.LayerNorm(width)
        self.qkv = nn.Linear(width, 3 * width)
        self.project = nn.Linear(width, width)
        self.norm2 = nn.LayerNorm(width)
        self.up = nn.Linear(width, 2 * width)
        self.down = nn.Linear(2 * width, width)

    def attend(self, x):
        n, t, c = x.shape
        q, k, v = self.qkv(x).view(n, t, 3, self.heads, c // self.heads).unbind(2)
        q, k, v = q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2)
        out = F.scaled_dot_product_attention(q, k, v)
        return self.project(out.transpose(1, 2).reshape(n, t, c))

    def forward(self, x):
        x = x + self.attend(self.norm1(x))
        return x + self.down(F.gelu(self.up(self.norm2(x))))


class Encoder(nn.Module):
    def __init__(self, vocabulary=500, width=64, depth=4, heads=4, classes=4):
        super().__init__()
        self.tokens = nn.Embedding(vocabulary, width)
        self.places = nn.Parameter(torch.zeros(16, width))
        self.blocks = nn.ModuleList([Block(width, heads) for _ in range(depth)])
        self.out = nn.Linear(width, classes)

    def forward(self, x):
        x = self.tokens(x) + self.places
        for block in self.blocks:
            x = block(x)
        return self.out(x.mean(1))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=1000)
    parser.add_argument("--batch", type=int, default=8)
    args = parser.parse_args()

    torch.manual_seed(0)
    rng = np.random.default_rng(0)
    texts = torch.from_numpy(rng.integers(0, 500, (800, 16)))
    labels = torch.from_numpy(rng.integers(0, 4, 800))
    model = Encoder()
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, fused=True)
    step = 0
    for epoch in range(args.epochs):
        for begin in range(0, len(texts), args.batch):
            x = texts[begin : begin + args.batch]
            y = labels[begin : begin + args.batch]
            loss = F.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            step += 1
        print(f"epoch {epoch}: loss {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()
