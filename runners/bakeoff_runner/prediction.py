"""Bursts and requests of the scenario "predict", the same for every adapter."""

from __future__ import annotations

import math
import time
from typing import Any, Callable, Iterator, Sequence

from bakeoff_runner.adapter import AdapterError, RunResult
from bakeoff_runner.arrays import Array
from bakeoff_runner.transfers import Arrays

__all__ = ["PREDICTION_NAMES", "joined", "predict_burst", "predict_request"]

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
    arrays: Arrays,
) -> RunResult:
    """`steps` forward passes of `predict(*inputs)`; `barrier` gets the last output.

    An output has to be an array of numpy's or one of `arrays`, or a tuple of them.
    """
    outputs: list[Any] = []
    kept = steps
    start = time.monotonic_ns()
    for _ in range(steps):
        outputs.append(predict(*next(batches)))
        mark()
        if len(outputs) == 1:
            kept = max(1, _MOST_KEPT // max(1, _bytes(outputs[0])))
        elif len(outputs) > kept:
            outputs.pop(0)
    barrier(outputs[-1])
    ns = time.monotonic_ns() - start
    _told(outputs[-1], arrays)  # raises where it is no array
    return RunResult(ns, outputs=lambda: [_told(o, arrays) for o in outputs])


def _bytes(output: Any) -> int:
    """Of all that a step gave; a few tensors of frameworks tell their shape alone."""
    if isinstance(output, (tuple, list)):
        return sum(map(_bytes, output))
    if hasattr(output, "nbytes"):
        return int(output.nbytes)
    shape = getattr(output, "shape", (1 << 18,))
    return 4 * math.prod(shape() if callable(shape) else shape)


def _told(output: Any, arrays: Arrays) -> Sequence[Any]:
    """Size, last element (which is of the last row), sum of squares; of words all.

    Of several outputs those of all, side by side.
    """
    import numpy as np

    several = isinstance(output, (tuple, list))
    parts = [_numbers(part, arrays) for part in (output if several else [output])]
    words: tuple[Any, ...] = ()
    if np.issubdtype(parts[-1].dtype, np.integer):
        words, parts = (parts[-1].tolist(),), [p.astype(np.float64) for p in parts]
    size = sum(part.size for part in parts)
    square = sum(float(np.dot(part, part)) for part in parts)
    return (size, float(parts[-1][-1]), square, *words)


def _numbers(output: Any, arrays: Arrays) -> Array:
    import numpy as np

    kind = type(output)
    if kind is not np.ndarray and kind not in arrays:
        raise AdapterError(
            f"predict_step gives a {kind.__name__}: that is no array of numbers"
        )
    output = output if kind is np.ndarray else arrays[kind](output)
    array: Array = np.asarray(output).ravel()
    return array.astype(np.float32) if array.dtype.itemsize < 4 else array


def joined(output: Any, array: Callable[[Any], Array]) -> Array:
    """What a step predicts as one array: of several outputs the rows side by side."""
    import numpy as np

    if not isinstance(output, (tuple, list)):
        return array(output)
    parts = [array(part) for part in output]
    return np.concatenate([part.reshape(len(part), -1) for part in parts], axis=1)


def predict_request(
    predict: Callable[..., Any],
    batches: Iterator[Any],
    barrier: Callable[[Any], None],
) -> Callable[[], None]:
    """One forward pass a call, whose output is complete when it returns."""

    def answer() -> None:
        barrier(predict(*next(batches)))

    return answer
