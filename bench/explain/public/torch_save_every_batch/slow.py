"""Train a small detector backbone and keep a checkpoint of every epoch."""
import os
import tempfile
import time

import torch
import torch.nn as nn

torch.manual_seed(29)

FEATURES, HIDDEN, OUTPUTS = 256, 1024, 60
EPOCHS, BATCHES, BATCH = 5, 80, 32
CHECKPOINT_INTERVAL = 1
folder = tempfile.mkdtemp(prefix="checkpoints_")


class Detector(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(
            nn.Linear(FEATURES, HIDDEN), nn.ReLU(),
            nn.Linear(HIDDEN, HIDDEN), nn.ReLU(),
            nn.Linear(HIDDEN, HIDDEN), nn.ReLU(),
        )
        self.head = nn.Linear(HIDDEN, OUTPUTS)

    def forward(self, x):
        return self.head(self.body(x))


model = Detector()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
inputs = torch.randn(BATCHES * BATCH, FEATURES)
targets = torch.tanh(inputs @ torch.randn(FEATURES, OUTPUTS) / 16)


def save(epoch):
    path = os.path.join(folder, f"detector_{epoch}.pt")
    torch.save({"epoch": epoch, "model": model.state_dict(), "optimizer": optimizer.state_dict()}, path)


start = time.time()
for epoch in range(EPOCHS):
    order = torch.randperm(len(inputs))
    for i in range(BATCHES):
        rows = order[i * BATCH:(i + 1) * BATCH]
        loss = nn.functional.mse_loss(model(inputs[rows]), targets[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if epoch % CHECKPOINT_INTERVAL == 0:
            save(epoch)
        if (i + 1) % 25 == 0:
            print(f"epoch {epoch} batch {i + 1} loss {loss.item():.4f} {time.time() - start:.1f} s")

for name in os.listdir(folder):
    os.remove(os.path.join(folder, name))
os.rmdir(folder)
