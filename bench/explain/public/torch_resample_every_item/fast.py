"""Segment blobs in MRI-like slices that come at a much finer resolution than the network uses."""
import time

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset

torch.manual_seed(59)

FULL, SMALL = 400, 48
SLICES, BATCH, EPOCHS = 96, 8, 120


def resample(image):
    return F.interpolate(image[None], size=(SMALL, SMALL), mode="bicubic", antialias=True)[0]


class SliceDataset(Dataset):
    def __init__(self):
        self.images, self.masks = [], []
        axis = torch.linspace(-1, 1, FULL)
        yy, xx = torch.meshgrid(axis, axis, indexing="ij")
        for _ in range(SLICES):
            cy, cx = torch.rand(2) - 0.5
            mask = ((yy - cy) ** 2 + (xx - cx) ** 2 < 0.08).float()
            image = mask + 0.4 * torch.randn(FULL, FULL)
            self.images.append(resample(image.unsqueeze(0)))
            self.masks.append(resample(mask.unsqueeze(0)))

    def __len__(self):
        return len(self.images)

    def __getitem__(self, index):
        image = self.images[index]
        mask = self.masks[index]
        if torch.rand(()) < 0.5:
            image, mask = image.flip(-1), mask.flip(-1)
        return image, (mask > 0.5).float()


loader = DataLoader(SliceDataset(), batch_size=BATCH, shuffle=True)
net = nn.Sequential(
    nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(),
    nn.Conv2d(8, 8, 3, padding=1), nn.ReLU(),
    nn.Conv2d(8, 1, 1),
)
optimizer = torch.optim.Adam(net.parameters(), lr=3e-3)

for epoch in range(EPOCHS):
    t0 = time.time()
    total = 0.0
    for image, mask in loader:
        loss = F.binary_cross_entropy_with_logits(net(image), mask)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    if epoch % 10 == 9:
        print(f"epoch {epoch} loss {total / len(loader):.4f} ({time.time() - t0:.1f}s)")
