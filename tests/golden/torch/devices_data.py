"""Trains losses with PyTorch on 4 devices."""

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
from torch.nn.parallel import DistributedDataParallel

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


class Losses(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.trunk = nn.Conv2d(2, 2, kernel_size=3, padding=1)
        self.decoder = nn.Conv2d(2, 2, kernel_size=1)
        self.head = nn.Linear(32, 5)
        self.aux = nn.Linear(32, 5)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        x = F.relu(self.trunk(x))
        h = self.decoder(x)
        x = x.flatten(1)
        u = self.head(x)
        x = self.aux(x)
        return u, x, h


def make_model() -> nn.Module:
    model = Losses()
    model.to(device)
    return model


def distribute(model: nn.Module) -> nn.Module:
    """A model whose gradients are means over all devices."""
    return DistributedDataParallel(model)


def make_optimizer(model: nn.Module) -> torch.optim.Optimizer:
    return torch.optim.Adam(
        model.parameters(),
        lr=LEARNING_RATE,
        betas=(0.9, 0.999),
        eps=1e-8,
        weight_decay=0.0,
    )


def train_step(
    model: nn.Module, optimizer: torch.optim.Optimizer, x: Tensor, y: Tensor, t: Tensor
) -> Tensor:
    optimizer.zero_grad(set_to_none=True)
    logits, output_2, picture = model(x)
    main_loss = F.cross_entropy(logits, y, ignore_index=-100, reduction="sum")
    count = (y != -100).sum()
    dist.all_reduce(count)  # of all devices
    main_loss = DEVICES * main_loss / count.clamp(min=1)
    aux_loss = F.cross_entropy(
        output_2, y, ignore_index=-100, reduction="sum", label_smoothing=0.1
    )
    count_2 = (y != -100).sum()
    dist.all_reduce(count_2)  # of all devices
    aux_loss = DEVICES * aux_loss / count_2.clamp(min=1)
    error = F.mse_loss(picture, t)
    part = F.l1_loss(picture, t, reduction="sum")
    part = DEVICES * part  # gradients are means
    loss = main_loss + 0.3 * aux_loss + error - 0.001 * part
    loss.backward()
    optimizer.step()
    return loss.detach()


def load_data(path: Path) -> tuple[Tensor, Tensor, Tensor]:
    tensors = load_file(path)
    x = tensors["x"].float()
    y = tensors["y"].long()
    t = tensors["t"].float()
    return x.to(device), y.to(device), t.to(device)


def batches(x: Tensor, y: Tensor, t: Tensor) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
    """Endless batches in the order of the file, of each this device's rows."""
    if len(x) < BATCH_SIZE:
        raise ValueError("the data has fewer rows than one batch")
    share = BATCH_SIZE // DEVICES
    while True:
        for first in range(0, len(x) - BATCH_SIZE + 1, BATCH_SIZE):
            mine = first + RANK * share
            rows = slice(mine, mine + share)
            yield x[rows], y[rows], t[rows]


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
