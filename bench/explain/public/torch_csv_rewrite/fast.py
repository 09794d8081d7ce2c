"""Small regression run that records its metrics in a CSV file."""
import csv
import os
import tempfile
import time

import torch
import torch.nn as nn

torch.manual_seed(61)

STEPS = 2200


class CSVLogger:
    def __init__(self, directory):
        self.path = os.path.join(directory, "metrics.csv")

    def log_metrics(self, values, step):
        row = {"step": step}
        row.update(values)
        self.save(row)

    def save(self, row):
        new = not os.path.exists(self.path)
        with open(self.path, "a", newline="") as f:
            writer = csv.DictWriter(f, fieldnames=list(row))
            if new:
                writer.writeheader()
            writer.writerow(row)


model = nn.Sequential(nn.Linear(10, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.9997)

with tempfile.TemporaryDirectory() as directory:
    logger = CSVLogger(directory)
    start = time.time()
    for step in range(1, STEPS + 1):
        x = torch.rand(64, 10)
        y = (x ** 2).sum(1, keepdim=True)
        pred = model(x)
        loss = nn.functional.mse_loss(pred, y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        scheduler.step()
        logger.log_metrics({
            "loss": loss.item(),
            "mae": (pred - y).abs().mean().item(),
            "lr": scheduler.get_last_lr()[0],
            "elapsed": time.time() - start,
        }, step)
        if step % 500 == 0:
            print(f"step {step} loss {loss.item():.5f} {time.time() - start:.1f}s "
                  f"log {os.path.getsize(logger.path) // 1024} KiB")
