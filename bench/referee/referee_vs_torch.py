"""One float64 training step: the referee against torch eager.

    TORCH_ENV/bin/python referee_vs_torch.py [WORKLOAD...] [--build DIR] [--quick]

torch runs the emitted script of the recipe in float64, without dropout. Both take the
same weights and batch and alternate step by step; their losses must agree. A line a
workload: the median ratio referee / torch with its quartiles, and the referee's peak
memory. Exit status 1: above the limit, or the losses differ.
"""

from __future__ import annotations

import argparse
import importlib.util
import inspect
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from pairing.sides import emit
from safetensors.torch import load_file

PEAK_KIB = 2048 * 1024
# Largest good ratio.
LIMITS = {
    "mnist_cnn": 3.0,
    "alexnet_small": 5.0,
    "resnet18_small": 5.0,
    "resnet50_small": 5.0,
    "bert_small": 5.0,
    "lstm_lm_small": 5.0,
    "lstm_lm_tied_small": 5.0,
    # Of recipes/: those that draw no mask outside of a layer of their own.
    "vit_tiny": 5.0,
    "gemma_tiny": 5.0,
    "vae_tiny": 5.0,
    "dlrm_tiny": 5.0,
    "deep_speech_2_tiny": 5.0,
}


def load_script(path: Path) -> Any:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    return script


def torch_stepper(script: Any, tensors: dict[str, torch.Tensor]) -> Callable[[], float]:
    """A function that makes one step and gives the loss before it."""
    model = script.make_model().double()
    for module in model.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.0
    weights = {k: v for k, v in tensors.items() if not k.startswith("input.")}
    wrong = model.load_state_dict(weights, strict=False)
    assert not wrong.unexpected_keys, wrong
    trained = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.RMSprop(trained, lr=1e-4, alpha=0.9, eps=1e-7)
    _, _, *names = inspect.signature(script.train_step).parameters
    batch = [tensors["input." + name] for name in names]
    return lambda: float(script.train_step(model, optimizer, *batch).item())


class Referee:
    """The program referee_bench, a step on demand."""

    def __init__(self, command: list[str]) -> None:
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def step(self) -> tuple[float, int, int]:
        """Loss, nanoseconds, KiB of peak memory."""
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        loss, ns, peak = self.process.stdout.readline().split()
        return float(loss), int(ns), int(peak)

    def close(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait()


def compare(workload: str, options: argparse.Namespace, folder: Path) -> bool:
    contender = '{ framework = "torch" }'
    emit(options.build / "bakeoff", workload, folder, [contender])
    script = load_script(folder / "train_torch.py")
    path = folder / "problem.safetensors"
    program = options.build / "bench" / "referee" / "referee_bench"
    text = Path("recipes") / f"{workload}.ir"
    model = text if text.exists() else workload
    command = [program, model, script.BATCH_SIZE, options.threads, path]
    referee = Referee([str(word) for word in command])
    step: Callable[[], float] | None = None
    ratios = []
    warm = 2
    try:
        for pair in range(options.pairs + warm):
            ours, ours_ns, peak = referee.step()
            step = step or torch_stepper(script, load_file(path))
            start = time.perf_counter_ns()
            theirs = step()
            theirs_ns = time.perf_counter_ns() - start
            if abs(ours - theirs) > 1e-10 * abs(theirs):
                print(f"referee / torch, {workload}: {ours} and {theirs}: MISSED")
                return False
            if pair >= warm:
                ratios.append((ours_ns / theirs_ns, ours_ns / 1e6, theirs_ns / 1e6))
    finally:
        referee.close()
    low, middle, high = statistics.quantiles([r[0] for r in ratios], n=4)
    ours_ms, theirs_ms = (statistics.median(r[i] for r in ratios) for i in (1, 2))
    limit = LIMITS[workload]
    fast, small = middle <= limit, 0 < peak < PEAK_KIB
    print(
        f"referee / torch, float64 step of {workload}: {ours_ms:.1f} / {theirs_ms:.1f} "
        f"ms = {middle:.2f}, quartiles {low:.2f} to {high:.2f} (bar: at most "
        f"{limit:g}) {'ok' if fast else 'MISSED'}"
    )
    print(
        f"  its peak memory: {peak / 1024:.0f} MiB "
        f"(bar: below {PEAK_KIB // 1024} MiB) {'ok' if small else 'MISSED'}",
        flush=True,
    )
    return fast and small


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("workloads", nargs="*", metavar="WORKLOAD", default=[*LIMITS])
    parser.add_argument("--build", type=Path, default=Path("build/release"))
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--pairs", type=int, default=12)
    parser.add_argument("--quick", action="store_true", help="4 pairs")
    options = parser.parse_args()
    if not set(options.workloads) <= set(LIMITS):
        parser.error(f"there are {', '.join(LIMITS)}")
    if options.quick:
        options.pairs = 4
    torch.set_num_threads(options.threads)
    fine = True
    for workload in options.workloads:
        with tempfile.TemporaryDirectory() as folder:
            fine &= compare(workload, options, Path(folder))
    return 0 if fine else 1


if __name__ == "__main__":
    sys.exit(main())
