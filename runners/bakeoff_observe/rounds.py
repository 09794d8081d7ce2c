"""Python loops of the user's own files: how often one step goes round each of them.

One call of a framework does in microseconds what a loop over rows, time steps or
elements sends op by op. Looks at the stack tell what such a loop takes; how many rounds
it makes needs a trace of every line, which is on for one step alone.
"""

from __future__ import annotations

import ast
import sys
import tokenize
from types import CodeType, FrameType
from typing import Any, Iterator, NamedTuple

from bakeoff_observe.functions import is_own

__all__ = ["Loop", "Rounds", "loops_of"]

_MOST = 300_000  # lines of a step that are counted
_LOOPS = (ast.For, ast.While, ast.AsyncFor)
_PARTS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_loops: dict[str, list[Loop]] = {}


class Loop(NamedTuple):
    file: str
    line: int  # where it begins
    last: int
    body: int  # its first line that each round runs
    part: bool  # of an expression: a comprehension

    def has(self, file: str, line: int) -> bool:
        return file == self.file and self.line <= line <= self.last


def loops_of(file: str) -> list[Loop]:
    """All loops of a source file, comprehensions too; none where it cannot be read."""
    if file not in _loops:
        _loops[file] = list(_read(file))
    return _loops[file]


def _read(file: str) -> Iterator[Loop]:
    try:
        with tokenize.open(file) as text:
            tree = ast.parse(text.read())
    except (OSError, SyntaxError, ValueError, RecursionError):
        return
    for node in ast.walk(tree):
        if isinstance(node, _LOOPS):
            body, part = node.body[0].lineno, False
        elif isinstance(node, _PARTS):
            value = node.value if isinstance(node, ast.DictComp) else node.elt
            body, part = value.lineno, True
        else:
            continue
        last = node.end_lineno or node.lineno
        yield Loop(file, node.lineno, last, body, part)


class Rounds:
    """Counts the lines of the user's own files that the calling thread runs, from now
    to `stop`; nothing where the script has a tracer of its own."""

    def __init__(self) -> None:
        self.lines: dict[tuple[CodeType, int], int] = {}
        self.count = 0
        self.frames: list[FrameType] = []
        self.on = sys.gettrace() is None
        if not self.on:
            return
        frame = sys._getframe(1)
        sys.settrace(self._call)
        outer: Any = frame
        while outer is not None:
            if is_own(outer.f_code.co_filename) and outer.f_trace is None:
                outer.f_trace = self._line
                self.frames.append(outer)
            outer = outer.f_back

    def _call(self, frame: FrameType, event: str, arg: Any) -> Any:
        return self._line if is_own(frame.f_code.co_filename) else None

    def _line(self, frame: FrameType, event: str, arg: Any) -> Any:
        if event == "line":
            place = frame.f_code, frame.f_lineno
            self.lines[place] = self.lines.get(place, 0) + 1
            self.count += 1
            if self.count == _MOST:
                self._off()
                return None
        return self._line

    def _off(self) -> None:
        if sys.gettrace() == self._call:
            sys.settrace(None)
        for frame in self.frames:
            frame.f_trace = None
        self.frames = []

    def stop(self, steps: int) -> dict[Loop, int]:
        """Rounds of each loop that was run, in one of so many steps."""
        if not self.on:
            return {}
        self._off()
        found: dict[Loop, int] = {}
        for (code, line), count in self.lines.items():
            part = code.co_name.startswith("<") and code.co_name != "<module>"
            for loop in loops_of(code.co_filename):
                if loop.body == line and part == loop.part:
                    found[loop] = max(count, found.get(loop, 0))
        return {loop: count // max(1, steps) for loop, count in found.items()}
