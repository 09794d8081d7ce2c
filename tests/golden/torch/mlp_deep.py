"""Trains mlp_deep with PyTorch."""

import argparse
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import torch
import torch.nn.functional as F
from safetensors.torch import load_file
from torch import Tensor, nn

BATCH_SIZE = 1000
LEARNING_RATE = 0.001

device = "cuda" if torch.cuda.is_available() else "cpu"
torch.backends.cuda.matmul.fp32_precision = "ieee"  # no TF32 on GPUs
torch.backends.cudnn.conv.fp32_precision = "ieee"
torch.backends.cudnn.rnn.fp32_precision = "ieee"
torch.manual_seed(1)


class MlpDeep(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.fc1 = nn.Linear(100, 256)
        self.bn1 = nn.BatchNorm1d(256, eps=1e-5, momentum=0.1)
        self.dropout = nn.Dropout(p=0.5)
        self.fc2 = nn.Linear(256, 128)
        self.bn2 = nn.BatchNorm1d(128, eps=1e-5, momentum=0.1)
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
    return model


def make_optimizer(model: nn.Module) -> torch.optim.Optimizer:
    return torch.optim.Adam(
        model.parameters(),
        lr=LEARNING_RATE,
        betas=(0.9, 0.999),
        eps=1e-8,
        weight_decay=0.0,
    )


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
    return x.to(device), y.to(device)


def batches(x: Tensor, y: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
    """Endless batches in the order of the file; a partial last one is left out."""
    if len(x) < BATCH_SIZE:
        raise ValueError("the data has fewer rows than one batch")
    while True:
        for first in range(0, len(x) - BATCH_SIZE + 1, BATCH_SIZE):
            rows = slice(first, first + BATCH_SIZE)
            yield x[rows], y[rows]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    here = Path(__file__).parent
    parser.add_argument("--data", type=Path, default=here / "data.safetensors")
    parser.add_argument("--weights", type=Path, default=here / "weights.safetensors")
    parser.add_argument("--steps", type=int, default=100)
    args = parser.parse_args()

    model = make_model()
    # Not strict: BatchNorm's num_batches_tracked is not in the file.
    model.load_state_dict(load_file(args.weights), strict=False)
    optimizer = make_optimizer(model)
    data = load_data(args.data)
    for step, batch in enumerate(islice(batches(*data), args.steps)):
        loss = train_step(model, optimizer, *batch)
        if step % 10 == 0:
            print(f"step {step:5d}  loss {loss.item():.6f}")


if __name__ == "__main__":
    main()
