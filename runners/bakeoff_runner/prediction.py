"""Bursts and requests of the scenario "predict", the same for every adapter."""

from __future__ import annotations

import time
from typing import Any, Callable, Iterator

from bakeoff_runner.adapter import RunResult

__all__ = ["PREDICTION_NAMES", "predict_burst", "predict_request"]

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
    output = None
    start = time.monotonic_ns()
    for _ in range(steps):
        output = predict(*next(batches))
        mark()
    barrier(output)
    return RunResult(time.monotonic_ns() - start)


def predict_request(
    predict: Callable[..., Any],
    batches: Iterator[Any],
    barrier: Callable[[Any], None],
) -> Callable[[], None]:
    """One forward pass a call, whose output is complete when it returns."""

    def answer() -> None:
        barrier(predict(*next(batches)))

    return answer
