"""Trains bert_small with PyTorch on 4 devices."""

import argparse
import os
import sys
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import torch
import torch.distributed as dist
import torch.nn.functional as F
from safetensors.torch import load_file
from torch import Tensor, nn
from torch.distributed.fsdp import fully_shard

BATCH_SIZE = 1000  # rows of all devices together
DEVICES = 4
LEARNING_RATE = 0.001

device = "cuda" if torch.cuda.is_available() else "cpu"
RANK = int(os.environ.get("RANK", "0"))  # of this process, set by torchrun
if device == "cuda":
    torch.cuda.set_device(RANK)
torch.backends.cuda.matmul.fp32_precision = "ieee"  # no TF32 on GPUs
torch.backends.cudnn.conv.fp32_precision = "ieee"
torch.backends.cudnn.rnn.fp32_precision = "ieee"
torch.manual_seed(1 + RANK)


def padding_mask(last: Tensor, keys: int) -> Tensor:
    """True up to the last token of each row: N, 1, 1, keys."""
    return torch.arange(keys, device=last.device) <= last[:, None, None, None]


class Attention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.query = nn.Linear(64, 64)
        self.key = nn.Linear(64, 64)
        self.value = nn.Linear(64, 64)
        self.output = nn.Linear(64, 64)
        self.dropout = nn.Dropout(p=0.1)
        self.norm = nn.LayerNorm(64, eps=1e-12)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        q = self.query(x).unflatten(-1, (4, 16))
        k = self.key(x).unflatten(-1, (4, 16))
        v = self.value(x).unflatten(-1, (4, 16))
        h = F.scaled_dot_product_attention(
            q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2), attn_mask=mask
        ).transpose(1, 2)
        h = h.flatten(2)
        h = self.output(h)
        h = self.dropout(h)
        x = x + h
        return self.norm(x)


class EncoderBlock(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.attention = Attention()
        self.intermediate = nn.Linear(64, 256)
        self.output = nn.Linear(256, 64)
        self.dropout = nn.Dropout(p=0.1)
        self.norm = nn.LayerNorm(64, eps=1e-12)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        x = self.attention(x, mask)
        h = F.gelu(self.intermediate(x))
        h = self.output(h)
        h = self.dropout(h)
        x = x + h
        return self.norm(x)


class Head(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.dense = nn.Linear(64, 64)
        self.norm = nn.LayerNorm(64, eps=1e-12)

    def forward(self, x: Tensor) -> Tensor:
        x = F.gelu(self.dense(x))
        return self.norm(x)


class BertSmall(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embeddings = nn.ModuleDict(
            {
                "word": nn.Embedding(500, 64),
                "token_type": nn.Embedding(2, 64),
                "position": nn.Embedding(32, 64),
                "norm": nn.LayerNorm(64, eps=1e-12),
            }
        )
        self.dropout = nn.Dropout(p=0.1)
        self.encoder = nn.ModuleList([EncoderBlock() for _ in range(2)])
        self.head = Head()
        self.decoder_bias = nn.Parameter(torch.empty(500))

    def forward(self, tokens: Tensor, token_types: Tensor, last: Tensor) -> Tensor:
        x = self.embeddings.word(tokens)
        h = self.embeddings.token_type(token_types)
        x = x + h
        x = x + self.embeddings.position.weight[:24]
        x = self.embeddings.norm(x)
        x = self.dropout(x)
        mask = padding_mask(last, 24)
        for block in self.encoder:
            x = block(x, mask)
        x = self.head(x)
        return F.linear(x, self.embeddings.word.weight, self.decoder_bias)


def make_model() -> nn.Module:
    model = BertSmall()
    model.to(device)
    return model


def distribute(model: nn.Module) -> nn.Module:
    """Splits parameters, gradients and the optimizer's state among all devices."""
    for module in reversed(list(model.modules())):
        if isinstance(module, (Attention, EncoderBlock, Head)):
            fully_shard(module)
    return fully_shard(model)


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
    tokens: Tensor,
    token_types: Tensor,
    last: Tensor,
    labels: Tensor,
) -> Tensor:
    optimizer.zero_grad(set_to_none=True)
    prediction = model(tokens, token_types, last)
    loss = F.cross_entropy(prediction.flatten(0, 1), labels.flatten())
    loss.backward()
    optimizer.step()
    return loss.detach()


def load_data(path: Path) -> tuple[Tensor, ...]:
    tensors = load_file(path)
    tokens = tensors["tokens"].long()
    token_types = tensors["token_types"].long()
    last = tensors["last"].long()
    labels = tensors["labels"].long()
    return tokens.to(device), token_types.to(device), last.to(device), labels.to(device)


def batches(
    tokens: Tensor, token_types: Tensor, last: Tensor, labels: Tensor
) -> Iterator[tuple[Tensor, ...]]:
    """Endless batches in the order of the file, of each this device's rows."""
    if len(tokens) < BATCH_SIZE:
        raise ValueError("the data has fewer rows than one batch")
    share = BATCH_SIZE // DEVICES
    while True:
        for first in range(0, len(tokens) - BATCH_SIZE + 1, BATCH_SIZE):
            mine = first + RANK * share
            rows = slice(mine, mine + share)
            yield tokens[rows], token_types[rows], last[rows], labels[rows]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    here = Path(__file__).parent
    parser.add_argument("--data", type=Path, default=here / "data.safetensors")
    parser.add_argument("--weights", type=Path, default=here / "weights.safetensors")
    parser.add_argument("--steps", type=int, default=100)
    args = parser.parse_args()
    if os.environ.get("WORLD_SIZE") != str(DEVICES):
        torchrun = f"torchrun --standalone --nproc-per-node {DEVICES} {__file__}"
        parser.error(f"start one process for each device: {torchrun}")
    dist.init_process_group("nccl" if device == "cuda" else "gloo")

    model = make_model()
    model.load_state_dict(load_file(args.weights))
    replica = distribute(model)
    optimizer = make_optimizer(model)
    data = load_data(args.data)
    for step, batch in enumerate(islice(batches(*data), args.steps)):
        loss = train_step(replica, optimizer, *batch)
        if step % 10 == 0:
            dist.all_reduce(loss)
            if RANK == 0:
                print(f"step {step:5d}  loss {loss.item() / DEVICES:.6f}")
    dist.destroy_process_group()
    if device == "cpu":  # Threads of gloo may outlive Python, which aborts then.
        sys.stdout.flush()
        os._exit(0)


if __name__ == "__main__":
    main()
