"""Linear probing of an EEG-like convolutional encoder."""
import time

import torch
import torch.nn as nn

torch.manual_seed(37)

CHANNELS, SAMPLES, CLASSES = 19, 512, 4
BATCH = 32
STEPS = 140

backbone = nn.Sequential(
    nn.Conv1d(CHANNELS, 64, 15, padding=7), nn.GELU(), nn.MaxPool1d(2),
    nn.Conv1d(64, 96, 11, padding=5), nn.GELU(), nn.MaxPool1d(2),
    nn.Conv1d(96, 128, 7, padding=3), nn.GELU(), nn.MaxPool1d(2),
    nn.Conv1d(128, 128, 5, padding=2), nn.GELU(),
    nn.AdaptiveAvgPool1d(4), nn.Flatten(),
)
head = nn.Linear(128 * 4, CLASSES)

backbone.eval()
optimizer = torch.optim.AdamW(head.parameters(), lr=1e-3, weight_decay=0.01)
criterion = nn.CrossEntropyLoss()


def recordings():
    labels = torch.randint(0, CLASSES, (BATCH,))
    t = torch.arange(SAMPLES) / 128.0
    rhythm = torch.sin(2 * torch.pi * (4 + 5 * labels[:, None, None]) * t)
    mixing = torch.rand(BATCH, CHANNELS, 1)
    return mixing * rhythm + 0.7 * torch.randn(BATCH, CHANNELS, SAMPLES), labels


start = time.time()
seen, correct = 0, 0
for step in range(1, STEPS + 1):
    x, y = recordings()
    with torch.no_grad():
        features = backbone(x)
    logits = head(features)
    loss = criterion(logits, y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

    seen += BATCH
    correct += (logits.argmax(1) == y).sum().item()
    if step % 20 == 0:
        print(f"step {step} loss {loss.item():.3f} acc {correct / seen:.3f} {time.time() - start:.1f}s")
