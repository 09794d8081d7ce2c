"""Horizon detection in synthetic seismic cubes with a small conv net."""
import time

import numpy as np
import torch
import torch.nn as nn

np.random.seed(73)
torch.manual_seed(73)

CROP, BATCH = 64, 8
STEPS = 30


def make_cube(lines=40, width=200, depth=200):
    cube = np.random.normal(0, 0.3, (lines, width, depth))
    surface = 100 + 30 * np.sin(np.arange(width) / 25.0)[None, :] + np.arange(lines)[:, None]
    index = np.arange(depth)[None, None, :]
    ridge = np.exp(-0.5 * ((index - surface[:, :, None]) / 2.0) ** 2)
    return (cube + ridge).astype(np.float32), (ridge > 0.6).astype(np.float32)


def crops(cube, mask):
    xs, ys = [], []
    for _ in range(BATCH):
        i = np.random.randint(cube.shape[0])
        j = np.random.randint(cube.shape[1] - CROP)
        k = np.random.randint(cube.shape[2] - CROP)
        xs.append(cube[i, j:j + CROP, k:k + CROP])
        ys.append(mask[i, j:j + CROP, k:k + CROP])
    return np.stack(xs)[:, None], np.stack(ys)[:, None]


class SegmentationNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv2d(1, 24, 5, padding=2), nn.ReLU(),
            nn.Conv2d(24, 32, 5, padding=2), nn.ReLU(),
            nn.Conv2d(32, 24, 5, padding=2), nn.ReLU(),
            nn.Conv2d(24, 1, 1),
        )

    def forward(self, x):
        return self.layers(x)


cube, mask = make_cube()
model = SegmentationNet()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
loss_fn = nn.BCEWithLogitsLoss()

start = time.time()
for step in range(1, STEPS + 1):
    x, y = crops(cube, mask)
    loss = loss_fn(model(torch.from_numpy(x)), torch.from_numpy(y))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 10 == 0:
        print(f"step {step} loss {loss.item():.4f} {time.time() - start:.1f}s")
