"""Trains sequences with PyTorch."""

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


def padding_mask(last: Tensor, keys: int) -> Tensor:
    """True up to the last token of each row: N, 1, 1, keys."""
    return torch.arange(keys, device=last.device) <= last[:, None, None, None]


def causal_padding_mask(last: Tensor, keys: int) -> Tensor:
    """True up to the query and to the last token of each row: N, 1, keys, keys."""
    places = torch.arange(keys, device=last.device)
    return (places <= places[:, None]) & (places <= last[:, None, None, None])


def lstm(x: Tensor, weight_ih: Tensor, weight_hh: Tensor, *bias: Tensor) -> Tensor:
    """The whole sequence from a zero state; the gates are i, f, g, o."""
    state = x.new_zeros(1, len(x), weight_hh.shape[1])
    weights = [weight_ih, weight_hh, *bias]
    weights += [torch.zeros_like(b) for b in bias]  # torch has two biases
    return torch.lstm(
        x, (state, state), weights, len(bias) > 0, 1, 0.0, True, False, True
    )[0]


class Sequences(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.place = nn.Embedding(8, 4)
        self.rnn = nn.Module()
        self.rnn.kernel = nn.Parameter(torch.empty(16, 4))
        self.rnn.recurrent = nn.Parameter(torch.empty(16, 4))
        self.rnn.bias = nn.Parameter(torch.empty(16))
        self.bare = nn.LSTM(4, 4, bias=False, batch_first=True)
        self.deep = nn.ModuleDict({"full": nn.LSTM(4, 4, batch_first=True)})
        self.head = nn.Linear(24, 3)
        # One bias, as in other frameworks: torch's second one stays zero.
        nn.init.zeros_(self.deep.full.bias_hh_l0).requires_grad_(False)

    def forward(self, x: Tensor, last: Tensor) -> Tensor:
        x = x + self.place.weight[:6]
        x = lstm(x, self.rnn.kernel, self.rnn.recurrent, self.rnn.bias)
        x = self.bare(x)[0]
        x = self.deep.full(x)[0].unflatten(-1, (2, 2))
        mask = causal_padding_mask(last, 6)
        h = F.scaled_dot_product_attention(
            x.transpose(1, 2), x.transpose(1, 2), x.transpose(1, 2), attn_mask=mask
        ).transpose(1, 2)
        h = F.scaled_dot_product_attention(
            h.transpose(1, 2), x.transpose(1, 2), h.transpose(1, 2), is_causal=True
        ).transpose(1, 2)
        mask_2 = padding_mask(last, 6)
        h = F.scaled_dot_product_attention(
            h.transpose(1, 2), x.transpose(1, 2), x.transpose(1, 2), attn_mask=mask_2
        ).transpose(1, 2)
        u = F.scaled_dot_product_attention(
            h.transpose(1, 2), x.transpose(1, 2), h.transpose(1, 2), attn_mask=mask_2
        ).transpose(1, 2)
        x = F.scaled_dot_product_attention(
            u.transpose(1, 2), h.transpose(1, 2), x.transpose(1, 2)
        ).transpose(1, 2)
        x = x.flatten(1)
        return self.head(x)


def make_model() -> nn.Module:
    model = Sequences()
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
    x: Tensor,
    last: Tensor,
    y: Tensor,
) -> Tensor:
    optimizer.zero_grad(set_to_none=True)
    loss = F.cross_entropy(model(x, last), y)
    loss.backward()
    optimizer.step()
    return loss.detach()


def load_data(path: Path) -> tuple[Tensor, Tensor, Tensor]:
    tensors = load_file(path)
    x = tensors["x"].float()
    last = tensors["last"].long()
    y = tensors["y"].long()
    return x.to(device), last.to(device), y.to(device)


def batches(
    x: Tensor, last: Tensor, y: Tensor
) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
    """Endless batches in the order of the file; a partial last one is left out."""
    if len(x) < BATCH_SIZE:
        raise ValueError("the data has fewer rows than one batch")
    while True:
        for first in range(0, len(x) - BATCH_SIZE + 1, BATCH_SIZE):
            rows = slice(first, first + BATCH_SIZE)
            yield x[rows], last[rows], y[rows]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    here = Path(__file__).parent
    parser.add_argument("--data", type=Path, default=here / "data.safetensors")
    parser.add_argument("--weights", type=Path, default=here / "weights.safetensors")
    parser.add_argument("--steps", type=int, default=100)
    args = parser.parse_args()

    model = make_model()
    # Not strict: the LSTMs' second biases are not in the file.
    model.load_state_dict(load_file(args.weights), strict=False)
    optimizer = make_optimizer(model)
    data = load_data(args.data)
    for step, batch in enumerate(islice(batches(*data), args.steps)):
        loss = train_step(model, optimizer, *batch)
        if step % 10 == 0:
            print(f"step {step:5d}  loss {loss.item():.6f}")


if __name__ == "__main__":
    main()
