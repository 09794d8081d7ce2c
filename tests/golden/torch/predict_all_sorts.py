"""Predicts with all_sorts in PyTorch."""

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
torch.backends.cuda.matmul.fp32_precision = "ieee"  # no TF32 on GPUs
torch.backends.cudnn.conv.fp32_precision = "ieee"
torch.backends.cudnn.rnn.fp32_precision = "ieee"


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
    model.eval()
    return model


@torch.inference_mode()
def predict_step(model: nn.Module, picture: Tensor, words: Tensor) -> Tensor:
    return model(picture, words)


def load_data(path: Path) -> tuple[Tensor, Tensor]:
    tensors = load_file(path)
    picture = tensors["picture"].float() / 255.0
    words = tensors["words"].long()
    return picture.to(device), words.to(device)


def batches(picture: Tensor, words: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
    """Endless batches in the order of the file; a partial last one is left out."""
    if len(picture) < BATCH_SIZE:
        raise ValueError("the data has fewer rows than one batch")
    while True:
        for first in range(0, len(picture) - BATCH_SIZE + 1, BATCH_SIZE):
            rows = slice(first, first + BATCH_SIZE)
            yield picture[rows], words[rows]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    here = Path(__file__).parent
    parser.add_argument("--data", type=Path, default=here / "data.safetensors")
    parser.add_argument("--weights", type=Path, default=here / "weights.safetensors")
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--out", help="saves what is predicted of each full batch")
    args = parser.parse_args()

    model = make_model()
    # Not strict: BatchNorm's num_batches_tracked is not in the file.
    model.load_state_dict(load_file(args.weights), strict=False)
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
