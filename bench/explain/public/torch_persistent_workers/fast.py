"""Motion in-betweening: predict middle poses from the surrounding ones (short epochs)."""
import time

import numpy as np
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset

JOINTS = 22
WINDOW = 24
EPOCHS = 150


class MotionDataset(Dataset):
    def __init__(self, clips=192, frames=120):
        gen = np.random.default_rng(9)
        walk = gen.normal(0, 0.05, (clips, frames, JOINTS * 3)).astype(np.float32)
        self.clips = np.cumsum(walk, axis=1)

    def __len__(self):
        return len(self.clips)

    def __getitem__(self, i):
        clip = self.clips[i]
        start = np.random.randint(len(clip) - WINDOW)
        window = clip[start:start + WINDOW]
        window = window - window[0]
        context = np.concatenate([window[:4], window[-4:]]).reshape(-1)
        return torch.from_numpy(context), torch.from_numpy(window[4:-4].reshape(-1).copy())


def main():
    torch.manual_seed(9)
    loader = DataLoader(MotionDataset(), batch_size=32, shuffle=True, num_workers=2,
                        persistent_workers=True)
    model = nn.Sequential(
        nn.Linear(8 * JOINTS * 3, 256), nn.ReLU(),
        nn.Linear(256, 256), nn.ReLU(),
        nn.Linear(256, (WINDOW - 8) * JOINTS * 3),
    )
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    start = time.time()
    for epoch in range(1, EPOCHS + 1):
        total = 0.0
        for context, target in loader:
            loss = nn.functional.l1_loss(model(context), target)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
        if epoch % 25 == 0:
            rate = epoch * len(loader) / (time.time() - start)
            print(f"epoch {epoch}: l1 {total / len(loader):.4f}, {rate:.1f} it/s")


if __name__ == "__main__":
    main()
