"""Message passing on a random graph, to classify its nodes."""

# mypy: ignore-errors

import argparse

import torch
import torch.nn.functional as F
from torch import nn


class Layer(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.own = nn.Linear(width, width)
        self.neighbours = nn.Linear(width, width)

    def forward(self, h, source, target):
        messages = self.neighbours(h)[source]
        total = torch.zeros_like(h).index_add_(0, target, messages)
        return F.relu(self.own(h) + total)


class GraphNet(nn.Module):
    def __init__(self, width=32, classes=5):
        super().__init__()
        self.layers = nn.ModuleList([Layer(width) for _ in range(2)])
        self.out = nn.Linear(width, classes)

    def forward(self, h, source, target):
        for layer in self.layers:
            h = layer(h, source, target)
        return self.out(h)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=1000)
    parser.add_argument("--nodes", type=int, default=2000)
    parser.add_argument("--edges", type=int, default=10000)
    args = parser.parse_args()
    torch.manual_seed(0)

    features = torch.randn(args.nodes, 32)
    source = torch.randint(0, args.nodes, (args.edges,))
    target = torch.randint(0, args.nodes, (args.edges,))
    labels = torch.randint(0, 5, (args.nodes,))
    net = GraphNet()
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-3, fused=True)
    for epoch in range(args.epochs):
        for _ in range(100):
            optimizer.zero_grad()
            loss = F.cross_entropy(net(features, source, target), labels)
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch}: loss {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()
