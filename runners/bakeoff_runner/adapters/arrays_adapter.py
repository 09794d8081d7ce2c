"""What adapters share whose scripts take NumPy arrays: JAX and TensorFlow.

Both get their data from `load_data` as arrays and their weights by canonical names,
and hand batches to compiled functions as `batches` yields them. What a device does with
them is not here. Real numbers of data and weights get the dtype of the build here and
nowhere else, so that a proof in float64 computes in float64 throughout; integers and
bools keep theirs, as they are ids, labels and masks.
"""

from __future__ import annotations

from typing import Any, Iterator, Optional

from bakeoff_runner.adapter import Array, BuildRequest
from bakeoff_runner.calls import Calls
from bakeoff_runner.layout import LayoutEntry, entry_for, read_layout, to_framework
from bakeoff_runner.pipeline import TimedBatches, hash_batches, timed_calls
from bakeoff_runner.script import ScriptAdapter, as_real
from bakeoff_runner.tensors import read_safetensors


class ArraysAdapter(ScriptAdapter):
    def __init__(self) -> None:
        self._dtype = "float32"
        self._data: tuple[Array, ...] = ()
        self._names: dict[str, tuple[LayoutEntry, tuple[int, ...]]] = {}
        self._output_perm: Optional[tuple[int, ...]] = None
        self._batches: Optional[TimedBatches] = None

    def _read_weights(self, request: BuildRequest) -> Optional[dict[str, Array]]:
        """By target, in the framework's layout; None without a file. Fills `_names`."""
        layout = read_layout(request.layout)
        weights: Optional[dict[str, Array]] = None
        if request.weights is not None:
            weights = {}
            for name, array in read_safetensors(request.weights).items():
                entry = entry_for(layout, name)
                weights[entry.target] = as_real(to_framework(array, entry), self._dtype)
                self._names[name] = entry, tuple(array.shape)
        if "output" in layout and "output" not in self._names:
            self._output_perm = layout["output"].perm
        return weights

    def _calls(self) -> Calls:
        return Calls(self._the_script())

    def _stream(self) -> TimedBatches:
        if self._batches is None:
            script = self._the_script()
            self._batches = timed_calls(script, self._data, self._calls())
        return self._batches

    def _held_by_devices(self, stream: Iterator[Any]) -> Iterator[Any]:
        """Batches as all devices together hold them."""
        return stream

    def batch_hashes(
        self, count: int, row_shapes: list[list[int]]
    ) -> Optional[list[str]]:
        self._batches = None
        stream = self._held_by_devices(self._stream())
        hashes = hash_batches(stream, self._calls(), count, row_shapes)
        self._batches = None
        return hashes

    def _canonical_output(self, array: Array) -> Array:
        import numpy as np

        if self._output_perm is not None:
            array = array.transpose(np.argsort(self._output_perm))
        return array
