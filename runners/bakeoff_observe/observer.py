"""What one process counts of its training steps, and where it stops.

The supervisor lets two versions of a script take turns, in bursts of steps. A script
has no place to stop at but the end of a step, so this code runs there, in the script's
own thread, and blocks until the next turn. It must cost next to nothing (about a
microsecond), because it runs in the version that is timed. Several kinds of events may
look like the end of a step; the surest kind that has been seen counts, and others are
forgotten, or a step would count twice. Memory is a slope over the last half, since
first steps allocate.
"""

from __future__ import annotations

import os
import time
from threading import get_ident
from typing import Any, Callable, Optional

from bakeoff_observe.profiles import Profile

__all__ = ["KINDS", "Observer"]

# What a step can end with, the surest first. A kind is believed after so many of its
# boundaries, if no surer one came: a backward may be one of several in a step.
# Calls of a model or function count where nothing trains.
KINDS = {"fit": 1, "optimizer": 1, "update": 1, "function": 3, "backward": 64}
KINDS |= {"call": 64}
_ORDER = list(KINDS)
_FEWEST_CALLS, _LONG_CALLS = 16, 2_000_000_000  # calls, and ns that they take

now = time.monotonic_ns
_PAGE = os.sysconf("SC_PAGE_SIZE")


def resident() -> int:
    """Bytes of this process in memory; 0 where nobody tells."""
    try:
        fd = os.open("/proc/self/statm", os.O_RDONLY)
    except OSError:
        return 0
    try:
        return _PAGE * int(os.read(fd, 64).split()[1])
    finally:
        os.close(fd)


def slope(values: list[int]) -> float:
    """Of a line through them, by least squares."""
    n = len(values)
    middle, mean = (n - 1) / 2, sum(values) / n
    above = sum((i - middle) * (y - mean) for i, y in enumerate(values))
    return above / sum((i - middle) ** 2 for i in range(n))


class Facts(dict[str, Any]):
    """What is known of the script, by words that the supervisor compares."""


class Observer:
    """Counts steps; stops where the supervisor said.

    `wait`: sends a report and returns the next request, as
    ``(steps, until)``: go on for so many steps, at most to this time in ns.
    """

    def __init__(self) -> None:
        self.pid = os.getpid()
        self.thread = get_ident()  # other threads wait for data of their own
        self.kind = ""
        self.known = ""  # its kind, by an earlier run: it is believed at once
        self.wait: Callable[[], None] = lambda: None
        self.barriers: list[Callable[[], None]] = []  # all wait for the last step
        self.pending: list[Callable[[], bool]] = []  # whether its results still come
        self.trains: list[Callable[[], bool]] = []  # whether it has what training needs
        self.inside = False  # of a `fit` that counts its own batches
        self.loss: Any = None  # of the last step, as its framework holds it
        self.losses: list[Any] = []  # of the first steps
        self.tracing: Any = None  # the `functions.Step` that is being traced
        self.notes: list[str] = []  # what was seen and not followed
        self.stepless = False  # it came to its end without a step
        self.before = 0  # steps that are forgotten
        self.marks: list[int] = []  # end of each step
        self.begin()
        self.go(1 << 60, 1 << 62)

    def begin(self) -> None:
        """Forgets all steps so far."""
        self.before += len(self.marks)
        self.marks = []
        self.waits: list[int] = []  # wait for data in each step, ns
        self.resident: list[int] = []  # bytes in memory, at each tenth step
        self.epochs: list[int] = []  # number of steps before each epoch
        self.waiting = 0  # ns in the current step
        self.collecting = now()  # when a full garbage collection began
        self.compiles = 0
        self.compile_ns = 0
        self.compile_steps: list[int] = []  # steps before each compilation
        self.counts: dict[str, int] = {}  # of what a framework's facts tell per step
        self.spent: dict[str, int] = {}  # ns that calls of a word took
        self.compiled_in: list[tuple[int, int]] = []  # times of compilations, apart
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
        self.waits.append(self.waiting)
        self.waiting = 0
        if not len(self.marks) % 10:
            self.resident.append(resident())
        if len(self.losses) < 10 and self.loss is not None:
            self.losses.append(self.loss)
        if len(self.marks) < self.left and at < self.until:
            return
        if at >= self.until or self._believed(kind):
            if kind == "call" and any(known() for known in self.trains):
                self.restart()  # it trains later
                return
            self.wait()

    def _believed(self, kind: str) -> bool:
        """Whether this kind ends steps, or a surer one would have come by now."""
        calls = len(self.marks)
        if kind == self.known or calls >= KINDS[kind]:
            return True
        long = calls > 0 and self.marks[-1] - self.marks[0] >= _LONG_CALLS
        return kind == "call" and calls >= _FEWEST_CALLS and long

    def _take(self, kind: str) -> bool:
        if self.inside and kind != "fit":
            return False
        if self.kind and _ORDER.index(kind) > _ORDER.index(self.kind):
            return False
        self.kind = kind
        self.thread = get_ident()  # it may be one of the script's own
        self.waiting += sum(self.waits)  # they are part of this first step
        self.restart()
        return True

    def restart(self) -> None:
        """What ended steps so far was no step."""
        del self.marks[:], self.waits[:], self.losses[:], self.resident[:]
        self.epochs[:] = self.epochs and [0]

    def waited(self, since: int) -> None:
        """The script waited for a batch from `since` on."""
        if get_ident() == self.thread:
            self.waiting += now() - since

    def epoch(self, of_fit: bool = False) -> None:
        """An epoch begins; inside `fit` only `fit` knows where."""
        if of_fit or not self.inside:
            steps = len(self.marks)
            if not self.epochs or self.epochs[-1] != steps:
                self.epochs.append(steps)

    def count(self, word: str) -> None:
        self.counts[word] = self.counts.get(word, 0) + 1

    def compiled(self, begin: int, end: int) -> None:
        """It traced or compiled from `begin` to `end`: what lies within counts once."""
        apart = self.compiled_in
        while apart and apart[-1][0] >= begin:
            since, until = apart.pop()
            self.compile_ns -= until - since
        if apart:
            begin = min(end, max(begin, apart[-1][1]))
        apart.append((begin, end))
        if len(self.compile_steps) < 4096:
            self.compile_steps.append(len(self.marks))
        self.compile_ns += end - begin
        if len(apart) > 64:
            del apart[0]

    def per_step(self, word: str) -> float:
        return self.counts.get(word, 0) / max(1, len(self.marks))

    def memory(self) -> dict[str, float]:
        """Bytes that a step of the last half adds; nothing after few steps."""
        half = self.resident[len(self.resident) // 2 :]
        return {"rss_slope_bytes": slope(half) / 10} if len(half) >= 3 else {}

    def collected(self, phase: str, info: dict[str, int]) -> None:
        if info["generation"] != 2:
            return
        if phase == "start":
            self.collecting = now()
        else:
            self.collections += 1
            took = now() - self.collecting
            self.spent["collections"] = self.spent.get("collections", 0) + took

    def count_no_steps(self) -> None:
        self.boundary = lambda kind: None  # type: ignore[method-assign]

    def forget(self) -> None:
        """Observed no longer; a process of the script's own never is."""
        self.kind = ""  # calls count no longer, and are made
        self.count_no_steps()
        self.waited = lambda since: None  # type: ignore[method-assign]
        self.wait = lambda: None


class Hooks:
    """What a framework's module registers: read at each report."""

    def __init__(self, name: str, version: str) -> None:
        self.name, self.version = name, version

    def facts(self) -> Optional[Facts]:
        """What it knows by now; None where the script only imported it."""
        return None

    def profile(self) -> Optional[Profile]:
        """Its profiler, started; None if absent, or if the script has one on."""
        return None

    def input_seconds(self) -> float:
        """What preparing a batch takes that no step is seen to wait for."""
        return 0.0
