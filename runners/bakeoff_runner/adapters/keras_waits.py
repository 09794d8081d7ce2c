"""How long Keras's `fit` waits for its batches, in its own iterators.

On JAX and torch the iterator of an epoch is timed where `fit` reads it. On TensorFlow
the compiled function reads it: while the function is traced, a time is noted before and
after each batch, and both go into a queue on the host that is emptied between bursts.
These are three small operations a step; the source of the batches stays what it is.

Imported by keras_adapter.py only, and nothing of Keras before `watch`.
"""

from __future__ import annotations

import time
from importlib import import_module
from typing import TYPE_CHECKING, Any, Callable, Iterator

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


class GraphWaits(Waits):
    """The same, noted by TensorFlow's compiled functions themselves."""

    def __init__(self) -> None:
        super().__init__()
        import tensorflow as tf

        with tf.device("CPU:0"):
            # Before, after, whether there was a batch at all; without limit.
            kinds = [tf.float64, tf.float64, tf.bool]
            self._queue: Any = tf.queue.FIFOQueue(-1, kinds, shapes=[()] * len(kinds))

    def take(self) -> BatchWait:
        if count := int(self._queue.size()):
            noted = (part.numpy() for part in self._queue.dequeue_many(count))
            for before, after, there in zip(*noted):
                if there:
                    self.came(round(1e9 * (after - before)))
        return super().take()

    def stamp_graphs(self) -> None:
        """From here on every function that is traced notes its waits."""
        import tensorflow as tf

        iterator: Any = type(iter(tf.data.Dataset.range(1)))
        next_batch = iterator._next_internal
        next_optional = iterator.get_next_as_optional

        def timed_batch(iterator: Any) -> Any:
            return self._stamped(iterator, next_batch, lambda batch: tf.constant(True))

        def timed_optional(iterator: Any) -> Any:
            return self._stamped(
                iterator, next_optional, lambda optional: optional.has_value()
            )

        iterator._next_internal = timed_batch
        iterator.get_next_as_optional = timed_optional

    def _stamped(
        self, iterator: Any, read: Callable[[Any], Any], is_there: Callable[[Any], Any]
    ) -> Any:
        import tensorflow as tf

        if tf.executing_eagerly():
            return read(iterator)
        with tf.device("CPU:0"):
            before = tf.timestamp()
        with tf.control_dependencies([before]):
            batch = read(iterator)
        leaves = tf.nest.flatten(batch, expand_composites=True)
        parts = [leaf for leaf in leaves if leaf is not None]
        with tf.device("CPU:0"), tf.control_dependencies(parts):
            self._queue.enqueue([before, tf.timestamp(), is_there(batch)])
        return batch


class _TimedSource:
    """What `fit` makes an epoch's iterator of."""

    def __init__(self, source: Any, waits: Waits, inside: bool) -> None:
        self._source, self._waits, self._inside = source, waits, inside

    def __iter__(self) -> Iterator[Any]:
        start = time.monotonic_ns()
        made = iter(self._source)
        self._waits.opened(time.monotonic_ns() - start)
        return made if self._inside else _timed(made, self._waits)


def _timed(made: Iterator[Any], waits: Waits) -> Iterator[Any]:
    while True:
        start = time.monotonic_ns()
        try:
            batch = next(made)
        except StopIteration:
            return
        waits.came(time.monotonic_ns() - start)
        yield batch


# Of Keras 3: the class that makes the iterator of an epoch, for each backend.
_EPOCHS = {
    "tensorflow": "TFEpochIterator",
    "jax": "JAXEpochIterator",
    "torch": "TorchEpochIterator",
}


def watch(library: Library, backend: Backend) -> Waits:
    """From here on every `fit` of this process notes how long it waits."""
    inside = backend.name == "tensorflow"  # the compiled function reads its batches
    waits = GraphWaits() if inside else Waits()
    if isinstance(waits, GraphWaits):
        waits.stamp_graphs()
    if library.framework == "keras":
        trainer = import_module(f"keras.src.backend.{backend.name}.trainer")
        epochs: Any = getattr(trainer, _EPOCHS[backend.name])
        source = epochs._get_iterator

        def timed_source(self: Any) -> _TimedSource:
            return _TimedSource(source(self), waits, inside)

        epochs._get_iterator = timed_source
    return waits
