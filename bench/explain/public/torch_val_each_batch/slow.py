import time

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(11)

EPOCHS = 12
BATCH = 32


def make_split(n, seed):
    g = torch.Generator().manual_seed(seed)
    x = torch.randn(n, 1, 28, 28, generator=g)
    depth = F.avg_pool2d(x, 5, stride=1, padding=2) * 2.0
    y = depth + 0.05 * torch.randn(n, 1, 28, 28, generator=g)
    return TensorDataset(x, y)


class SmallNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(1, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(),
            nn.Conv2d(16, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(),
            nn.Conv2d(16, 1, 3, padding=1),
        )

    def forward(self, x):
        return self.body(x)


train_loader = DataLoader(make_split(1280, 1), batch_size=BATCH, shuffle=True)
test_loader = DataLoader(make_split(320, 2), batch_size=BATCH)

model = SmallNet()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)


def train(x, y):
    model.train()
    optimizer.zero_grad()
    loss = F.smooth_l1_loss(model(x), y)
    loss.backward()
    optimizer.step()
    return loss.item()


def test(x, y):
    model.eval()
    with torch.no_grad():
        pred = model(x)
    wrong = ((pred - y).abs() > 0.3).float().mean()
    return wrong.item()


def main():
    best, best_epoch = 1.0, -1
    start = time.time()
    for epoch in range(EPOCHS):
        total_train = 0.0
        for batch_idx, (x, y) in enumerate(train_loader):
            loss = train(x, y)
            total_train += loss
            if batch_idx % 20 == 0:
                print(f"epoch {epoch} iter {batch_idx} loss {loss:.4f}")

            total_wrong = 0.0
            for tx, ty in test_loader:
                total_wrong += test(tx, ty)
            err = total_wrong / len(test_loader)
            if err < best:
                best, best_epoch = err, epoch

        print(f"epoch {epoch} train {total_train / len(train_loader):.4f} val error {err:.4f}")
    print(f"best {best:.4f} at epoch {best_epoch}, total {time.time() - start:.1f}s")


if __name__ == "__main__":
    main()
