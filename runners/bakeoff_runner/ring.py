"""The ring of step marks: a small file mapped by the worker and its supervisor.

Layout, little-endian, 8-byte words::

    offset  0  magic     8 bytes  b"BKOFRING"
    offset  8  version   u32      1
    offset 12  header    u32      64, where the slots begin
    offset 16  capacity  u64      number of slots
    offset 24  count     u64      marks written since the file was made
    offset 32  reserved, zero
    offset 64  slots     i64[capacity]  CLOCK_MONOTONIC nanoseconds

Mark number k (from 0) is in slot k % capacity. The slot is written before the count;
there is one writer. A reader that falls behind by more than the capacity has lost the
oldest marks and can tell so from the count.
"""

from __future__ import annotations

import mmap
import os
import struct
import time
from pathlib import Path
from typing import Callable, Optional, Union

MAGIC = b"BKOFRING"
VERSION = 1
HEADER_SIZE = 64
_HEADER = struct.Struct("<8sIIQQ")
_COUNT_WORD = 3  # offset 24 in 8-byte words
_FIRST_SLOT_WORD = HEADER_SIZE // 8


class RingError(ValueError):
    """The file is not a ring this version understands."""


def create_ring(path: Union[str, Path], capacity: int) -> None:
    """Makes an empty ring (the supervisor's part; here for tests and by-hand use)."""
    header = _HEADER.pack(MAGIC, VERSION, HEADER_SIZE, capacity, 0)
    with open(path, "wb") as file:
        file.write(header.ljust(HEADER_SIZE, b"\0"))
        file.truncate(HEADER_SIZE + 8 * capacity)


def open_ring(path: Union[str, Path]) -> Callable[[], None]:
    """Maps the ring and returns `mark`, which stamps the present time into it.

    `mark` is a closure over a typed view of the mapping: two stores and one clock
    reading, about 0.2 us in CPython.
    """
    descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    try:
        size = os.fstat(descriptor).st_size
        if size < HEADER_SIZE:
            raise RingError(f"{path}: too short for a ring of step marks")
        mapping = mmap.mmap(descriptor, size)
    finally:
        os.close(descriptor)
    magic, version, header, capacity, count = _HEADER.unpack_from(mapping)
    if magic != MAGIC or version != VERSION or header != HEADER_SIZE:
        raise RingError(f"{path}: not a ring of step marks, version {VERSION}")
    if capacity < 1 or size < HEADER_SIZE + 8 * capacity:
        raise RingError(f"{path}: capacity {capacity} does not fit its size")
    words = memoryview(mapping).cast("q")
    now = time.monotonic_ns

    def mark() -> None:
        nonlocal count
        words[_FIRST_SLOT_WORD + count % capacity] = now()
        count += 1
        words[_COUNT_WORD] = count

    return mark


def read_ring(path: Union[str, Path], first: int = 0) -> list[int]:
    """Marks number `first` and later that are still there, oldest first."""
    raw = Path(path).read_bytes()
    _, _, _, capacity, count = _HEADER.unpack_from(raw)
    begin = max(first, count - capacity)
    slots = memoryview(raw)[HEADER_SIZE:].cast("q")
    return [slots[number % capacity] for number in range(begin, count)]


def no_mark() -> None:
    """Stands in for `mark` when the worker has no ring."""


def marker(path: Optional[str]) -> Callable[[], None]:
    """`mark` for the ring at `path`, or one that does nothing without a path."""
    return no_mark if path is None else open_ring(path)
