"""Trains alexnet_small with PyTorch."""

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


class AlexnetSmall(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(3, 12, kernel_size=11, stride=4)
        self.conv2 = nn.Conv2d(12, 32, kernel_size=5, padding=2, groups=2)
        self.conv3 = nn.Conv2d(32, 48, kernel_size=3, padding=1)
        self.conv4 = nn.Conv2d(48, 48, kernel_size=3, padding=1, groups=2)
        self.conv5 = nn.Conv2d(48, 32, kernel_size=3, padding=1, groups=2)
        self.fc6 = nn.Linear(32, 64)
        self.dropout = nn.Dropout(p=0.5)
        self.fc7 = nn.Linear(64, 64)
        self.fc8 = nn.Linear(64, 10)

    def forward(self, x: Tensor) -> Tensor:
        x = F.relu(self.conv1(x))
        x = F.local_response_norm(x, 5, alpha=5 * 1e-4, beta=0.75, k=2.0)
        x = F.max_pool2d(x, 3, stride=2)
        x = F.relu(self.conv2(x))
        x = F.local_response_norm(x, 5, alpha=5 * 1e-4, beta=0.75, k=2.0)
        x = F.max_pool2d(x, 3, stride=2)
        x = F.relu(self.conv3(x))
        x = F.relu(self.conv4(x))
        x = F.relu(self.conv5(x))
        x = F.max_pool2d(x, 3, stride=2).flatten(1)
        x = F.relu(self.fc6(x))
        x = self.dropout(x)
        x = F.relu(self.fc7(x))
        x = self.dropout(x)
        return self.fc8(x)


def make_model() -> nn.Module:
    model = AlexnetSmall()
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
    model.load_state_dict(load_file(args.weights))
    optimizer = make_optimizer(model)
    data = load_data(args.data)
    for step, batch in enumerate(islice(batches(*data), args.steps)):
        loss = train_step(model, optimizer, *batch)
        if step % 10 == 0:
            print(f"step {step:5d}  loss {loss.item():.6f}")


if __name__ == "__main__":
    main()
