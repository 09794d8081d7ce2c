"""The network of recipes/dlrm_tiny.toml in PyTorch, as one would type it."""

# mypy: ignore-errors

import torch
import torch.nn.functional as F
from pairing.bursts import Bursts
from safetensors.torch import load_file
from torch import nn
from torch_loop import device, load_data, train_loop

WORDS, WIDTH, TABLES = 1000, 16, 27


class DLRM(nn.Module):
    def __init__(self):
        super().__init__()
        self.below = nn.Sequential(
            nn.Linear(13, 32), nn.ReLU(), nn.Linear(32, WIDTH), nn.ReLU()
        )
        self.words = nn.Embedding(WORDS, WIDTH)
        self.above = nn.Sequential(
            nn.Linear(WIDTH + TABLES * (TABLES + 1) // 2, 64),
            nn.ReLU(),
            nn.Linear(64, 32),
            nn.ReLU(),
            nn.Linear(32, 1),
        )
        rows, columns = torch.tril_indices(TABLES, TABLES)
        self.register_buffer("places", TABLES * rows + columns)

    def forward(self, numbers, ids):
        x = self.below(numbers)
        all_ = torch.cat([x[:, None], self.words(ids)], 1)
        pairs = (all_ @ all_.transpose(1, 2)).flatten(1)
        return self.above(torch.cat([x, pairs[:, self.places]], 1))


def loss_of(model, numbers, ids, y):
    return F.binary_cross_entropy_with_logits(model(numbers, ids), y)


def train(bursts: Bursts, data: str, weights: str) -> None:
    model = DLRM().to(device)
    held = load_file(weights)
    held["places"] = held["places"].long()
    model.load_state_dict(held)
    optimizer = torch.optim.AdamW(
        model.parameters(), lr=1e-4, eps=1e-7, weight_decay=0.01
    )
    inputs = load_data(data, "numbers", "ids", "y")
    train_loop(bursts, model, optimizer, loss_of, inputs, 64)
