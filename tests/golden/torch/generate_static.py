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


class Weight(nn.Module):
    """A parameter by itself."""

    def __init__(self, *shape: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(shape))


def cache_mask(positions: Tensor, keys: int, window: int = 0) -> Tensor:
    """True for the last keys up to each position, as many as the window has: L, keys."""
    places, positions = torch.arange(keys, device=positions.device), positions[:, None]
    seen = places <= positions
    return seen & (places > positions - window) if window else seen


def cached_attention(q, k, v, keys, values, positions, mask: Tensor) -> Tensor:
    """k and v join the caches at their positions; then queries see what the mask says."""
    keys.index_copy_(1, positions, k)
    values.index_copy_(1, positions, v)
    q, k, v = (heads.transpose(1, 2) for heads in (q, keys, values))
    x = F.scaled_dot_product_attention(q, k, v, attn_mask=mask, enable_gqa=True)
    return x.transpose(1, 2)


class Attn(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.q = nn.Linear(8, 8, bias=False)
        self.k = nn.Linear(8, 4, bias=False)
        self.register_buffer(
            "key_cache", torch.zeros(BATCH_SIZE, 6, 1, 4), persistent=False
        )
        self.register_buffer(
            "value_cache", torch.zeros(BATCH_SIZE, 6, 1, 4), persistent=False
        )

    def forward(self, x: Tensor, positions: Tensor, mask: Tensor) -> Tensor:
        q = self.q(x).unflatten(-1, (2, 4))
        x = self.k(x).unsqueeze(2)
        return cached_attention(
            q, x, x, self.key_cache, self.value_cache, positions, mask
        )


class Lm(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(9, 8)
        self.places = Weight(6, 8)
        self.attn = Attn()
        self.head = nn.Linear(8, 9, bias=False)

    def forward(self, ids: Tensor, positions: Tensor) -> Tensor:
        x = self.embed(ids)
        h = self.places.weight.reshape(1, 6, 8)
        h = torch.index_select(h, 1, positions)
        x = x + h
        mask = cache_mask(positions, 6, 3)
        h = self.attn(x, positions, mask).flatten(2)
        x = x + h
        x = x[:, -1:]
        return self.head(x)


def make_model() -> nn.Module:
    model = Lm()
    model.to(device)
    model.eval()
    return model


def decode_step(model: nn.Module, words: Tensor, first: int) -> Tensor:
    """Logits of the word that follows `words`, the first of which stands at `first`."""
    positions = torch.arange(first, first + words.shape[1], device=words.device)
    return model(words, positions)[:, -1]


def likeliest(logits: Tensor) -> Tensor:
    return logits.argmax(-1)


@torch.inference_mode()
def generate(
    model: nn.Module, rows: Tensor, choose: Callable[[Tensor], Tensor] = likeliest
) -> Iterator[Tensor]:
    """WORDS words in answer to the first PROMPT of each row, one after the other."""
    words, first = rows[:, :PROMPT], 0
    for _ in range(WORDS):
        logits = decode_step(model, words, first)
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
