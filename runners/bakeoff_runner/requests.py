"""Requests that arrive independently of the answers, and when each was answered.

One server: a request is begun when it has arrived and the one before is answered. An
open loop fixes all arrival times beforehand and does not wait for answers; so a slow
answer makes later requests wait, and that wait is measured. In single stream the next
request arrives when the previous one is answered.

Files hold little-endian 64-bit integers, nanoseconds since the beginning: of arrivals
one a request, of what was served the start and the end of each.
"""

from __future__ import annotations

import os
import sys
import time
from array import array
from dataclasses import dataclass
from pathlib import Path
from typing import Callable, Optional, Sequence

__all__ = ["Served", "read_arrivals", "serve", "write_times"]

# A sleep ends tens of microseconds late: the rest is waited for awake.
_AWAKE_NS = 1_000_000


@dataclass(frozen=True)
class Served:
    """Nanoseconds since the beginning, one of each a request that was answered."""

    start: array[int]
    end: array[int]
    ns: int  # from the beginning until after the last answer


def serve(
    answer: Callable[[], None],
    arrivals: Optional[Sequence[int]],
    requests: int,
    limit_ns: int,
) -> Served:
    """Answers `requests` requests, fewer once `limit_ns` are over.

    `arrivals`: nanoseconds since the beginning, ascending; None: single stream.
    """
    start = array("q", bytes(8 * requests))
    end = array("q", bytes(8 * requests))
    clock = time.monotonic_ns
    served = 0
    zero = clock()
    for i in range(requests):
        if arrivals is not None:
            _wait_until(zero + arrivals[i])
        begin = clock()
        answer()
        done = clock()
        start[i] = begin - zero
        end[i] = done - zero
        served = i + 1
        if end[i] >= limit_ns:
            break
    return Served(start[:served], end[:served], clock() - zero)


def read_arrivals(path: Path, requests: int) -> array[int]:
    """The arrival times of `requests` requests, ascending; a ValueError otherwise."""
    times = array("q")
    times.frombytes(path.read_bytes())
    if sys.byteorder == "big":
        times.byteswap()
    if len(times) != requests:
        raise ValueError(f"{path} holds {len(times)} arrivals, not {requests}")
    if any(later < earlier for earlier, later in zip(times, times[1:])):
        raise ValueError(f"{path}: the arrivals do not ascend")
    return times


def write_times(path: Path, served: Served) -> None:
    """Start and end of every request; complete when it appears under its name."""
    times = array("q")
    for pair in zip(served.start, served.end):
        times.extend(pair)
    if sys.byteorder == "big":
        times.byteswap()
    partial = path.with_name(f"{path.name}.{os.getpid()}.part")
    partial.write_bytes(times.tobytes())
    os.replace(partial, path)


def _wait_until(moment: int) -> None:
    while (left := moment - time.monotonic_ns()) > 0:
        if left > 2 * _AWAKE_NS:
            time.sleep((left - _AWAKE_NS) / 1e9)
