"""Python loops of the user's own files: how often one step goes round each of them.

One call of a framework does in microseconds what a loop over rows, time steps or
elements sends op by op. Looks at the stack tell what such a loop takes; how many rounds
it makes needs a trace of every line, which is on for two steps alone.
"""

from __future__ import annotations

import ast
import dis
import sys
import tokenize
from types import CodeType, FrameType
from typing import Any, Iterator, NamedTuple

from bakeoff_observe.functions import GENERATES, is_own

__all__ = ["Loop", "Rounds", "loops_of"]

_MOST = 300_000  # lines of a step that are counted
_LOOPS = (ast.For, ast.While, ast.AsyncFor)
_PARTS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_MOST_MADE = 4096  # calls whose results are compared
_LARGE = 1_000_000  # numbers of an array, above which none is compared
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


class Constant(NamedTuple):
    """A function that made the same array again, given the same."""

    file: str
    function: str
    line: int
    last: int
    calls: int

    def runs(self, file: str, line: int, function: str) -> bool:
        here = file == self.file and function == self.function
        return here and self.line <= line <= self.last


class Rounds:
    """Counts the lines of the user's own files that the calling thread runs, from now
    to `stop`; nothing where the script has a tracer of its own."""

    def __init__(self) -> None:
        self.lines: dict[tuple[CodeType, int], int] = {}
        self.count = 0
        # What functions returned, by their code and what they were given.
        self.made: dict[tuple[CodeType, Any], list[Any]] = {}
        self.given: dict[FrameType, Any] = {}
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
        code = frame.f_code
        if not is_own(code.co_filename):
            return None
        if not code.co_flags & GENERATES and len(self.made) < _MOST_MADE:
            names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
            self.given[frame] = tuple(_mark(frame.f_locals.get(n)) for n in names)
        return self._line

    def _line(self, frame: FrameType, event: str, arg: Any) -> Any:
        if event == "return" and frame in self.given:
            place = frame.f_code, self.given.pop(frame)
            content = _content(arg)
            if content is not None:
                self.made.setdefault(place, []).append(content)
        if event == "line":
            place = frame.f_code, frame.f_lineno
            self.lines[place] = self.lines.get(place, 0) + 1
            self.count += 1
            if self.count == _MOST:
                self.off()
                return None
        return self._line

    def off(self) -> None:
        """Nothing is counted any more."""
        if sys.gettrace() == self._call:
            sys.settrace(None)
        for frame in self.frames:
            frame.f_trace = None
        self.frames = []
        self.given = {}

    def constants(self) -> list[Constant]:
        """Functions that returned the same array for the same, each time."""
        found: dict[CodeType, int] = {}
        for (code, _), made in self.made.items():
            if len(made) > 1 and all(one == made[0] for one in made):
                found[code] = found.get(code, 0) + len(made)
        return [
            Constant(
                code.co_filename,
                code.co_name,
                code.co_firstlineno,
                max(line or 0 for _, line in dis.findlinestarts(code)),
                calls,
            )
            for code, calls in found.items()
        ]

    def stop(self, steps: int) -> dict[Loop, int]:
        """Rounds of each loop that was run, in one of `steps` steps."""
        if not self.on:
            return {}
        self.off()
        found: dict[Loop, int] = {}
        for (code, line), count in self.lines.items():
            part = code.co_name.startswith("<") and code.co_name != "<module>"
            for loop in loops_of(code.co_filename):
                if loop.body == line and part == loop.part:
                    found[loop] = max(count, found.get(loop, 0))
        return {loop: count // max(1, steps) for loop, count in found.items()}


def _mark(x: Any) -> Any:
    if isinstance(x, (bool, int, float, str, type(None))):
        return type(x), x
    if isinstance(x, tuple) and len(x) < 16:
        return tuple(_mark(one) for one in x)
    return id(x)


def _content(x: Any) -> Any:
    """What an array holds, or arrays in a tuple; None of anything else."""
    if isinstance(x, (tuple, list)) and 0 < len(x) < 16:
        parts = tuple(_content(one) for one in x)
        return None if None in parts else parts
    shape = getattr(x, "shape", None)
    if not shape or not hasattr(x, "dtype"):
        return None
    try:
        numbers = 1
        for n in shape:
            numbers *= int(n)
        if not 1 < numbers < _LARGE:
            return None
        if hasattr(x, "detach"):
            x = x.detach().cpu()
        import numpy

        return str(x.dtype), tuple(shape), hash(numpy.asarray(x).tobytes())
    except Exception:  # what cannot be read is not compared
        return None
