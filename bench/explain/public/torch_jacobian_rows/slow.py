"""Sensitivity study: average Jacobian norm of a surrogate model over many operating points."""
import time

import torch
import torch.nn as nn
from torch.autograd.functional import jacobian

torch.manual_seed(29)

INPUTS, OUTPUTS = 24, 200
POINTS = 700

net = nn.Sequential(
    nn.Linear(INPUTS, 128), nn.Tanh(),
    nn.Linear(128, 128), nn.Tanh(),
    nn.Linear(128, OUTPUTS),
)


def train_surrogate(steps=300):
    mix = torch.randn(INPUTS, OUTPUTS) / INPUTS ** 0.5
    optimizer = torch.optim.Adam(net.parameters(), lr=2e-3)
    for _ in range(steps):
        x = torch.rand(256, INPUTS) * 2 - 1
        y = torch.sin(3 * x @ mix)
        loss = nn.functional.mse_loss(net(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"surrogate mse {loss.item():.4f}")


train_surrogate()
net.requires_grad_(False)

importance = torch.zeros(INPUTS)
stiffness = []
start = time.time()
for i in range(1, POINTS + 1):
    x = torch.rand(INPUTS) * 2 - 1
    jac = jacobian(net, x)
    importance += jac.abs().sum(0)
    stiffness.append(torch.linalg.matrix_norm(jac).item())
    if i % 100 == 0:
        print(f"{i} points, {time.time() - start:.1f}s")

ranking = (importance / POINTS).argsort(descending=True)
print("most important inputs:", ranking[:5].tolist())
print(f"mean Jacobian norm {sum(stiffness) / len(stiffness):.3f}")
