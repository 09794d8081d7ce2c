"""Trains lstm_lm_tied_small with PyTorch."""

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


class LstmLmTiedSmall(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.tokens = nn.Embedding(500, 64)
        self.dropout = nn.Dropout(p=0.5)
        self.lstm1 = nn.LSTM(64, 64, batch_first=True)
        self.lstm2 = nn.LSTM(64, 64, batch_first=True)
        self.decoder_bias = nn.Parameter(torch.empty(500))
        # One bias, as in other frameworks: torch's second one stays zero.
        nn.init.zeros_(self.lstm1.bias_hh_l0).requires_grad_(False)
        nn.init.zeros_(self.lstm2.bias_hh_l0).requires_grad_(False)

    def forward(self, tokens: Tensor) -> Tensor:
        x = self.tokens(tokens)
        x = self.dropout(x)
        x = self.lstm1(x)[0]
        x = self.dropout(x)
        x = self.lstm2(x)[0]
        x = self.dropout(x)
        return F.linear(x, self.tokens.weight, self.decoder_bias)


def make_model() -> nn.Module:
    model = LstmLmTiedSmall()
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
    model: nn.Module, optimizer: torch.optim.Optimizer, tokens: Tensor, labels: Tensor
) -> Tensor:
    optimizer.zero_grad(set_to_none=True)
    prediction = model(tokens)
    loss = F.cross_entropy(prediction.flatten(0, 1), labels.flatten())
    loss.backward()
    optimizer.step()
    return loss.detach()


def load_data(path: Path) -> tuple[Tensor, Tensor]:
    tensors = load_file(path)
    tokens = tensors["tokens"].long()
    labels = tensors["labels"].long()
    return tokens.to(device), labels.to(device)


def batches(tokens: Tensor, labels: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
    """Endless batches in the order of the file; a partial last one is left out."""
    if len(tokens) < BATCH_SIZE:
        raise ValueError("the data has fewer rows than one batch")
    while True:
        for first in range(0, len(tokens) - BATCH_SIZE + 1, BATCH_SIZE):
            rows = slice(first, first + BATCH_SIZE)
            yield tokens[rows], labels[rows]


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
