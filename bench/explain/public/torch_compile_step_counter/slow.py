"""Gated regression net whose gate temperature is annealed during training (compiled)."""
import os
import tempfile
import time

# several jobs share this account: keep compiler output of each run apart
scratch = tempfile.TemporaryDirectory(prefix="compile-")
os.environ["TORCHINDUCTOR_CACHE_DIR"] = scratch.name

import torch
import torch.nn as nn

torch.manual_seed(83)

FEATURES, HIDDEN, BATCH = 32, 64, 128
STEPS = 400


class AnnealedGate(nn.Module):
    def __init__(self):
        super().__init__()
        self.step = 0
        self.value = nn.Sequential(nn.Linear(FEATURES, HIDDEN), nn.GELU(), nn.Linear(HIDDEN, HIDDEN))
        self.gate = nn.Linear(FEATURES, HIDDEN)
        self.out = nn.Linear(HIDDEN, 1)

    def forward(self, x):
        self.step += 1
        temperature = 0.2 + 1.0 / (1.0 + 0.01 * self.step)
        gate = torch.sigmoid(self.gate(x) / temperature)
        return self.out(gate * self.value(x))


model = AnnealedGate()
net = torch.compile(model)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)

coef = torch.randn(FEATURES) / FEATURES ** 0.5
start = time.time()
for step in range(1, STEPS + 1):
    x = torch.randn(BATCH, FEATURES)
    y = torch.where(x[:, :1] > 0, torch.sin(2 * x @ coef).unsqueeze(1), x[:, 1:2])
    loss = nn.functional.mse_loss(net(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step in (1, 5, 10) or step % 100 == 0:
        print(f"step {step} mse {loss.item():.4f} {time.time() - start:.1f}s", flush=True)
