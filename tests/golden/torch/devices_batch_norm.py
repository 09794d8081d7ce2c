"""Trains mlp_deep with PyTorch on 4 devices."""

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
torch.manual_seed(1 + RANK)


class MeanOverDevices(torch.autograd.Function):
    """The gradients of all devices' losses come back."""

    @staticmethod
    def forward(ctx, x: Tensor) -> Tensor:
        x = x / dist.get_world_size()
        dist.all_reduce(x)
        return x

    @staticmethod
    def backward(ctx, grad: Tensor) -> Tensor:
        return MeanOverDevices.forward(ctx, grad)


class SyncedBatchNorm(nn.modules.batchnorm._BatchNorm):
    """Trains with the statistics of all devices' rows; nn.SyncBatchNorm needs GPUs."""

    def forward(self, x: Tensor) -> Tensor:
        axes, shape = [0, *range(2, x.dim())], [-1] + [1] * (x.dim() - 2)
        mean = MeanOverDevices.apply(x.mean(axes))
        x = x - mean.view(shape)
        var = MeanOverDevices.apply(x.square().mean(axes))
        count = dist.get_world_size() * x.numel() / x.shape[1]
        with torch.no_grad():
            self.running_mean.lerp_(mean, self.momentum)
            self.running_var.lerp_(var * (count / (count - 1)), self.momentum)
        scale = self.weight * torch.rsqrt(var + self.eps)
        return x * scale.view(shape) + self.bias.view(shape)


class MlpDeep(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.fc1 = nn.Linear(100, 256)
        self.bn1 = SyncedBatchNorm(256, eps=1e-5, momentum=0.1)
        self.dropout = nn.Dropout(p=0.5)
        self.fc2 = nn.Linear(256, 128)
        self.bn2 = SyncedBatchNorm(128, eps=1e-5, momentum=0.1)
        self.fc3 = nn.Linear(128, 10)

    def forward(self, x: Tensor) -> Tensor:
        x = F.relu(self.bn1(self.fc1(x)))
        x = self.dropout(x)
        x = F.relu(self.bn2(self.fc2(x)))
        x = self.dropout(x)
        return self.fc3(x)


def make_model() -> nn.Module:
    model = MlpDeep()
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
    model: nn.Module, optimizer: torch.optim.Optimizer, x: Tensor, y: Tensor
) -> Tensor:
    optimizer.zero_grad(set_to_none=True)
    loss = F.cross_entropy(model(x), y)
    loss.backward()
    optimizer.step()
    return loss.detach()


def load_data(path: Path) -> tuple[Tensor, Tensor]:
    tensors = load_file(path)
    x = tensors["x"].float()
    y = tensors["y"].long()
    return x.to(device), y.to(device)


def batches(x: Tensor, y: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
    """Endless batches in the order of the file, of each this device's rows."""
    if len(x) < BATCH_SIZE:
        raise ValueError("the data has fewer rows than one batch")
    share = BATCH_SIZE // DEVICES
    while True:
        for first in range(0, len(x) - BATCH_SIZE + 1, BATCH_SIZE):
            mine = first + RANK * share
            rows = slice(mine, mine + share)
            yield x[rows], y[rows]


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
    # Not strict: BatchNorm's num_batches_tracked is not in the file.
    model.load_state_dict(load_file(args.weights), strict=False)
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
