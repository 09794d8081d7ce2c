"""The MLP of recipes/mlp_deep.toml in PyTorch, as one would type it."""

# mypy: ignore-errors

import torch
import torch.nn.functional as F
from pairing.bursts import Bursts
from safetensors.torch import load_file
from torch import nn
from torch_loop import device, load_data, train_loop

DROPOUT = 0.5


def make_model():
    return nn.Sequential(
        nn.Linear(100, 256),
        nn.BatchNorm1d(256),
        nn.ReLU(),
        nn.Dropout(DROPOUT),
        nn.Linear(256, 128),
        nn.BatchNorm1d(128),
        nn.ReLU(),
        nn.Dropout(DROPOUT),
        nn.Linear(128, 10),
    )


PLACES = {"fc1": "0", "bn1": "1", "fc2": "4", "bn2": "5", "fc3": "8"}


def place(name):
    layer, leaf = name.split(".")
    return f"{PLACES[layer]}.{leaf}"


def loss_of(model, x, y):
    return F.cross_entropy(model(x), y)


def train(bursts: Bursts, data: str, weights: str) -> None:
    torch.manual_seed(1)
    model = make_model().to(device)
    state = {place(name): weight for name, weight in load_file(weights).items()}
    model.load_state_dict(state, strict=False)  # without num_batches_tracked
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, eps=1e-7)
    train_loop(bursts, model, optimizer, loss_of, load_data(data, "x", "y"), 1000)
