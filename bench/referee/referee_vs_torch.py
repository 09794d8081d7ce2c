"""One float64 training step of the MNIST CNN: the referee against torch eager.

    TORCH_ENV/bin/python referee_vs_torch.py BUILD/bench/referee/referee_bench

Both take the same weights and batch and alternate step by step; their losses must
agree. Prints the median ratio referee / torch with its quartiles, and the referee's
peak memory. Exit status 1: above the limit, or the losses differ.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import torch
from safetensors.torch import load_file
from torch import nn
from torch.nn import functional as F

PEAK_KIB = 2048 * 1024
LAYERS = ["conv1", "conv2", "conv3", "conv4", "fc1", "fc2"]


def make_model(tensors: dict[str, torch.Tensor]) -> nn.Module:
    """The CNN of ``zoo::mnist_cnn`` with the given weights, in float64."""
    model = nn.Sequential()
    for name in LAYERS:
        weight = tensors[f"{name}.weight"]
        layer: nn.Module
        if weight.dim() == 4:
            layer = nn.Conv2d(weight.shape[1], weight.shape[0], 3)
        else:
            if name == "fc1":
                model.append(nn.Flatten())
            layer = nn.Linear(weight.shape[1], weight.shape[0])
        model.add_module(name, layer)
        if name != "fc2":
            model.append(nn.ReLU())
        if name == "conv2":
            model.append(nn.MaxPool2d(2))
    model.double()
    wanted = {k: v for k, v in tensors.items() if not k.startswith("input.")}
    model.load_state_dict(wanted)
    return model


def torch_stepper(tensors: dict[str, torch.Tensor]) -> Callable[[], float]:
    """A function that makes one step and gives the loss before it."""
    model = make_model(tensors)
    optimizer = torch.optim.RMSprop(model.parameters(), lr=1e-4, alpha=0.9, eps=1e-7)
    x, y = tensors["input.x"], tensors["input.y"]

    def step() -> float:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        return float(loss.item())

    return step


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("bench", type=Path, help="the program referee_bench")
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--pairs", type=int, default=8)
    parser.add_argument("--limit", type=float, default=3.0, help="largest good ratio")
    parser.add_argument("--quick", action="store_true", help="3 pairs")
    arguments = parser.parse_args()
    pairs = 3 if arguments.quick else arguments.pairs
    torch.set_num_threads(arguments.threads)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "problem.safetensors"
        command = [arguments.bench, "mnist_cnn", arguments.batch, arguments.threads]
        referee = subprocess.Popen(
            [*map(str, command), str(path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert referee.stdin is not None and referee.stdout is not None
        ratios = []
        step: Callable[[], float] | None = None
        for pair in range(pairs + 2):
            referee.stdin.write("\n")
            referee.stdin.flush()
            answer = referee.stdout.readline().split()
            ours, ours_ns, peak = float(answer[0]), int(answer[1]), int(answer[2])
            step = step or torch_stepper(load_file(path))
            start = time.perf_counter_ns()
            theirs = step()
            theirs_ns = time.perf_counter_ns() - start
            print(
                f"  pair {pair}: referee {ours_ns / 1e6:8.1f} ms  torch "
                f"{theirs_ns / 1e6:8.1f} ms  loss {ours:.12f}  difference "
                f"{ours - theirs:+.1e}"
            )
            if abs(ours - theirs) > 1e-10 * abs(theirs):
                print("referee / torch: the losses differ: MISSED")
                return 1
            if pair >= 2:  # two to warm up
                ratios.append(ours_ns / theirs_ns)
        referee.stdin.close()
        referee.wait()
    low, middle, high = statistics.quantiles(ratios, n=4)
    fast, small = middle <= arguments.limit, peak < PEAK_KIB
    print(
        f"referee / torch, float64 step: {middle:.2f}, quartiles {low:.2f} to "
        f"{high:.2f} (bar: at most {arguments.limit:g}) {'ok' if fast else 'MISSED'}"
    )
    print(
        f"referee, peak memory: {peak / 1024:.0f} MiB "
        f"(bar: below {PEAK_KIB // 1024} MiB) {'ok' if small else 'MISSED'}"
    )
    return 0 if fast and small else 1


if __name__ == "__main__":
    raise SystemExit(main())
