"""Recurrent network with weight-normalised layers on a long-memory adding task."""
import time

import torch
import torch.nn as nn
from torch.nn.utils.parametrizations import weight_norm

torch.manual_seed(53)

HIDDEN, LENGTH, BATCH = 384, 60, 8
STEPS = 350


class WeightNormRNN(nn.Module):
    def __init__(self):
        super().__init__()
        self.inp = weight_norm(nn.Linear(2, HIDDEN))
        self.rec = weight_norm(nn.Linear(HIDDEN, HIDDEN))
        self.head = nn.Linear(HIDDEN, 1)
        with torch.no_grad():
            self.rec.parametrizations.weight.original0.fill_(0.9)

    def forward(self, x):
        h = torch.zeros(x.size(1), HIDDEN)
        for t in range(x.size(0)):
            h = torch.tanh(self.inp(x[t]) + self.rec(h))
        return self.head(h)


def adding_batch():
    values = torch.rand(LENGTH, BATCH, 1)
    marks = torch.zeros(LENGTH, BATCH, 1)
    first = torch.randint(0, LENGTH // 2, (BATCH,))
    second = torch.randint(LENGTH // 2, LENGTH, (BATCH,))
    cols = torch.arange(BATCH)
    marks[first, cols] = 1.0
    marks[second, cols] = 1.0
    return torch.cat([values, marks], 2), (values * marks).sum(0)


model = WeightNormRNN()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)


def train_step():
    x, y = adding_batch()
    loss = nn.functional.mse_loss(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


start = time.time()
for step in range(1, STEPS + 1):
    loss = train_step()
    if step % 50 == 0:
        print(f"step {step} mse {loss:.4f} {time.time() - start:.1f}s")
