"""Trains mlp_deep with PyTorch."""

import argparse
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import torch
import torch.nn.functional as F
from safetensors.torch import load_file
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

BATCH_SIZE = 1000
LEARNING_RATE = 0.001

device = "cuda" if torch.cuda.is_available() else "cpu"
torch.manual_seed(1)


class MlpDeep(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.fc1 = nn.Linear(100, 256)
        self.bn1 = nn.BatchNorm1d(256)
        self.dropout = nn.Dropout(p=0.5)
        self.fc2 = nn.Linear(256, 128)
        self.bn2 = nn.BatchNorm1d(128)
        self.fc3 = nn.Linear(128, 10)

    def forward(self, x: Tensor) -> Tensor:
        x = F.relu(self.bn1(self.fc1(x)))
        x = self.dropout(x)
        x = F.relu(self.bn2(self.fc2(x)))
        x = self.dropout(x)
        return self.fc3(x)


def make_model() -> nn.Module:
    model = MlpDeep()
    model.to(device)
    model.compile()
    return model


def make_optimizer(model: nn.Module) -> torch.optim.Optimizer:
    return torch.optim.Adam(model.parameters(), lr=LEARNING_RATE)


def train_step(
    model: nn.Module, optimizer: torch.optim.Optimizer, x: Tensor, y: Tensor
) -> Tensor:
    optimizer.zero_grad(set_to_none=True)
    loss = F.cross_entropy(model(x), y)
    loss.backward()
    optimizer.step()
    return loss.detach()


def load_data(path: Path) -> tuple[Tensor, Tensor]:
    tensors = load_file(path)
    x = tensors["x"].float()
    y = tensors["y"].long()
    return x, y


def batches(*tensors: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
    """Endless batches, shuffled anew in each epoch."""
    if len(tensors[0]) < BATCH_SIZE:
        raise ValueError("the data has fewer rows than one batch")
    data = TensorDataset(*tensors)
    loader = DataLoader(data, batch_size=BATCH_SIZE, shuffle=True, drop_last=True)
    while True:
        for x, y in loader:
            yield x.to(device), y.to(device)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    here = Path(__file__).parent
    parser.add_argument("--data", type=Path, default=here / "data.safetensors")
    parser.add_argument("--steps", type=int, default=100)
    args = parser.parse_args()

    model = make_model()
    optimizer = make_optimizer(model)
    data = load_data(args.data)
    for step, batch in enumerate(islice(batches(*data), args.steps)):
        loss = train_step(model, optimizer, *batch)
        if step % 10 == 0:
            print(f"step {step:5d}  loss {loss.item():.6f}")


if __name__ == "__main__":
    main()
