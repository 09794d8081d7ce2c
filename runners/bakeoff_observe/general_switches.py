"""Switches that need no framework."""

from __future__ import annotations

import builtins
import gc
from typing import TYPE_CHECKING, Any, Callable

if TYPE_CHECKING:
    from bakeoff_observe.process import Process


def _no_print(process: Process, on: Any) -> None:
    builtins.print = lambda *args, **kwargs: None
    process.thrown.append("no_print")


def _no_collect(process: Process, on: Any) -> None:
    gc.collect = lambda generation=2: 0
    process.thrown.append("no_collect")


SWITCHES: dict[str, Callable[[Process, Any], None]] = {
    "no_print": _no_print,
    "no_collect": _no_collect,
}


def throw(process: Process) -> None:
    for name, value in process.switches.items():
        if name in SWITCHES:
            SWITCHES[name](process, value)
