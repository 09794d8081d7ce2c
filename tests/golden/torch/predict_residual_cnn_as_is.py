"""Predicts with residual_cnn in PyTorch."""

import argparse
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import torch
import torch.nn.functional as F
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

BATCH_SIZE = 256

device = "cuda" if torch.cuda.is_available() else "cpu"
torch.manual_seed(1)


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(16, 16, kernel_size=3, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(16)
        self.conv2 = nn.Conv2d(16, 16, kernel_size=3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(16)

    def forward(self, x: Tensor) -> Tensor:
        x = F.relu(self.bn1(self.conv1(x)))
        return self.bn2(self.conv2(x))


class DownBlock(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.down = nn.ModuleDict(
            {
                "conv": nn.Conv2d(16, 32, kernel_size=1, stride=2, bias=False),
                "bn": nn.BatchNorm2d(32),
            }
        )
        self.conv1 = nn.Conv2d(16, 32, kernel_size=3, stride=2, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(32)
        self.conv2 = nn.Conv2d(32, 32, kernel_size=3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(32)

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
                "bn": nn.BatchNorm2d(16),
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
    model.eval()
    return model


@torch.inference_mode()
def predict_step(model: nn.Module, x: Tensor) -> Tensor:
    return model(x)


def load_data(path: Path) -> tuple[Tensor]:
    tensors = load_file(path)
    x = tensors["x"].float() / 255.0
    return (x.to(device),)


def batches(x: Tensor) -> Iterator[tuple[Tensor]]:
    """Endless batches in the order of the file; a partial last one is left out."""
    if len(x) < BATCH_SIZE:
        raise ValueError("the data has fewer rows than one batch")
    while True:
        for first in range(0, len(x) - BATCH_SIZE + 1, BATCH_SIZE):
            rows = slice(first, first + BATCH_SIZE)
            yield (x[rows],)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    here = Path(__file__).parent
    parser.add_argument("--data", type=Path, default=here / "data.safetensors")
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--out", help="saves what is predicted of each full batch")
    args = parser.parse_args()

    model = make_model()
    data = load_data(args.data)
    steps = len(data[0]) // BATCH_SIZE if args.out else args.steps
    outputs = []
    for step, batch in enumerate(islice(batches(*data), steps)):
        output = predict_step(model, *batch)
        if step % 10 == 0:
            print(f"batch {step:5d}  mean output {output.mean().item():.6f}")
        if args.out:
            outputs.append(output.cpu().float())
    if args.out:
        save_file({"output": torch.cat(outputs).contiguous()}, args.out)


if __name__ == "__main__":
    main()
