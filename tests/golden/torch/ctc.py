"""Trains speech with PyTorch."""

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


class Speech(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.rnn = nn.GRU(5, 6, batch_first=True)
        self.early = nn.Linear(5, 7)
        self.head = nn.Linear(6, 7)

    def forward(self, sound: Tensor) -> tuple[Tensor, Tensor]:
        x = self.rnn(sound)[0]
        h = self.early(sound)
        x = self.head(x)
        return x, h


def make_model() -> nn.Module:
    model = Speech()
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
    model: nn.Module, optimizer: torch.optim.Optimizer, sound: Tensor, words: Tensor
) -> Tensor:
    optimizer.zero_grad(set_to_none=True)
    logits, early = model(sound)
    log_p = F.log_softmax(logits, dim=-1).transpose(0, 1)
    lengths = (words >= 0).sum(1)
    frames = torch.full_like(lengths, 12)
    main_2 = F.ctc_loss(log_p, words, frames, lengths, reduction="sum") / len(words)
    log_p = F.log_softmax(early, dim=-1).transpose(0, 1)
    lengths = (words >= 0).sum(1)
    frames = torch.full_like(lengths, 12)
    aux = F.ctc_loss(log_p, words, frames, lengths, reduction="sum")
    loss = main_2 + 0.1 * aux
    loss.backward()
    optimizer.step()
    return loss.detach()


def load_data(path: Path) -> tuple[Tensor, Tensor]:
    tensors = load_file(path)
    sound = tensors["sound"].float()
    words = tensors["words"].long()
    return sound.to(device), words.to(device)


def batches(sound: Tensor, words: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
    """Endless batches in the order of the file; a partial last one is left out."""
    if len(sound) < BATCH_SIZE:
        raise ValueError("the data has fewer rows than one batch")
    while True:
        for first in range(0, len(sound) - BATCH_SIZE + 1, BATCH_SIZE):
            rows = slice(first, first + BATCH_SIZE)
            yield sound[rows], words[rows]


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
