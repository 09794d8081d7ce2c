"""Trains all_sorts with PyTorch."""

import argparse
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import torch
import torch.nn.functional as F
from safetensors.torch import load_file
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

BATCH_SIZE = 256
LEARNING_RATE = 1e-4

device = "cuda" if torch.cuda.is_available() else "cpu"
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
        self.bn = nn.BatchNorm2d(6)

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
        self.norm = nn.LayerNorm(6)
        self.dropout = nn.Dropout(p=0.25)
        self.mix = nn.Linear(30, 6)
        self.head = nn.Linear(12, 6, bias=False)
        self.tied_bias = nn.Parameter(torch.empty(20))
        nn.init.uniform_(self.tied_bias, -(6**-0.5), 6**-0.5)

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
    model.to(device, memory_format=torch.channels_last)
    return model


def make_optimizer(model: nn.Module) -> torch.optim.Optimizer:
    return torch.optim.RMSprop(model.parameters(), lr=LEARNING_RATE)


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
    picture = tensors["picture"].float() / 255.0
    words = tensors["words"].long()
    y = tensors["y"].long()
    return picture, words, y


def batches(*tensors: Tensor) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
    """Endless batches, shuffled anew in each epoch."""
    if len(tensors[0]) < BATCH_SIZE:
        raise ValueError("the data has fewer rows than one batch")
    data = TensorDataset(*tensors)
    loader = DataLoader(data, batch_size=BATCH_SIZE, shuffle=True, drop_last=True)
    while True:
        for picture, words, y in loader:
            yield (
                picture.to(device, memory_format=torch.channels_last),
                words.to(device),
                y.to(device),
            )


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
