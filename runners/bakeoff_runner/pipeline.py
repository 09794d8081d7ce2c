"""How batches reach a training loop: the wait for each, and what is in it."""

from __future__ import annotations

import hashlib
import itertools
import time
from types import ModuleType
from typing import Any, Iterable, Iterator, Sequence

from bakeoff_runner.adapter import AdapterError, Array, BatchWait
from bakeoff_runner.calls import Calls

__all__ = [
    "TimedBatches",
    "batches_per_epoch",
    "digest",
    "endless",
    "hash_batches",
    "timed_calls",
]


class TimedBatches:
    """An iterator that notes how long the loop waits for what it gives.

    Where the loop and its device run side by side this is time of the loop alone. The
    first batch of an epoch, of `per_epoch` each (0: not known), is counted apart:
    shuffling, and starting worker processes, fall on it. Where several batches come at
    once, `each` of them, the wait is that of the first.
    """

    def __init__(self, batches: Iterator[Any], per_epoch: int, each: int = 1) -> None:
        self._next = batches.__next__
        self._per_epoch = per_epoch
        self._each = each
        self._left = 0  # batches of the epoch under way
        self._wait = BatchWait()

    def __iter__(self) -> TimedBatches:
        return self

    def __next__(self) -> Any:
        start = time.monotonic_ns()
        batch = self._next()
        waited = time.monotonic_ns() - start
        if self._left <= 0 and self._per_epoch > 0:
            self._left += self._per_epoch
            self._wait.firsts += 1
            self._wait.first_ns += waited
            self._wait.batches += self._each - 1
        else:
            self._wait.batches += self._each
            self._wait.ns += waited
        self._left -= self._each
        return batch

    def take(self) -> BatchWait:
        """What came together since the last call."""
        wait, self._wait = self._wait, BatchWait()
        return wait


def batches_per_epoch(script: ModuleType, data: Sequence[Any]) -> int:
    """Whole batches of ``BATCH_SIZE`` in the rows of `data`; 0: not known."""
    batch = getattr(script, "BATCH_SIZE", 0)
    rows = min((len(array) for array in data), default=0)
    return rows // batch if batch else 0


def endless(
    batches: Iterable[Any], script: ModuleType, data: Sequence[Any], each: int = 1
) -> Iterator[Any]:
    """`batches` of the script, whose end is an error that says why.

    Where a call takes several batches at once, `each` of them.
    """
    batch = getattr(script, "BATCH_SIZE", 0)
    rows = min((len(array) for array in data), default=0)
    if rows < batch:
        raise AdapterError(f"the data has {rows} rows, a batch {batch}")

    def end() -> Iterator[Any]:
        takes = f"{each} batches" if each > 1 else "a batch"
        raise AdapterError(
            f"batches() came to its end: it must be endless, and a call takes {takes}"
            + (f" of {batch} rows, of which the data has {rows}" if batch else "")
        )
        yield

    return itertools.chain(batches, end())


def timed_calls(script: ModuleType, data: Sequence[Any], calls: Calls) -> TimedBatches:
    """The script's batches over `data`, of which each call of `calls` takes several."""
    whole = batches_per_epoch(script, data)
    per_epoch = whole - whole % calls.steps
    batches = endless(script.batches(data), script, data, calls.steps)
    return TimedBatches(batches, per_epoch, calls.steps)


def hash_batches(
    stream: Iterator[Any], calls: Calls, count: int, row_shapes: list[list[int]]
) -> list[str]:
    """Digests of the first `count` batches of a stream that feeds `calls`."""
    hashes: list[str] = []
    while len(hashes) < count:
        hashes += [digest(part, row_shapes) for part in calls.batches(next(stream))]
    return hashes[:count]


def digest(arrays: Iterable[Array], row_shapes: Sequence[Sequence[int]]) -> str:
    """SHA-256 of one batch, the same in every framework and layout.

    Each array as float32 or int32, little-endian, row-major; one whose rows have none
    of the workload's `row_shapes` unless their last axis comes first is turned so. The
    batch's hash is that of the sorted hashes of its arrays, in hex, equal ones once: a
    target of several losses may come for each of them.
    """
    parts = sorted(
        {hashlib.sha256(_canonical(array, row_shapes)).hexdigest() for array in arrays}
    )
    return hashlib.sha256("".join(parts).encode()).hexdigest()


def _canonical(array: Array, row_shapes: Sequence[Sequence[int]]) -> bytes:
    import numpy as np

    known = [tuple(shape) for shape in row_shapes]
    if tuple(array.shape[1:]) not in known:
        turned = np.moveaxis(array, -1, 1) if array.ndim > 2 else array
        if tuple(turned.shape[1:]) not in known:
            raise AdapterError(
                f"a batch has rows of shape {list(array.shape[1:])}, the workload has "
                f"{[list(shape) for shape in known]}"
            )
        array = turned
    real = np.issubdtype(array.dtype, np.floating)
    data: bytes = np.ascontiguousarray(array, dtype="<f4" if real else "<i4").tobytes()
    return data
