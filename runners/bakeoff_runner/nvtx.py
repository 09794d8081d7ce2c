"""Named ranges around bursts and steps, for NVIDIA's profilers (Nsight Systems).

Where the environment variable BAKEOFF_NVTX names NVIDIA's tools extension library
("libnvToolsExt.so.1", part of CUDA), every burst is a range ("16 steps") and every step
in it another one ("step 3"), as the host hands them out. Without it nothing is called.
"""

from __future__ import annotations

import ctypes
import os
from typing import Callable, Optional

__all__ = ["NvtxError", "Ranges", "ranges_from"]

VARIABLE = "BAKEOFF_NVTX"


class NvtxError(Exception):
    """The library cannot be used; the message says why."""


class Ranges:
    """Ranges of one thread: open ones nest."""

    def __init__(self, library: str) -> None:
        try:
            loaded = ctypes.CDLL(library)
            self._push, self._pop = loaded.nvtxRangePushA, loaded.nvtxRangePop
        except (OSError, AttributeError) as error:
            raise NvtxError(str(error)) from error
        self._push.argtypes, self._push.restype = [ctypes.c_char_p], ctypes.c_int
        self._pop.argtypes, self._pop.restype = [], ctypes.c_int
        self._steps = self._step = 0

    def begin(self, steps: int) -> None:
        """A burst and its first step begin."""
        self._steps, self._step = steps, 1
        self._push(f"{steps} step{'s' if steps != 1 else ''}".encode())
        self._push(b"step 1")

    def end(self) -> None:
        """The burst ends: a step that never came is no range any more."""
        if self._step <= self._steps:
            self._pop()
        self._pop()
        self._steps = self._step = 0

    def marking(self, mark: Callable[[], None]) -> Callable[[], None]:
        """`mark`, which ends a step's range as well and begins the next one's."""

        def mark_and_range() -> None:
            mark()
            if self._step > self._steps:  # a loop that marks more than it was asked for
                return
            self._pop()
            self._step += 1
            if self._step <= self._steps:
                self._push(b"step %d" % self._step)

        return mark_and_range


def ranges_from(environment: Optional[dict[str, str]] = None) -> Optional[Ranges]:
    """The ranges that the environment asks for; NvtxError where they cannot be had."""
    variables = os.environ if environment is None else environment
    library = variables.get(VARIABLE, "")
    return Ranges(library) if library else None
