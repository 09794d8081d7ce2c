"""Fine-tune a wide MLP ranker on small batches."""
import time

import torch
import torch.nn as nn

torch.manual_seed(71)

WIDTH, BATCH = 2048, 4
STEPS = 130

model = nn.Sequential(
    nn.Linear(512, WIDTH), nn.GELU(),
    nn.Linear(WIDTH, WIDTH), nn.GELU(),
    nn.Linear(WIDTH, WIDTH), nn.GELU(),
    nn.Linear(WIDTH, WIDTH), nn.GELU(),
    nn.Linear(WIDTH, 1),
)
print(f"{sum(p.numel() for p in model.parameters()) / 1e6:.1f}M parameters")

optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, weight_decay=0.01)
warmup = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda s: min(1.0, (s + 1) / 10))
direction = torch.randn(512) / 512 ** 0.5


def pair_batch():
    better = torch.randn(BATCH, 512)
    worse = better - 0.5 * torch.rand(BATCH, 1) * direction * 512 ** 0.5
    return better, worse


start = time.time()
hits = 0
for step in range(1, STEPS + 1):
    better, worse = pair_batch()
    scores = model(torch.cat([better, worse]))
    margin = scores[:BATCH] - scores[BATCH:]
    loss = nn.functional.softplus(-margin).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    warmup.step()
    hits += (margin > 0).sum().item()
    if step % 10 == 0:
        print(f"step {step} loss {loss.item():.4f} pairs right {hits / (step * BATCH):.3f} "
              f"{time.time() - start:.1f}s")
