"""The CNN of recipes/mnist_cnn.toml in PyTorch, as one would type it."""

# mypy: ignore-errors

import torch
import torch.nn.functional as F
from pairing.bursts import Bursts
from safetensors.torch import load_file
from torch import nn
from torch_loop import device, load_data, train_loop


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 32, 3)
        self.conv2 = nn.Conv2d(32, 32, 3)
        self.conv3 = nn.Conv2d(32, 32, 3)
        self.conv4 = nn.Conv2d(32, 64, 3)
        self.fc1 = nn.Linear(4096, 128)
        self.fc2 = nn.Linear(128, 10)

    def forward(self, x):
        x = F.relu(self.conv1(x))
        x = F.relu(self.conv2(x))
        x = F.max_pool2d(x, 2)
        x = F.relu(self.conv3(x))
        x = F.relu(self.conv4(x))
        x = torch.flatten(x, 1)
        x = F.relu(self.fc1(x))
        return self.fc2(x)


def loss_of(model, x, y):
    return F.cross_entropy(model(x), y)


def train(bursts: Bursts, data: str, weights: str) -> None:
    x, y = load_data(data, "x", "y")
    model = Net().to(device)
    model.load_state_dict(load_file(weights))
    optimizer = torch.optim.RMSprop(model.parameters(), lr=1e-4, alpha=0.9, eps=1e-7)
    train_loop(bursts, model, optimizer, loss_of, [x / 255, y], 256)
