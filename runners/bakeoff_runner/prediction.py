"""Bursts and requests of the scenario "predict", the same for every adapter."""

from __future__ import annotations

import sys
import time
from typing import Any, Callable, Iterator

from bakeoff_runner.adapter import AdapterError, RunResult

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
    kinds = _array_types()
    return RunResult(ns, outputs=[_told(output, kinds) for output in outputs])


def _array_types() -> tuple[type, ...]:
    """Types of finished arrays, of the frameworks that are here."""
    import numpy as np

    made: dict[str, Callable[[Any], Any]] = {
        "torch": lambda torch: torch.Tensor,
        "tensorflow": lambda tf: type(tf.constant(0)),
        "jax": lambda jax: type(jax.numpy.zeros(())),
        "onnxruntime": lambda ort: ort.OrtValue,
    }
    here = {name: sys.modules.get(name) for name in made}
    found = [made[name](module) for name, module in here.items() if module is not None]
    return (np.ndarray, *found)


def _told(output: Any, kinds: tuple[type, ...]) -> tuple[int, float, float]:
    """Size, last element (which is of the last row), and sum of squares."""
    import numpy as np

    while isinstance(output, (tuple, list)):
        output = output[-1]
    if type(output) not in kinds:
        raise AdapterError(
            f"predict_step gives a {type(output).__name__}: that is no array of numbers"
        )
    if hasattr(output, "detach"):  # torch
        output = output.detach().cpu()
        output = output if output.element_size() > 2 else output.float()
    elif type(output).__name__ == "OrtValue":
        output = output.numpy()
    array = np.asarray(output).ravel()
    if array.dtype.itemsize < 4:
        array = array.astype(np.float32)
    return array.size, float(array[-1]), float(np.dot(array, array))


def predict_request(
    predict: Callable[..., Any],
    batches: Iterator[Any],
    barrier: Callable[[Any], None],
) -> Callable[[], None]:
    """One forward pass a call, whose output is complete when it returns."""

    def answer() -> None:
        barrier(predict(*next(batches)))

    return answer
