"""Trains all_sorts with PyTorch."""

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


def avg_pool2d_uneven(x: Tensor, kernel, stride, pad: tuple[int, ...]) -> Tensor:
    """Mean over the part of each window that lies inside the picture.

    `pad` is before, after of each axis from the last; F.avg_pool2d pads evenly only.
    """
    inside = F.avg_pool2d(F.pad(torch.ones_like(x[:1, :1]), pad), kernel, stride)
    return F.avg_pool2d(F.pad(x, pad), kernel, stride) / inside


class Stem(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 6, kernel_size=(3, 2), stride=(2, 1))
        self.depth = nn.Conv2d(
            6, 6, kernel_size=3, padding=2, dilation=2, groups=6, bias=False
        )
        self.bn = nn.BatchNorm2d(6, eps=0.001, momentum=0.01)

    def forward(self, x: Tensor) -> Tensor:
        x = self.conv(F.pad(x, (1, 0, 0, 1)))
        x = F.gelu(self.depth(x), approximate="tanh")
        x = F.max_pool2d(F.pad(x, (0, 1, 1, 0), value=float("-inf")), 2, stride=1)
        x = avg_pool2d_uneven(x, (3, 2), 2, (0, 1, 1, 0))
        x = F.pad(x, (0, 2, 1, 0), value=0.5)
        x = F.avg_pool2d(x, 2, stride=1, padding=(1, 0), count_include_pad=True)
        return self.bn(x)


class AllSorts(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.stem = Stem()
        self.words = nn.Embedding(20, 6)
        self.norm = nn.LayerNorm(6, eps=1e-6)
        self.dropout = nn.Dropout(p=0.25)
        self.mix = nn.Linear(30, 6)
        self.head = nn.Linear(12, 6, bias=False)
        self.tied_bias = nn.Parameter(torch.empty(20))

    def forward(self, picture: Tensor, words: Tensor) -> Tensor:
        x = self.stem(picture)
        h = torch.sigmoid(x)
        x = x * h
        x = x.mean(dim=(2, 3))
        h = self.words(words).transpose(1, 2)
        h = h.reshape(-1, 5, 6)
        h = self.norm(h).flatten(1)
        h = self.dropout(h)
        h = torch.tanh(self.mix(h))
        h = F.softmax(h, dim=1)
        h = torch.cat((x, h), dim=1)
        x = F.gelu(self.head(h) + x)
        return F.linear(x, self.words.weight, self.tied_bias)


def make_model() -> nn.Module:
    model = AllSorts()
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
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    picture: Tensor,
    words: Tensor,
    y: Tensor,
) -> Tensor:
    optimizer.zero_grad(set_to_none=True)
    loss = F.cross_entropy(model(picture, words), y, reduction="sum")
    loss.backward()
    optimizer.step()
    return loss.detach()


def load_data(path: Path) -> tuple[Tensor, Tensor, Tensor]:
    tensors = load_file(path)
    picture = tensors["picture"].float()
    words = tensors["words"].long()
    y = tensors["y"].long()
    return picture.to(device), words.to(device), y.to(device)


def batches(
    picture: Tensor, words: Tensor, y: Tensor
) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
    """Endless batches in the order of the file; a partial last one is left out."""
    if len(picture) < BATCH_SIZE:
        raise ValueError("the data has fewer rows than one batch")
    while True:
        for first in range(0, len(picture) - BATCH_SIZE + 1, BATCH_SIZE):
            rows = slice(first, first + BATCH_SIZE)
            yield picture[rows], words[rows], y[rows]


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
