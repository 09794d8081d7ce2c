"""The program: found, run, interrupted, and its messages."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import sysconfig
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Callable, Optional

_REPOSITORY = Path(__file__).resolve().parent.parent.parent
_BUILDS = ("build/release/bakeoff", "build/dev/bakeoff")
_GRACE = 20.0  # seconds that an interrupted program has to end
_TICK = 0.2  # seconds between two looks for Ctrl-C
INTERRUPTED = (130, 143)  # by Ctrl-C, by SIGTERM


class BakeoffError(Exception):
    """What the program says when it cannot do what it was asked for."""


def find_program() -> Path:
    """$BAKEOFF, else the repository's build, else that of the wheel, else PATH's."""
    if named := os.environ.get("BAKEOFF"):
        if not os.access(named, os.X_OK):
            raise BakeoffError(f"BAKEOFF is '{named}', which is no program")
        return Path(named)
    for build in _BUILDS:
        if os.access(_REPOSITORY / build, os.X_OK):
            return _REPOSITORY / build
    # pip puts it where this interpreter's scripts are: into a virtual environment, or
    # below the user's home. The environment need not be active.
    own = sysconfig.get_path("scripts")
    for folder in (own, sysconfig.get_path("scripts", f"{os.name}_user")):
        if os.access(Path(folder) / "bakeoff", os.X_OK):
            return Path(folder) / "bakeoff"
    if found := shutil.which("bakeoff"):
        return Path(found)
    raise BakeoffError(
        "there is no program 'bakeoff'\n  install it with `pip install bakeoff`, build "
        "it with `make`, or set the environment variable BAKEOFF to its path"
    )


class Progress:
    """The program's lines on standard error: one that changes, else all of them."""

    def __init__(self, wanted: bool) -> None:
        self._wanted = wanted
        self._one_line = sys.stderr.isatty() or "ipykernel" in sys.modules
        self._width = 0

    def show(self, line: str) -> None:
        # What the program ends with is an exception's message, or part of a table.
        self._wanted = self._wanted and not line.startswith("bakeoff: ")
        if not self._wanted:
            return
        if not self._one_line:
            print(line, file=sys.stderr, flush=True)
            return
        text = line[:110]
        print("\r" + text.ljust(self._width), end="", file=sys.stderr, flush=True)
        self._width = len(text)

    def clear(self) -> None:
        if self._width:
            print("\r" + " " * self._width + "\r", end="", file=sys.stderr, flush=True)
        self._width = 0


@dataclass(frozen=True)
class Done:
    code: int
    out: str
    err: str

    def error(self) -> BakeoffError:
        """The message behind the progress, with its remedy."""
        parts = re.split(r"^bakeoff: ", self.err, flags=re.MULTILINE)
        text = parts[-1] if len(parts) > 1 else self.err or self.out
        return BakeoffError(text.strip() or f"bakeoff ended with code {self.code}")


def _kept(
    stream: IO[str], show: Optional[Callable[[str], None]]
) -> tuple[threading.Thread, list[str]]:
    lines: list[str] = []

    def read() -> None:
        for line in stream:
            lines.append(line)
            if show and line.strip():
                show(line.rstrip("\n"))

    thread = threading.Thread(target=read, daemon=True)
    thread.start()
    return thread, lines


def run_program(
    arguments: Sequence[str],
    *,
    progress: bool,
    serve: Optional[Callable[[subprocess.Popen[str]], None]] = None,
) -> Done:
    """Runs the program to its end. `serve` is called meanwhile, and may take long.

    KeyboardInterrupt, and whatever `serve` raises, ends the program first: it gets
    SIGINT, and leaves nothing behind.
    """
    shown = Progress(progress)
    # A session of its own: Ctrl-C in a terminal reaches this process alone.
    process: subprocess.Popen[str] = subprocess.Popen(
        [str(find_program()), *arguments],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        start_new_session=True,
    )
    assert process.stdout is not None and process.stderr is not None
    readers = [_kept(process.stdout, None), _kept(process.stderr, shown.show)]
    try:
        if serve:
            serve(process)
        while process.poll() is None:
            try:
                process.wait(_TICK)
            except subprocess.TimeoutExpired:
                pass
    finally:
        _end(process)
        for thread, _ in readers:
            thread.join(_GRACE)
        shown.clear()
    done = Done(process.returncode, *("".join(lines) for _, lines in readers))
    if done.code in INTERRUPTED:
        raise KeyboardInterrupt
    return done


def _end(process: subprocess.Popen[Any]) -> None:
    if process.poll() is not None:
        return
    process.send_signal(signal.SIGINT)
    try:
        process.wait(_GRACE)
    except BaseException:
        process.kill()
        process.wait()
        raise
