"""Trains tagger with PyTorch."""

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


class Tagger(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.tags = nn.Linear(6, 5)
        self.words = nn.Parameter(torch.empty(11, 6))

    def forward(self, a_rather_long_name_f: Tensor) -> Tensor:
        x = F.embedding(a_rather_long_name_f, self.words)
        return self.tags(x)


def make_model() -> nn.Module:
    model = Tagger()
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
    a_rather_long_name_f: Tensor,
    and_one_for_the_tags: Tensor,
) -> Tensor:
    optimizer.zero_grad(set_to_none=True)
    prediction = model(a_rather_long_name_f)
    loss = F.cross_entropy(prediction.flatten(0, 1), and_one_for_the_tags.flatten())
    loss.backward()
    optimizer.step()
    return loss.detach()


def load_data(path: Path) -> tuple[Tensor, Tensor]:
    tensors = load_file(path)
    name = "a_rather_long_name_for_the_words_of_a_sentence"
    a_rather_long_name_f = tensors[name].long()
    name = "and_one_for_the_tags_that_are_to_be_predicted"
    and_one_for_the_tags = tensors[name].long()
    return a_rather_long_name_f.to(device), and_one_for_the_tags.to(device)


def batches(
    a_rather_long_name_f: Tensor, and_one_for_the_tags: Tensor
) -> Iterator[tuple[Tensor, Tensor]]:
    """Endless batches in the order of the file; a partial last one is left out."""
    if len(a_rather_long_name_f) < BATCH_SIZE:
        raise ValueError("the data has fewer rows than one batch")
    while True:
        for first in range(0, len(a_rather_long_name_f) - BATCH_SIZE + 1, BATCH_SIZE):
            rows = slice(first, first + BATCH_SIZE)
            yield a_rather_long_name_f[rows], and_one_for_the_tags[rows]


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
