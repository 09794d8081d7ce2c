"""Where the time of a step goes: lines of the user's files, and calls of the hooks.

Both are asked for in the observing run alone, by `watch` in a request.
"""

from __future__ import annotations

import _thread
import os
import sys
import time
from types import FrameType
from typing import Any, Callable, Optional

from bakeoff_observe.functions import own_frame
from bakeoff_observe.observer import Observer

_HERE = os.path.dirname(os.path.abspath(__file__))
_EVERY = 0.005  # s between two looks
_SWITCH = 1e-4  # s that the training thread may still run once this one wants to look
_SHARE = 0.03  # of all looks, from which on a line is told
_MOST = 8
_EAGER = ("jax", "jaxlib", "optax", "flax")  # outside of compiled functions
_READS = "jax._src.array"  # where results are waited for
_TRIED = 2000  # calls that tell what one costs
_sleep = time.sleep  # as it was before anybody watched it


class Lines:
    """Looks at the training thread's stack again and again, from another thread."""

    def __init__(self, thread: int, compiled: Callable[[], bool]) -> None:
        self.thread, self.compiled = thread, compiled
        self.seen: dict[tuple[str, int, str], int] = {}
        self.eager: dict[tuple[str, int, str], int] = {}  # looks in ops of JAX alone
        self.looks = 0
        self.on = True
        # Else this thread waits for a call that lets go of the interpreter, and sees
        # such calls alone.
        self.interval = sys.getswitchinterval()
        sys.setswitchinterval(_SWITCH)
        _thread.start_new_thread(self._run, ())

    def _run(self) -> None:
        while self.on:
            _sleep(_EVERY)
            inner = sys._current_frames().get(self.thread)
            frame = own_frame(inner)
            if frame is None or inner is None or not self.on:
                continue
            code = frame.f_code
            place = code.co_filename, frame.f_lineno or 0, code.co_name
            self.seen[place] = self.seen.get(place, 0) + 1
            self.looks += 1
            module = str(inner.f_globals.get("__name__", ""))
            eager = module.split(".")[0] in _EAGER and module != _READS
            if eager and not self.compiled():
                self.eager[place] = self.eager.get(place, 0) + 1

    def stop(self) -> list[dict[str, Any]]:
        """The lines that were seen most often, with their shares of all looks."""
        self.on = False
        sys.setswitchinterval(self.interval)
        most = sorted(self.seen.items(), key=lambda one: -one[1])[:_MOST]
        return [
            {
                "file": file,
                "line": line,
                "function": name,
                "share": n / self.looks,
                "eager": self.eager.get((file, line, name), 0) / self.looks,
            }
            for (file, line, name), n in most
            if n >= _SHARE * self.looks
        ]


class HookCalls:
    """Counts the calls of this package's functions in some steps."""

    def __init__(self, steps: int) -> None:
        self.count, self.before = 0, steps
        self.on = sys.getprofile() is None  # else the script has a profiler of its own
        if self.on:
            sys.setprofile(self._seen)

    def _seen(self, frame: FrameType, event: str, arg: Any) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(_HERE):
            self.count += 1

    def stop(self, steps: int) -> Optional[dict[str, float]]:
        if not self.on:
            return None
        sys.setprofile(None)
        calls = self.count / max(1, steps - self.before)
        return {"calls_per_step": calls, "seconds_per_call": seconds_per_call()}


def seconds_per_call() -> float:
    """Of the dearest of these functions, which runs at the end of each step."""
    observer = Observer()
    observer.kind = "optimizer"
    since = time.perf_counter()
    for _ in range(_TRIED):
        observer.boundary("optimizer")
    return (time.perf_counter() - since) / _TRIED
