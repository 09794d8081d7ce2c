"""Train a deep narrow network while keeping an exponential moving average of its weights."""
import copy
import time

import torch
import torch.nn as nn

torch.manual_seed(8)

WIDTH, DEPTH = 16, 60
BATCH = 16
STEPS = 800


class Residual(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(WIDTH, WIDTH, bias=False), nn.BatchNorm1d(WIDTH), nn.SiLU())

    def forward(self, x):
        return x + 0.3 * self.body(x)


class ModelEMA:
    def __init__(self, model, decay=0.9995):
        self.ema = copy.deepcopy(model).eval()
        self.decay = decay
        for p in self.ema.parameters():
            p.requires_grad_(False)
        msd = model.state_dict()
        pairs = [(v, msd[k]) for k, v in self.ema.state_dict().items() if v.dtype.is_floating_point]
        self.shadow = [a for a, _ in pairs]
        self.source = [b for _, b in pairs]

    @torch.no_grad()
    def update(self):
        torch._foreach_lerp_(self.shadow, self.source, 1 - self.decay)


model = nn.Sequential(nn.Linear(8, WIDTH), *[Residual() for _ in range(DEPTH)], nn.Linear(WIDTH, 1))
ema = ModelEMA(model)
optimizer = torch.optim.SGD(model.parameters(), lr=0.005, foreach=True)

start = time.time()
for step in range(1, STEPS + 1):
    x = torch.randn(BATCH, 8)
    y = torch.sin(x.sum(1, keepdim=True))
    loss = nn.functional.mse_loss(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    ema.update()
    if step % 200 == 0:
        with torch.no_grad():
            val = nn.functional.mse_loss(ema.ema(x), y)
        print(f"step {step} loss {loss.item():.4f} ema loss {val.item():.4f} {time.time() - start:.1f}s")
