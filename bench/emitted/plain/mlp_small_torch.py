"""The MLP of recipes/mlp_small.toml in PyTorch, as one would type it."""

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
        self.fc1 = nn.Linear(100, 128)
        self.fc2 = nn.Linear(128, 10)

    def forward(self, x):
        return self.fc2(F.relu(self.fc1(x)))


def loss_of(model, x, y):
    return F.cross_entropy(model(x), y)


def train(bursts: Bursts, data: str, weights: str) -> None:
    model = Net().to(device)
    model.load_state_dict(load_file(weights))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, eps=1e-7)
    train_loop(bursts, model, optimizer, loss_of, load_data(data, "x", "y"), 1000)
