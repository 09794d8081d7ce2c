"""A training loop with a DataLoader, as tutorials have it."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Net(nn.Module):
    def __init__(self, hidden=32):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(100, hidden),
            nn.ReLU(),
            nn.Linear(hidden, 10),
        )

    def forward(self, x):
        return self.layers(x)


def main():
    x, y = torch.randn(1000, 100), torch.randint(0, 10, (1000,))
    loader = DataLoader(TensorDataset(x, y), batch_size=50, shuffle=True)
    net = Net()
    criterion = nn.CrossEntropyLoss()
    learning_rate = 0.1
    optimizer = torch.optim.SGD(net.parameters(), lr=learning_rate)
    for epoch in range(3):
        running = 0.0
        for inputs, labels in loader:
            optimizer.zero_grad()
            outputs = net(inputs)
            loss = criterion(outputs, labels)
            loss.backward()
            optimizer.step()
            running += loss.item()
        print(f"epoch {epoch}: loss {running / len(loader):.4f}")


if __name__ == "__main__":
    main()
