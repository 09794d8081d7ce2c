"""Test equipment: ranks of no framework, whose rank 1 fails in `run` as it is told."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import Any, Callable, Mapping, Optional

import numpy as np

from bakeoff_runner.adapter import (
    Adapter,
    Array,
    BuildRequest,
    ImportInfo,
    LossesResult,
    ParityRequest,
    RunResult,
)
from bakeoff_runner.adapters.ranks import Leader, Rank

BROKEN = "fake collective: connection closed"


class Ranked(Rank):
    """``fault``: what rank 1 does, or what it answers otherwise than rank 0."""

    OF_ROWS = ("loss", "output")

    def import_framework(self, options: Mapping[str, str], threads: int) -> ImportInfo:
        self._fault = options.get("fault", "")
        self._wrong = self._rank == 1
        self._pid = Path(f"{self._meeting}.pid")
        if self._wrong:
            self._pid.write_text(str(os.getpid()))
        return ImportInfo({}, effective={"threads": self._take_share(threads)})

    def build(self, request: BuildRequest) -> dict[str, Any]:
        return {"batch": 8 if self._is("batch") else 4, "device": str(self._rank)}

    def _is(self, fault: str) -> bool:
        return self._wrong and self._fault == fault

    def parity(self, request: ParityRequest) -> dict[str, Array]:
        rank = float(self._rank)
        return {
            "loss": np.array(1 + rank),
            "output": np.array([[rank]]),
            "grad/w": np.array([2.0 if self._is("gradient") else 1.0]),
            "buffer/mean": np.array([2.0 if self._is("statistics") else 1.0]),
        }

    def drawn(self) -> Optional[str]:
        return {"none": None, "masks": "same"}.get(self._fault, str(self._rank))

    def losses(self, steps: int) -> LossesResult:
        return LossesResult([1.0 + self._rank] * steps, 1, 2)

    def run(self, steps: int, mark: Callable[[], None]) -> RunResult:
        if self._fault == "mine" and not self._wrong:
            raise ValueError("of rank 0 alone")
        if self._is("error"):
            raise KeyError("boom")
        if self._is("leaves"):
            os._exit(3)
        if self._is("killed"):
            os.kill(os.getpid(), signal.SIGKILL)
        if self._is("stopped"):
            os.kill(os.getpid(), signal.SIGSTOP)
        if self._is("hangs") or self._is("waits"):
            time.sleep(3600)
        if self._fault in ("error", "leaves", "killed", "stopped", "waits"):
            self._wait_for_end()
        for _ in range(steps):
            mark()
        sums = {"w": 2.0 if self._is("sums") else 1.0}
        return RunResult(1, losses=[1.0 + self._rank] * steps, sums=sums)

    def _wait_for_end(self) -> None:
        """A collective that breaks when the other rank's process has ended."""
        pid = self._pid.read_text()
        while _state(pid) not in ("Z", "X", ""):
            time.sleep(0.01)
        raise RuntimeError(BROKEN)

    def nudge(self, changes: Mapping[str, Array]) -> None:
        self._pid.with_suffix(f".nudged{self._rank}").write_text(str(sorted(changes)))

    def restore(self) -> None:
        pass

    @staticmethod
    def is_broken(message: str) -> bool:
        return BROKEN in message


def _state(pid: str) -> str:
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return ""
    return text.rpartition(")")[2].split()[0]


def meeting(folder: Path, ranks: int) -> str:
    return str(folder / "met")


def make() -> Adapter:
    return Leader(__name__)
