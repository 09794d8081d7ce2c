"""Forecast a long multivariate series chunk by chunk with a stateful LSTM."""
import time

import torch
import torch.nn as nn

torch.manual_seed(14)

SERIES, FEATURES, HIDDEN = 16, 8, 64
CHUNK, CHUNKS = 20, 40
EPOCHS = 30


def make_series():
    t = torch.arange(CHUNK * CHUNKS + 1) / 10.0
    phase = torch.rand(SERIES, 1, FEATURES) * 6.28
    speed = 0.5 + torch.rand(SERIES, 1, FEATURES)
    clean = torch.sin(speed * t[None, :, None] + phase)
    return clean + 0.05 * torch.randn_like(clean)


class Forecaster(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(FEATURES, HIDDEN, batch_first=True)
        self.head = nn.Linear(HIDDEN, FEATURES)

    def forward(self, x, state):
        out, state = self.lstm(x, state)
        return self.head(out), state


series = make_series()
model = Forecaster()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)

for epoch in range(EPOCHS):
    start = time.time()
    optimizer.zero_grad()
    state = None
    total = 0.0
    for c in range(CHUNKS):
        lo, hi = c * CHUNK, (c + 1) * CHUNK
        prediction, state = model(series[:, lo:hi], state)
        loss = nn.functional.mse_loss(prediction, series[:, lo + 1:hi + 1]) / CHUNKS
        loss.backward()
        state = tuple(s.detach() for s in state)
        total += loss.item()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    print(f"epoch {epoch}: loss {total:.4f} ({time.time() - start:.1f}s)")
