"""Classify sensor recordings from random windows cut out of long signals."""
import numpy as np
import torch
import torch.nn as nn

rng = np.random.default_rng(7)
torch.manual_seed(7)

CHANNELS = 6
WINDOW = 400
CLASSES = 5
BATCH = 64
STEPS = 700


def make_recordings(n=40, length=20_000):
    recordings, labels = [], []
    t = np.arange(length) / 100.0
    for i in range(n):
        label = i % CLASSES
        base = np.sin((0.5 + label) * t)[None, :] * rng.uniform(0.5, 1.5, (CHANNELS, 1))
        noise = rng.normal(0, 0.8, (CHANNELS, length))
        recordings.append((base + noise).astype(np.float32))
        labels.append(label)
    return recordings, labels


def draw_batch(recordings, labels):
    windows, targets = [], []
    for _ in range(BATCH):
        i = rng.integers(len(recordings))
        start = rng.integers(recordings[i].shape[1] - WINDOW)
        windows.append(recordings[i][:, start:start + WINDOW])
        targets.append(labels[i])
    xb = torch.tensor(np.stack(windows), dtype=torch.float32)
    yb = torch.tensor(targets)
    return xb, yb


model = nn.Sequential(
    nn.Conv1d(CHANNELS, 16, 9, stride=4), nn.ReLU(),
    nn.Conv1d(16, 32, 9, stride=4), nn.ReLU(),
    nn.AdaptiveAvgPool1d(1), nn.Flatten(), nn.Linear(32, CLASSES),
)
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
loss_fn = nn.CrossEntropyLoss()

recordings, labels = make_recordings()
for step in range(1, STEPS + 1):
    xb, yb = draw_batch(recordings, labels)
    logits = model(xb)
    loss = loss_fn(logits, yb)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 100 == 0:
        acc = (logits.argmax(1) == yb).float().mean()
        print(f"step {step}: loss {loss.item():.4f} acc {acc.item():.3f}")
