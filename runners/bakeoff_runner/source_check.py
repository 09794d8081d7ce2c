"""What a script lacks to be a contender, as far as its source tells.

The parts of it that all frameworks share. What a framework needs is in
``adapters/<framework>_check.py``: a class ``Source``, which is a `Check`, and a
function ``parts(script, calling)``, which makes a script's model and optimizer and
raises `Refused`.
"""

from __future__ import annotations

import ast
from abc import ABC, abstractmethod
from typing import Any, Optional

from bakeoff_runner.source import (
    Script,
    last_name,
    required_of,
)

_DOWNLOADS = {"urlopen", "urlretrieve", "get_file", "load_dataset", "from_pretrained"}
_GUARD = 'put `if __name__ == "__main__":` before this line, and indent it'
_TRAINS = "this trains when the script is imported"
_COMMAND_LINE = "this reads the command line, which a contender has not"


class Refused(Exception):
    """What is wrong with the script, and what to do about it."""

    def __init__(self, text: str, remedy: str, line: Optional[int] = None) -> None:
        super().__init__(text)
        self.remedy = remedy
        self.line = line


class Check(ABC):
    """What is found, and the lines that mend it."""

    def __init__(self, script: Script) -> None:
        self.script = script
        self.problems: list[dict[str, Any]] = []
        self.missing: list[str] = []
        self.lines: list[str] = []
        self.unsolved: list[str] = []
        self.notes: list[str] = []

    @abstractmethod
    def run(self) -> None:
        """Looks for what the framework's adapter needs."""

    def has(self, name: str) -> bool:
        return name in self.script.names

    def problem(self, node: ast.AST, text: str, remedy: str) -> None:
        line = getattr(node, "lineno", 1)
        if all(found["line"] != line for found in self.problems):
            self.problems.append({"line": line, "text": text, "remedy": remedy})

    def needs(self, name: str, line: Optional[str], otherwise: str) -> None:
        """A definition that is missing, the line that adds it, or what to write."""
        self.missing.append(name)
        if line is not None:
            self.lines.append(line)
        else:
            self.unsolved.append(otherwise)

    def takes(self, name: str, count: int) -> None:
        """A function of the script must be callable with `count` arguments."""
        function = self.script.functions.get(name)
        if function is None or function.args.vararg:
            return
        required = required_of(function)
        if len(required) > count:
            wanted = ", ".join(required[count:])
            self.problem(
                function,
                f"{name}() is called with {count} arguments, and needs {wanted} too",
                f"give {wanted} a default: {required[count]}=...",
            )

    def import_time(self) -> None:
        """What must not run when the script is imported."""
        for node in self.script.at_import():
            if isinstance(node, (ast.For, ast.While, ast.With)) and self.script.trains(
                node
            ):
                self.problem(node, _TRAINS, _GUARD)
                return
            if isinstance(node, ast.Call):
                self._import_time_call(node)
            elif _is_argument(node):
                self.problem(node, _COMMAND_LINE, _GUARD)

    def _import_time_call(self, node: ast.Call) -> None:
        name = last_name(node.func)
        called = self.script.functions.get(name)
        if name == "fit" or (called is not None and self.script.trains(called)):
            self.problem(node, _TRAINS, _GUARD)
        elif name in ("parse_args", "parse_known_args"):
            self.problem(node, _COMMAND_LINE, _GUARD)
        elif name == "input" and isinstance(node.func, ast.Name):
            self.problem(node, "this waits for somebody to type", _GUARD)
        elif name in _DOWNLOADS or _downloads(node):
            self.problem(
                node,
                "this reads from the network when the script is imported",
                _GUARD + ": a contender's data comes from the recipe",
            )

    def result(self) -> dict[str, Any]:
        return {
            "problems": sorted(self.problems, key=lambda found: found["line"]),
            "missing": self.missing,
            "lines": self.lines,
            "unsolved": self.unsolved,
            "notes": self.notes,
        }


def _is_argument(node: ast.AST) -> bool:
    """`sys.argv[1]`."""
    return isinstance(node, ast.Subscript) and ast.unparse(node.value) == "sys.argv"


def _downloads(call: ast.Call) -> bool:
    given = {k.arg: k.value for k in call.keywords}.get("download")
    return isinstance(given, ast.Constant) and given.value is True
