"""Regression with low-rank layers."""
import time

import torch
import torch.nn as nn

torch.manual_seed(41)

WIDTH, RANK, BATCH = 1536, 24, 32
STEPS = 400


class LowRankLinear(nn.Module):
    def __init__(self, inp, out, rank):
        super().__init__()
        self.up = nn.Parameter(torch.randn(out, rank) / rank ** 0.5)
        self.down = nn.Parameter(torch.randn(rank, inp) / inp ** 0.5)
        self.bias = nn.Parameter(torch.zeros(out))

    def project(self, x):
        inner = torch.einsum("ri,bi->br", self.down, x)
        return torch.einsum("or,br->bo", self.up, inner)

    def forward(self, x):
        return self.project(x) + self.bias


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([
            LowRankLinear(256, WIDTH, RANK),
            LowRankLinear(WIDTH, WIDTH, RANK),
            LowRankLinear(WIDTH, WIDTH, RANK),
        ])
        self.head = nn.Linear(WIDTH, 1)

    def forward(self, x):
        for layer in self.layers:
            x = torch.tanh(layer(x))
        return self.head(x)


model = Model()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
print("parameters:", sum(p.numel() for p in model.parameters()))

coef = torch.randn(256) / 16
start = time.time()
for step in range(1, STEPS + 1):
    x = torch.randn(BATCH, 256)
    y = torch.sin(x @ coef).unsqueeze(1)
    loss = nn.functional.mse_loss(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    if step % 50 == 0:
        print(f"step {step}: mse {loss.item():.4f} {time.time() - start:.1f}s")
