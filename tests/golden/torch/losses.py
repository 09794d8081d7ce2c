"""Trains losses with PyTorch."""

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


class Losses(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.trunk = nn.Conv2d(2, 2, kernel_size=3, padding=1)
        self.decoder = nn.Conv2d(2, 2, kernel_size=1)
        self.head = nn.Linear(32, 5)
        self.aux = nn.Linear(32, 5)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        x = F.relu(self.trunk(x))
        h = self.decoder(x)
        x = x.flatten(1)
        u = self.head(x)
        x = self.aux(x)
        return u, x, h


def make_model() -> nn.Module:
    model = Losses()
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
    model: nn.Module, optimizer: torch.optim.Optimizer, x: Tensor, y: Tensor, t: Tensor
) -> Tensor:
    optimizer.zero_grad(set_to_none=True)
    logits, output_2, picture = model(x)
    main_loss = F.cross_entropy(logits, y, ignore_index=-100, reduction="sum")
    main_loss = main_loss / (y != -100).sum().clamp(min=1)
    aux_loss = F.cross_entropy(
        output_2, y, ignore_index=-100, reduction="sum", label_smoothing=0.1
    )
    aux_loss = aux_loss / (y != -100).sum().clamp(min=1)
    error = F.mse_loss(picture, t)
    part = F.l1_loss(picture, t, reduction="sum")
    loss = main_loss + 0.3 * aux_loss + error - 0.001 * part
    loss.backward()
    optimizer.step()
    return loss.detach()


def load_data(path: Path) -> tuple[Tensor, Tensor, Tensor]:
    tensors = load_file(path)
    x = tensors["x"].float()
    y = tensors["y"].long()
    t = tensors["t"].float()
    return x.to(device), y.to(device), t.to(device)


def batches(x: Tensor, y: Tensor, t: Tensor) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
    """Endless batches in the order of the file; a partial last one is left out."""
    if len(x) < BATCH_SIZE:
        raise ValueError("the data has fewer rows than one batch")
    while True:
        for first in range(0, len(x) - BATCH_SIZE + 1, BATCH_SIZE):
            rows = slice(first, first + BATCH_SIZE)
            yield x[rows], y[rows], t[rows]


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
