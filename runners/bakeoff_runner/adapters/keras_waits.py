"""How long Keras's `fit` waits for its batches, in its own iterators.

On JAX and torch the iterator of an epoch is timed where `fit` reads it. On TensorFlow
the compiled function reads it. Noting two times a batch in there, into a queue, made a
step of 1.8 ms 5% longer: so nothing is told of it.

Imported by keras_adapter.py only, and nothing of Keras before `watch`.
"""

from __future__ import annotations

import time
from importlib import import_module
from typing import TYPE_CHECKING, Any, Iterator

from bakeoff_runner.adapter import BatchWait

if TYPE_CHECKING:
    from bakeoff_runner.adapters.keras_backends import Backend
    from bakeoff_runner.adapters.keras_libraries import Library

__all__ = ["Waits", "watch"]


class Waits:
    """What the batches of one `fit` came after; the first of each epoch apart.

    The time that `fit` needs to open an epoch's iterator falls on its first batch.
    """

    def __init__(self) -> None:
        self.per_epoch = 1
        self._seen = self._opening = 0
        self._wait = BatchWait()

    def start(self, per_epoch: int) -> None:
        """Called when `fit` begins: its next batch is the first of an epoch."""
        self.take()
        self.per_epoch, self._seen = per_epoch, 0

    def opened(self, ns: int) -> None:
        self._opening += ns

    def came(self, ns: int) -> None:
        """A batch, after so long."""
        wait = self._wait
        if self._seen % self.per_epoch == 0:
            wait.firsts += 1
            wait.first_ns += ns + self._opening
            self._opening = 0
        else:
            wait.batches += 1
            wait.ns += ns
        self._seen += 1

    def take(self) -> BatchWait:
        """What came together since the last call."""
        wait, self._wait, self._opening = self._wait, BatchWait(), 0
        return wait


class _TimedSource:
    """What `fit` makes an epoch's iterator of."""

    def __init__(self, source: Any, waits: Waits) -> None:
        self._source, self._waits = source, waits

    def __iter__(self) -> Iterator[Any]:
        start = time.monotonic_ns()
        made = iter(self._source)
        self._waits.opened(time.monotonic_ns() - start)
        return _timed(made, self._waits)


def _timed(made: Iterator[Any], waits: Waits) -> Iterator[Any]:
    while True:
        start = time.monotonic_ns()
        try:
            batch = next(made)
        except StopIteration:
            return
        waits.came(time.monotonic_ns() - start)
        yield batch


# Of Keras 3: the class that makes the iterator of an epoch, where `fit` reads it.
_EPOCHS = {"jax": "JAXEpochIterator", "torch": "TorchEpochIterator"}


def watch(library: Library, backend: Backend) -> Waits:
    """From here on every `fit` of this process notes how long it waits, if it can."""
    waits = Waits()
    if library.framework == "keras" and backend.name in _EPOCHS:
        trainer = import_module(f"keras.src.backend.{backend.name}.trainer")
        epochs: Any = getattr(trainer, _EPOCHS[backend.name])
        source = epochs._get_iterator

        def timed_source(self: Any) -> _TimedSource:
            return _TimedSource(source(self), waits)

        epochs._get_iterator = timed_source
    return waits
