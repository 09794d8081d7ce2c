"""Generates with lm in PyTorch."""

import argparse
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path

import torch
import torch.nn.functional as F
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

BATCH_SIZE = 4
PROMPT = 2  # words of each row that are read first
WORDS = 3  # that are chosen in answer

device = "cuda" if torch.cuda.is_available() else "cpu"
torch.backends.cuda.matmul.fp32_precision = "ieee"  # no TF32 on GPUs
torch.backends.cudnn.conv.fp32_precision = "ieee"
torch.backends.cudnn.rnn.fp32_precision = "ieee"


def window_mask(keys: int, window: int, device: torch.device) -> Tensor:
    """True for the last keys up to the query, as many as the window has: keys, keys."""
    ones = torch.ones(keys, keys, dtype=torch.bool, device=device)
    return ones.tril().triu(1 - window)


class Attn(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.q = nn.Linear(8, 8, bias=False)
        self.k = nn.Linear(8, 4, bias=False)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        q = self.q(x).unflatten(-1, (2, 4))
        x = self.k(x).unsqueeze(2)
        return F.scaled_dot_product_attention(
            q.transpose(1, 2),
            x.transpose(1, 2),
            x.transpose(1, 2),
            attn_mask=mask,
            enable_gqa=True,
        ).transpose(1, 2)


class Lm(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(9, 8)
        self.places = nn.Embedding(6, 8)
        self.attn = Attn()
        self.head = nn.Linear(8, 9, bias=False)

    def forward(self, ids: Tensor, positions: Tensor) -> Tensor:
        x = self.embed(ids)
        x = x + self.places.weight[:6]
        mask = window_mask(6, 3, ids.device)
        h = self.attn(x, mask).flatten(2)
        x = x + h
        x = torch.index_select(x, 1, positions)
        return self.head(x)


def make_model() -> nn.Module:
    model = Lm()
    model.to(device)
    model.eval()
    return model


def decode_step(model: nn.Module, read: Tensor, words: Tensor, first: int) -> Tensor:
    """Logits of the word that follows `words`, which join the others at `first`."""
    end = first + words.shape[1]
    read[:, first:end] = words
    positions = torch.arange(end - 1, end, device=read.device)
    return model(read, positions)[:, -1]


def likeliest(logits: Tensor) -> Tensor:
    return logits.argmax(-1)


@torch.inference_mode()
def generate(
    model: nn.Module, rows: Tensor, choose: Callable[[Tensor], Tensor] = likeliest
) -> Iterator[Tensor]:
    """WORDS words in answer to the first PROMPT of each row, one after the other."""
    words, first = rows[:, :PROMPT], 0
    read = torch.zeros_like(rows)
    for _ in range(WORDS):
        logits = decode_step(model, read, words, first)
        first += words.shape[1]
        words = choose(logits)[:, None]
        yield words


def predict_step(model: nn.Module, rows: Tensor) -> Tensor:
    return torch.cat(list(generate(model, rows)), dim=1)


def load_data(path: Path) -> tuple[Tensor]:
    tensors = load_file(path)
    ids = tensors["ids"].long()
    return (ids.to(device),)


def batches(ids: Tensor) -> Iterator[tuple[Tensor]]:
    """Endless batches in the order of the file; a partial last one is left out."""
    if len(ids) < BATCH_SIZE:
        raise ValueError("the data has fewer rows than one batch")
    while True:
        for first in range(0, len(ids) - BATCH_SIZE + 1, BATCH_SIZE):
            rows = slice(first, first + BATCH_SIZE)
            yield (ids[rows],)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    here = Path(__file__).parent
    parser.add_argument("--data", type=Path, default=here / "data.safetensors")
    parser.add_argument("--weights", type=Path, default=here / "weights.safetensors")
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--out", help="saves what is predicted of each full batch")
    args = parser.parse_args()

    model = make_model()
    model.load_state_dict(load_file(args.weights))
    data = load_data(args.data)
    steps = len(data[0]) // BATCH_SIZE if args.out else args.steps
    outputs = []
    for step, batch in enumerate(islice(batches(*data), steps)):
        output = predict_step(model, *batch)
        if step % 10 == 0:
            print(f"batch {step:5d}  first answer {output[0].tolist()}")
        if args.out:
            outputs.append(output.cpu())
    if args.out:
        save_file({"words": torch.cat(outputs).contiguous()}, args.out)


if __name__ == "__main__":
    main()
