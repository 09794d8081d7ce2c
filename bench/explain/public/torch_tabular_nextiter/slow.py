"""Fit an MLP on a large table of sensor readings, counted in iterations instead of epochs."""
import time

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
rng = np.random.default_rng(0)

N_ROWS = 400_000
N_FEATURES = 24
N_CLASSES = 4
BATCH = 128
ITERATIONS = 600


def make_table(n_rows):
    x = rng.standard_normal((n_rows, N_FEATURES), dtype=np.float32)
    w = rng.standard_normal((N_FEATURES, N_CLASSES), dtype=np.float32)
    logits = np.tanh(x) @ w + 0.5 * rng.standard_normal((n_rows, N_CLASSES), dtype=np.float32)
    return torch.from_numpy(x), torch.from_numpy(logits.argmax(1))


class TabularNet(nn.Module):
    def __init__(self, hidden=128):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(N_FEATURES, hidden),
            nn.BatchNorm1d(hidden),
            nn.ReLU(),
            nn.Linear(hidden, hidden),
            nn.BatchNorm1d(hidden),
            nn.ReLU(),
            nn.Dropout(0.1),
            nn.Linear(hidden, N_CLASSES),
        )

    def forward(self, x):
        return self.net(x)


@torch.no_grad()
def accuracy(model, x, y):
    model.eval()
    hits = (model(x).argmax(1) == y).float().mean().item()
    model.train()
    return hits


def main():
    x, y = make_table(N_ROWS + 4096)
    train_set = TensorDataset(x[:N_ROWS], y[:N_ROWS])
    x_val, y_val = x[N_ROWS:], y[N_ROWS:]
    train_loader = DataLoader(train_set, batch_size=BATCH, shuffle=True, drop_last=True)

    model = TabularNet()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=1e-4)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, ITERATIONS)

    running = 0.0
    start = time.time()
    for it in range(1, ITERATIONS + 1):
        features, target = next(iter(train_loader))
        optimizer.zero_grad()
        loss = F.cross_entropy(model(features), target)
        loss.backward()
        optimizer.step()
        scheduler.step()
        running += loss.item()
        if it % 50 == 0:
            acc = accuracy(model, x_val, y_val)
            print(f"iter {it:5d}  loss {running / 50:.4f}  val acc {acc:.3f}  {time.time() - start:.1f}s", flush=True)
            running = 0.0
    print("done", round(time.time() - start, 1), "s")


if __name__ == "__main__":
    main()
