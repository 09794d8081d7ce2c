"""Switches that need no framework."""

from __future__ import annotations

import builtins
import gc
from typing import TYPE_CHECKING, Any, Callable

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


SWITCHES: dict[str, Callable[[Process, Any], None]] = {
    "no_print": _no_print,
    "no_collect": _no_collect,
}


def throw(process: Process) -> None:
    for name, value in process.switches.items():
        if name in SWITCHES:
            SWITCHES[name](process, value)
