"""Bursts and requests of the scenario "predict", the same for every adapter."""

from __future__ import annotations

import time
from typing import Any, Callable, Iterator

from bakeoff_runner.adapter import RunResult

__all__ = ["PREDICTION_NAMES", "predict_burst", "predict_request"]

_MOST_KEPT = 1 << 28  # bytes of outputs

# What a script that predicts has to offer, in every idiom.
PREDICTION_NAMES = {
    "load_data": "load_data(path)",
    "batches": "batches(data)",
    "predict_step": "predict_step(model, *inputs)",
}


def predict_burst(
    predict: Callable[..., Any],
    batches: Iterator[Any],
    steps: int,
    mark: Callable[[], None],
    barrier: Callable[[Any], None],
) -> RunResult:
    """`steps` forward passes of `predict(*inputs)`; `barrier` gets the last output."""
    outputs: list[Any] = []
    kept = steps
    start = time.monotonic_ns()
    for _ in range(steps):
        outputs.append(predict(*next(batches)))
        mark()
        if len(outputs) == 1:
            kept = max(1, _MOST_KEPT // max(1, getattr(outputs[0], "nbytes", 1 << 20)))
        elif len(outputs) > kept:
            outputs.pop(0)
    barrier(outputs[-1])
    ns = time.monotonic_ns() - start
    return RunResult(ns, outputs=[_told(output) for output in outputs])


def _told(output: Any) -> tuple[int, float]:
    """Size and last element, which is of the last row."""
    import numpy as np

    while isinstance(output, (tuple, list)):
        output = output[-1]
    if hasattr(output, "detach"):  # torch
        return output.numel(), float(output.detach()[(-1,) * output.dim()])
    array = output.numpy() if hasattr(output, "numpy") else output
    array = np.asarray(array)
    return array.size, float(array[(-1,) * array.ndim])


def predict_request(
    predict: Callable[..., Any],
    batches: Iterator[Any],
    barrier: Callable[[Any], None],
) -> Callable[[], None]:
    """One forward pass a call, whose output is complete when it returns."""

    def answer() -> None:
        barrier(predict(*next(batches)))

    return answer
