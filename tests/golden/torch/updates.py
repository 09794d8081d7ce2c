"""Trains mlp_small with PyTorch."""

import argparse
import math
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import torch
import torch.nn.functional as F
from safetensors.torch import load_file
from torch import Tensor, nn

BATCH_SIZE = 1000
LEARNING_RATE = 0.1
WARMUP_STEPS = 10
WARMUP_FROM = 0.1
DECAY_STEPS = 90
FINAL_SHARE = 0.01
CLIP_NORM = 1.0
EMA_DECAY = 0.99
ACCUMULATE = 4
NO_DECAY = ("fc1.bias", "fc2.bias")

device = "cuda" if torch.cuda.is_available() else "cpu"
torch.backends.cuda.matmul.fp32_precision = "ieee"  # no TF32 on GPUs
torch.backends.cudnn.conv.fp32_precision = "ieee"
torch.backends.cudnn.rnn.fp32_precision = "ieee"


class MlpSmall(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.fc1 = nn.Linear(100, 128)
        self.fc2 = nn.Linear(128, 10)

    def forward(self, x: Tensor) -> Tensor:
        x = F.relu(self.fc1(x))
        return self.fc2(x)


def make_model() -> nn.Module:
    model = MlpSmall()
    model.to(device)
    return model


def learning_rate(step: int) -> float:
    """That of a step; steps are counted from 0."""
    if step < WARMUP_STEPS:
        return LEARNING_RATE * (WARMUP_FROM + (1 - WARMUP_FROM) * step / WARMUP_STEPS)
    after = step - WARMUP_STEPS
    done = min(after / DECAY_STEPS, 1.0)
    share = FINAL_SHARE + (1 - FINAL_SHARE) * (1 + math.cos(math.pi * done)) / 2
    return LEARNING_RATE * share


def parameter_groups(model: nn.Module) -> list[dict]:
    """Those that decay, and those that do not."""
    named = dict(model.named_parameters())
    kept = [named.pop(name) for name in NO_DECAY]
    return [
        {"params": list(named.values())},
        {"params": kept, "weight_decay": 0.0},
    ]


def clip_gradients(model: nn.Module) -> None:
    """Multiplies all gradients with min(1, CLIP_NORM / norm).

    nn.utils.clip_grad_norm_ adds 1e-6 to the norm.
    """
    grads = [p.grad for p in model.parameters() if p.grad is not None]
    norm = nn.utils.get_total_norm(grads)
    torch._foreach_mul_(grads, (CLIP_NORM / norm).clamp(max=1))


def make_optimizer(model: nn.Module) -> torch.optim.Optimizer:
    optimizer = torch.optim.SGD(
        parameter_groups(model),
        lr=LEARNING_RATE,
        momentum=0.9,
        nesterov=False,
        weight_decay=0.01,
    )
    optimizer.schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda step: learning_rate(step) / LEARNING_RATE
    )
    optimizer.average = torch.optim.swa_utils.AveragedModel(
        model, multi_avg_fn=torch.optim.swa_utils.get_ema_multi_avg_fn(EMA_DECAY)
    )
    return optimizer


def train_step(
    model: nn.Module, optimizer: torch.optim.Optimizer, *batch: Tensor
) -> Tensor:
    optimizer.zero_grad(set_to_none=True)
    losses = []
    parts = zip(*(t.chunk(ACCUMULATE) for t in batch), strict=True)
    for x, y in parts:
        loss = F.cross_entropy(model(x), y)
        loss = loss / ACCUMULATE
        loss.backward()
        losses.append(loss.detach())
    clip_gradients(model)
    optimizer.step()
    optimizer.schedule.step()
    optimizer.average.update_parameters(model)
    return torch.stack(losses).sum()


def load_data(path: Path) -> tuple[Tensor, Tensor]:
    tensors = load_file(path)
    x = tensors["x"].float()
    y = tensors["y"].long()
    return x.to(device), y.to(device)


def batches(x: Tensor, y: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
    """Endless batches in the order of the file; a partial last one is left out."""
    if len(x) < BATCH_SIZE:
        raise ValueError("the data has fewer rows than one batch")
    while True:
        for first in range(0, len(x) - BATCH_SIZE + 1, BATCH_SIZE):
            rows = slice(first, first + BATCH_SIZE)
            yield x[rows], y[rows]


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
