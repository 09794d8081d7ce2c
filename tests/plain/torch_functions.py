"""A model, a function that makes its optimizer, and one that trains an epoch."""

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

device = "cuda" if torch.cuda.is_available() else "cpu"


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(100, 32)
        self.fc2 = nn.Linear(32, 10)

    def forward(self, x):
        return self.fc2(F.relu(self.fc1(x)))


def configure_optimizer(model, lr=0.1):
    return torch.optim.SGD(model.parameters(), lr=lr)


def train(dataloader, model, loss_fn, optimizer):
    size = len(dataloader.dataset)
    model.train()
    for batch, (X, y) in enumerate(dataloader):
        X, y = X.to(device), y.to(device)
        loss = loss_fn(model(X), y)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        if batch % 100 == 0:
            print(f"loss: {loss.item():>7f}  [{(batch + 1) * len(X):>5d}/{size:>5d}]")


if __name__ == "__main__":
    data = TensorDataset(torch.randn(1000, 100), torch.randint(0, 10, (1000,)))
    model = Classifier().to(device)
    optimizer = configure_optimizer(model)
    for _ in range(3):
        train(DataLoader(data, batch_size=50), model, nn.CrossEntropyLoss(), optimizer)
