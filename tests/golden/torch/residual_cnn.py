"""Trains residual_cnn with PyTorch."""

import argparse
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import torch
import torch.nn.functional as F
from safetensors.torch import load_file
from torch import Tensor, nn

BATCH_SIZE = 256
LEARNING_RATE = 0.1

device = "cuda" if torch.cuda.is_available() else "cpu"
torch.backends.cuda.matmul.fp32_precision = "ieee"  # no TF32 on GPUs
torch.backends.cudnn.conv.fp32_precision = "ieee"
torch.backends.cudnn.rnn.fp32_precision = "ieee"


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(16, 16, kernel_size=3, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(16, eps=1e-5, momentum=0.1)
        self.conv2 = nn.Conv2d(16, 16, kernel_size=3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(16, eps=1e-5, momentum=0.1)

    def forward(self, x: Tensor) -> Tensor:
        x = F.relu(self.bn1(self.conv1(x)))
        return self.bn2(self.conv2(x))


class DownBlock(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.down = nn.ModuleDict(
            {
                "conv": nn.Conv2d(16, 32, kernel_size=1, stride=2, bias=False),
                "bn": nn.BatchNorm2d(32, eps=1e-5, momentum=0.1),
            }
        )
        self.conv1 = nn.Conv2d(16, 32, kernel_size=3, stride=2, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(32, eps=1e-5, momentum=0.1)
        self.conv2 = nn.Conv2d(32, 32, kernel_size=3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(32, eps=1e-5, momentum=0.1)

    def forward(self, x: Tensor) -> Tensor:
        h = self.down.bn(self.down.conv(x))
        x = F.relu(self.bn1(self.conv1(x)))
        return self.bn2(self.conv2(x)) + h


class ResidualCnn(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.ModuleDict(
            {
                "conv": nn.Conv2d(
                    1, 16, kernel_size=3, stride=2, padding=1, bias=False
                ),
                "bn": nn.BatchNorm2d(16, eps=1e-5, momentum=0.1),
            }
        )
        self.block1 = Block()
        self.block2 = DownBlock()
        self.fc = nn.Linear(32, 10)

    def forward(self, x: Tensor) -> Tensor:
        x = F.relu(self.stem.bn(self.stem.conv(x)))
        x = F.relu(self.block1(x) + x)
        x = F.relu(self.block2(x))
        x = x.mean(dim=(2, 3))
        return self.fc(x)


def make_model() -> nn.Module:
    model = ResidualCnn()
    model.to(device)
    return model


def make_optimizer(model: nn.Module) -> torch.optim.Optimizer:
    return torch.optim.SGD(
        model.parameters(),
        lr=LEARNING_RATE,
        momentum=0.9,
        nesterov=True,
        weight_decay=5e-4,
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
    x = tensors["x"].float() / 255.0
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
