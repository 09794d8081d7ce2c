"""Train an illuminant estimator on random patches cut out of large stored images."""
import os
import tempfile
import time

import numpy as np
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset

torch.manual_seed(27)
rng = np.random.default_rng(27)

IMAGES, HEIGHT, WIDTH, PATCH = 6, 2000, 3000, 44
EPOCHS, ITEMS, BATCH = 16, 320, 16
folder = tempfile.mkdtemp(prefix="illuminant_")


def make_images():
    light = rng.uniform(0.4, 1.0, (IMAGES, 3)).astype(np.float32)
    for i in range(IMAGES):
        image = rng.integers(0, 256, (HEIGHT, WIDTH, 3), dtype=np.uint8)
        np.save(os.path.join(folder, f"{i}.npy"), (image * light[i]).astype(np.uint8))
    return torch.from_numpy(light)


class PatchDataset(Dataset):
    def __init__(self, light):
        self.light = light

    def __len__(self):
        return ITEMS

    def __getitem__(self, item):
        number = item % IMAGES
        image = np.load(os.path.join(folder, f"{number}.npy"))
        top = int(torch.randint(0, HEIGHT - PATCH, (1,)))
        left = int(torch.randint(0, WIDTH - PATCH, (1,)))
        patch = np.array(image[top:top + PATCH, left:left + PATCH])
        return torch.from_numpy(patch).permute(2, 0, 1).float() / 255, self.light[number]


light = make_images()
loader = DataLoader(PatchDataset(light), batch_size=BATCH, shuffle=True)
model = nn.Sequential(nn.Conv2d(3, 8, 5, stride=2), nn.ReLU(), nn.Conv2d(8, 16, 5, stride=2), nn.ReLU(),
                      nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(16, 3))
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)

start, steps = time.time(), 0
for epoch in range(1, EPOCHS + 1):
    for patches, target in loader:
        loss = nn.functional.mse_loss(model(patches), target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        steps += 1
    print(f"epoch {epoch} loss {loss.item():.4f} {steps / (time.time() - start):.1f} steps/s")

for i in range(IMAGES):
    os.remove(os.path.join(folder, f"{i}.npy"))
os.rmdir(folder)
