"""Copies to a device that is none: a clock that every copy moves on."""

from __future__ import annotations

from typing import Any, ClassVar

import pytest

np = pytest.importorskip("numpy")

from bakeoff_runner import transfers  # noqa: E402
from bakeoff_runner.transfers import Device, time_batch, time_data  # noqa: E402


class StandIn:
    """Takes a nanosecond a byte, and for its first copy a second more."""

    now: ClassVar[int] = 0

    def __init__(self) -> None:
        self.sizes: list[int] = []

    def copy(self, array: Any) -> int:
        self.sizes.append(array.nbytes)
        StandIn.now += 10**9 if len(self.sizes) == 1 else 0
        return int(array.nbytes)

    def wait(self, copied: list[int]) -> None:
        StandIn.now += sum(copied)


@pytest.fixture
def device(monkeypatch: pytest.MonkeyPatch) -> StandIn:
    monkeypatch.setattr(transfers.time, "monotonic_ns", lambda: StandIn.now)
    return StandIn()


def test_a_batch_is_copied_whole_and_its_first_copy_left_out(device: StandIn) -> None:
    x, y = np.zeros((8, 25), np.float32), np.zeros(8, np.int32)
    found = time_batch(Device(device.copy, device.wait), [x, y])
    assert (found.of, found.ns, found.bytes) == ("batch", 832, 832)
    assert set(device.sizes) == {800, 32}
    share = time_batch(Device(device.copy, device.wait), [x, y], steps=4)
    assert (share.ns, share.bytes) == (208, 208)


def test_data_are_copied_in_pieces(
    device: StandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transfers, "_PIECE", 250)
    x, y = np.zeros((8, 25), np.float32), np.zeros(8, np.int32)
    found = time_data(Device(device.copy, device.wait), [x, y])
    assert (found.of, found.ns, found.bytes) == ("data", 832, 832)
    assert max(device.sizes) == 200, "two rows of 100 bytes"
