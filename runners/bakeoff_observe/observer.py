"""What one process counts of its training steps, and where it stops."""

from __future__ import annotations

import os
import time
from typing import Any, Callable, Optional

__all__ = ["KINDS", "Observer"]

# What a step can end with, the surest first. A kind is believed after so many of its
# boundaries, if no surer one came: a backward may be one of several in a step.
KINDS = {"fit": 1, "optimizer": 1, "update": 1, "function": 3, "backward": 64}
_ORDER = list(KINDS)

now = time.monotonic_ns


class Facts(dict[str, Any]):
    """What is known of the script, by words that the supervisor compares."""


class Observer:
    """Counts steps; stops where the supervisor said.

    `wait`: sends a report and returns the next request, as
    ``(steps, until)``: go on for so many steps, at most to this time in ns.
    """

    def __init__(self) -> None:
        self.pid = os.getpid()
        self.kind = ""
        self.wait: Callable[[], None] = lambda: None
        self.barrier: Callable[[], None] = lambda: None
        self.loss: Any = None  # of the last step, as its framework holds it
        self.losses: list[Any] = []  # of the first steps
        self.notes: list[str] = []  # what was seen and not followed
        self.begin()
        self.go(1 << 60, 1 << 62)

    def begin(self) -> None:
        """Forgets all steps so far."""
        self.marks: list[int] = []  # end of each step
        self.waits: list[int] = []  # wait for data in each step, ns
        self.epochs: list[int] = []  # number of steps before each epoch
        self._wait = 0
        self.compiles = 0
        self.compile_ns = 0
        self.collections = 0  # of all generations, by the garbage collector
        self.begun = now()

    def go(self, steps: int, until: int) -> None:
        self.left, self.until = steps, until

    def boundary(self, kind: str) -> None:
        """A step has ended. The fast path takes about a microsecond."""
        if kind != self.kind and not self._take(kind):
            return
        at = now()
        self.marks.append(at)
        self.waits.append(self._wait)
        self._wait = 0
        if len(self.losses) < 10 and self.loss is not None:
            self.losses.append(self.loss)
        if len(self.marks) < self.left and at < self.until:
            return
        if len(self.marks) >= KINDS[kind] or at >= self.until:
            self.wait()

    def _take(self, kind: str) -> bool:
        if self.kind and _ORDER.index(kind) > _ORDER.index(self.kind):
            return False
        self.kind = kind
        del self.marks[:], self.waits[:], self.losses[:]
        return True

    def waited(self, since: int) -> None:
        """The script waited for a batch from `since` on."""
        self._wait += now() - since

    def epoch(self) -> None:
        self.epochs.append(len(self.marks))

    def collected(self, phase: str, info: dict[str, int]) -> None:
        if phase == "stop" and info["generation"] == 2:
            self.collections += 1

    def forget_in_child(self) -> None:
        """A process of the script's own is not observed."""
        self.boundary = lambda kind: None  # type: ignore[method-assign]
        self.waited = lambda since: None  # type: ignore[method-assign]
        self.wait = lambda: None


class Hooks:
    """What a framework's module registers: read at each report."""

    def __init__(self, name: str, version: str) -> None:
        self.name, self.version = name, version

    def facts(self) -> Optional[Facts]:
        """What it knows by now; None where the script only imported it."""
        return None
