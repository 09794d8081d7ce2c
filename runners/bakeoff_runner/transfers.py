"""How arrays get to a device and back, and how long a copy takes, by itself.

Timed from ordinary memory, as scripts copy, the device idle before and after. On an
accelerator this is part of a step, or hidden behind it: the number says of what size.
"""

from __future__ import annotations

import statistics
import time
from dataclasses import dataclass
from typing import Any, Callable, Mapping, NamedTuple, Sequence

from bakeoff_runner.arrays import Array

_BATCH_COPIES, _DATA_COPIES = 9, 3
_PIECE = 16 << 20  # bytes of data that lie on the device twice for a moment


@dataclass(frozen=True)
class Transfer:
    of: str  # "batch": what every step copies; "data": all rows, which stay there
    ns: int  # the median of several copies
    bytes: int


class Device(NamedTuple):
    copy: Callable[[Array], Any]  # from the host; may return before it is done
    wait: Callable[[Any], Any]  # until what was copied has arrived


# Types of a framework's finished arrays, and how each becomes one of numpy's.
Arrays = Mapping[type, Callable[[Any], Any]]


def time_batch(device: Device, arrays: Sequence[Array], steps: int = 1) -> Transfer:
    """Of `arrays`, the batches of several steps: a step's share."""
    _copy(device, arrays)  # the first one sets up buffers
    times = [_copy(device, arrays) for _ in range(_BATCH_COPIES)]
    size = sum(array.nbytes for array in arrays)
    return Transfer("batch", round(statistics.median(times) / steps), size // steps)


def time_data(device: Device, arrays: Sequence[Array]) -> Transfer:
    """Of all rows; piece by piece, since they lie on the device already."""
    pieces = [piece for array in arrays for piece in _pieces(array)]
    _copy(device, pieces[:1])
    times = [
        sum(_copy(device, [piece]) for piece in pieces) for _ in range(_DATA_COPIES)
    ]
    size = sum(array.nbytes for array in arrays)
    return Transfer("data", round(statistics.median(times)), size)


def _copy(device: Device, arrays: Sequence[Array]) -> int:
    start = time.monotonic_ns()
    device.wait([device.copy(array) for array in arrays])
    return time.monotonic_ns() - start


def _pieces(array: Array) -> list[Array]:
    rows = max(1, _PIECE * len(array) // max(1, array.nbytes))
    return [array[first : first + rows] for first in range(0, len(array), rows)]
