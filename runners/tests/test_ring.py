"""The ring of step marks."""

from __future__ import annotations

import struct
import time
from pathlib import Path

import pytest

from bakeoff_runner.ring import RingError, create_ring, marker, open_ring, read_ring


def test_layout_is_the_documented_one(tmp_path: Path) -> None:
    path = tmp_path / "ring"
    create_ring(path, 4)
    mark = open_ring(path)
    begin = time.monotonic_ns()
    mark()
    mark()
    end = time.monotonic_ns()
    raw = path.read_bytes()
    assert len(raw) == 64 + 4 * 8
    assert struct.unpack_from("<8sIIQQ", raw) == (b"BKOFRING", 1, 64, 4, 2)
    first, second = struct.unpack_from("<2q", raw, 64)
    assert begin <= first <= second <= end


def test_wraps_around(tmp_path: Path) -> None:
    path = tmp_path / "ring"
    create_ring(path, 3)
    mark = open_ring(path)
    for _ in range(8):
        mark()
    marks = read_ring(path)
    assert len(marks) == 3
    assert marks == sorted(marks)
    assert read_ring(path, first=7) == marks[2:]


def test_goes_on_where_a_former_writer_stopped(tmp_path: Path) -> None:
    path = tmp_path / "ring"
    create_ring(path, 8)
    open_ring(path)()
    open_ring(path)()
    assert len(read_ring(path)) == 2


def test_without_a_ring_marks_go_nowhere() -> None:
    marker(None)()


@pytest.mark.parametrize(
    "raw",
    [
        b"short",
        b"x" * 100,
        struct.pack("<8sIIQQ", b"BKOFRING", 2, 64, 1, 0) + bytes(40),
        struct.pack("<8sIIQQ", b"BKOFRING", 1, 64, 9, 0) + bytes(40),
        struct.pack("<8sIIQQ", b"BKOFRING", 1, 64, 0, 0) + bytes(40),
    ],
)
def test_foreign_files_are_refused(tmp_path: Path, raw: bytes) -> None:
    path = tmp_path / "ring"
    path.write_bytes(raw)
    with pytest.raises(RingError):
        open_ring(path)
