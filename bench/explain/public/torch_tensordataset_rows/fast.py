"""Tabular click prediction: small MLP on a table that fits in memory."""
import time

import torch
import torch.nn as nn

torch.manual_seed(0)

ROWS, FEATURES = 200_000, 24
EPOCHS = 10

w_true = torch.randn(FEATURES)
x = torch.randn(ROWS, FEATURES)
y = (torch.sigmoid(x @ w_true + 0.3 * (x[:, 0] * x[:, 1])) > torch.rand(ROWS)).float()


def batches():
    for idx in torch.randperm(ROWS).split(1024):
        yield x[idx], y[idx]


model = nn.Sequential(
    nn.Linear(FEATURES, 64), nn.ReLU(),
    nn.Linear(64, 32), nn.ReLU(),
    nn.Linear(32, 1),
)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
loss_fn = nn.BCEWithLogitsLoss()

for epoch in range(EPOCHS):
    t0 = time.time()
    total, correct = 0.0, 0
    for xb, yb in batches():
        logits = model(xb).squeeze(1)
        loss = loss_fn(logits, yb)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() * len(xb)
        correct += ((logits > 0) == (yb > 0.5)).sum().item()
    print(f"epoch {epoch}: loss {total / ROWS:.4f} acc {correct / ROWS:.4f} ({time.time() - t0:.1f}s)")
