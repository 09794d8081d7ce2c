"""Binary classifier on a small synthetic table held in memory."""
import time

import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset

N = 20_000
EPOCHS = 4


class PointsDataset(Dataset):
    def __init__(self):
        gen = torch.Generator().manual_seed(0)
        self.x = torch.randn(N, 2, generator=gen)
        self.y = ((self.x ** 2).sum(1) > 1.4).float()

    def __len__(self):
        return N

    def __getitem__(self, i):
        return self.x[i], self.y[i]


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(2, 16), nn.ReLU(), nn.Linear(16, 1))

    def forward(self, x):
        return self.layers(x).squeeze(1)


def main():
    torch.manual_seed(0)
    loader = DataLoader(PointsDataset(), batch_size=8, shuffle=True)
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    loss_fn = nn.BCEWithLogitsLoss()
    for epoch in range(EPOCHS):
        t0 = time.time()
        hits, total = 0, 0.0
        for x, y in loader:
            logits = model(x)
            loss = loss_fn(logits, y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
            hits += ((logits > 0).float() == y).sum().item()
        print(f"epoch {epoch}: loss {total / len(loader):.4f} "
              f"acc {hits / N:.3f} time {time.time() - t0:.1f}s")


if __name__ == "__main__":
    main()
