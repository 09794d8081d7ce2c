"""Switches that need no framework, and the fact that they change."""

from __future__ import annotations

import builtins
import gc
import importlib
import sys
import threading
import tracemalloc
from typing import TYPE_CHECKING, Any, Callable

from bakeoff_observe import conversions

if TYPE_CHECKING:
    from bakeoff_observe.process import Process


def _no_print(process: Process, on: Any) -> None:
    def silent(*args: Any, **kwargs: Any) -> None:
        process.threw("no_print")

    builtins.print = silent


def _no_collect(process: Process, on: Any) -> None:
    def uncollected(generation: int = 2) -> int:
        process.threw("no_collect")
        return 0

    gc.collect = uncollected


def traced() -> list[str]:
    """Tools that look at each call, line or allocation of this thread."""
    found = {
        "tracemalloc": tracemalloc.is_tracing(),
        "a trace function": sys.gettrace() is not None,
        "a profiler": sys.getprofile() is not None,
    }
    return [name for name, on in found.items() if on]


def _no_trace(process: Process, on: Any) -> None:
    def inert(*args: Any, **kwargs: Any) -> None:
        process.threw("no_trace")

    if tracemalloc.is_tracing():  # by the environment
        tracemalloc.stop()
        process.threw("no_trace")
    tracemalloc.start = inert
    places: tuple[Any, ...] = (sys, threading)
    for place in places:
        place.settrace = place.setprofile = inert
    importlib.import_module("cProfile").Profile.enable = inert


SWITCHES: dict[str, Callable[[Process, Any], None]] = {
    "no_print": _no_print,
    "no_collect": _no_collect,
    "no_trace": _no_trace,
    "cached_conversion": conversions.throw,
    "stacked_arrays": conversions.throw_stacked,
}


def throw(process: Process) -> None:
    for name, value in process.switches.items():
        if name in SWITCHES:
            SWITCHES[name](process, value)
