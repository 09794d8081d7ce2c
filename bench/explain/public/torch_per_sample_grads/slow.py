"""Differentially private SGD: clip the gradient of each example, then average and add noise."""
import time

import torch
import torch.nn as nn

torch.manual_seed(67)

FEATURES, CLASSES, BATCH = 40, 10, 64
CLIP, NOISE, LR = 1.0, 0.4, 0.2
STEPS = 1200

model = nn.Sequential(nn.Linear(FEATURES, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(),
                      nn.Linear(64, CLASSES))
params = list(model.parameters())
true_w = torch.randn(FEATURES, CLASSES)


def sample_gradients(x, y):
    collected = [[] for _ in params]
    for i in range(len(x)):
        loss = nn.functional.cross_entropy(model(x[i:i + 1]), y[i:i + 1])
        grads = torch.autograd.grad(loss, params)
        for bucket, g in zip(collected, grads):
            bucket.append(g)
    return [torch.stack(bucket) for bucket in collected]


def private_step(x, y):
    per_sample = sample_gradients(x, y)
    norms = torch.stack([g.flatten(1).norm(dim=1) for g in per_sample]).norm(dim=0)
    scale = (CLIP / (norms + 1e-6)).clamp(max=1.0)
    with torch.no_grad():
        for p, g in zip(params, per_sample):
            clipped = torch.tensordot(scale, g, dims=1)
            p -= LR * (clipped + NOISE * CLIP * torch.randn_like(p)) / len(x)
    return norms.mean().item()


start = time.time()
for step in range(1, STEPS + 1):
    x = torch.randn(BATCH, FEATURES)
    y = (x @ true_w).argmax(1)
    norm = private_step(x, y)
    if step % 200 == 0:
        with torch.no_grad():
            acc = (model(x).argmax(1) == y).float().mean().item()
        print(f"step {step} acc {acc:.3f} mean grad norm {norm:.3f} {time.time() - start:.1f}s")
