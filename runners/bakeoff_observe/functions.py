"""Functions of the user's own files: which of them make a step op by op, and how one
is called by another name.

A file is the user's own where it is neither of the standard library, nor installed,
nor of this package.
"""

from __future__ import annotations

import dis
import gc
import os
import sys
import zlib
from types import CodeType, FrameType, FunctionType
from typing import Any, Callable, Iterable, Optional

from bakeoff_observe.observer import Observer
from bakeoff_observe.values import leaves

__all__ = [
    "GENERATES",
    "Loops",
    "Made",
    "Outer",
    "Step",
    "is_own",
    "number_of",
    "own_frame",
    "own_line",
    "own_modules",
    "plain_step",
    "replace",
    "words_of",
]

_RUNNERS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
_OTHERS = tuple(
    path + os.sep
    for path in (
        os.path.dirname(os.__file__),
        os.path.join(_RUNNERS, "bakeoff_observe"),
        os.path.join(_RUNNERS, "bakeoff_runner"),
    )
)
# What torch.compile writes is nobody's own.
_COMPILED = ("torchinductor_", "bakeoff_inductor_")
_INSTALLED = (f"{os.sep}site-packages{os.sep}", f"{os.sep}dist-packages{os.sep}")
_own: dict[str, bool] = {}
# A line is told by one number: that of its file, 0 of the script's, and its own.
_LINES = 100_000  # that a file may have
_numbers: dict[str, int] = {}
_FOLDER = os.getcwd()  # in which the script was started: a copy of the user's

# What a function leaves behind when it is traced, other than what it returns.
_LEAVES = {"append", "appendleft", "extend", "put", "write", "save", "add_scalar"}
_MOST = 16  # functions that are looked at
_VARIES = 3  # functions that differ in numbers alone, from which on they count as one
GENERATES = 0x20 | 0x80 | 0x200  # flags of generators and coroutines


def is_own(file: str) -> bool:
    known = _own.get(file)
    if known is None:
        _name_script()
        compiled = os.environ.get("TORCHINDUCTOR_CACHE_DIR")
        known = not (
            file.startswith("<")
            or "__autograph_generated_file" in file  # of TensorFlow, of the user's code
            or file.startswith(_OTHERS)
            or any(part in file for part in _INSTALLED)
            or any(part in file for part in _COMPILED)
            or (compiled and file.startswith(compiled))
        )
        _own[file] = known
    return known


def _name_script() -> None:
    """While it runs: its name is gone when it ends."""
    if not _numbers:
        file = getattr(sys.modules.get("__main__"), "__file__", None)
        if file:
            _numbers[os.path.abspath(file)] = 0


def _name(path: str) -> str:
    inside = path.startswith(_FOLDER + os.sep)
    return os.path.relpath(path, _FOLDER) if inside else path


def number_of(file: str, line: int = 0) -> int:
    """Of a line of the user's own files, the same in each process of this script."""
    path = os.path.abspath(file)
    if path not in _numbers:
        _numbers[path] = _LINES * (1 + zlib.crc32(_name(path).encode()))
    return _numbers[path] + line


def own_modules() -> dict[str, int]:
    """The user's own files but the script, as named from its folder, with the numbers
    that their lines count from."""
    for module in list(sys.modules.values()):
        try:  # no module is loaded by that
            file = object.__getattribute__(module, "__dict__").get("__file__")
        except AttributeError:
            continue
        if isinstance(file, str) and file.endswith(".py") and is_own(file):
            number_of(file)
    return {_name(path): number for path, number in _numbers.items() if number}


def own_frame(frame: Optional[FrameType]) -> Optional[FrameType]:
    """The innermost frame of the user's own files, from this one outwards."""
    while frame is not None and not is_own(frame.f_code.co_filename):
        frame = frame.f_back
    return frame


def own_line(frame: Optional[FrameType]) -> int:
    """The number of its line; 0 where no frame is the user's own."""
    frame = own_frame(frame)
    return 0 if frame is None else number_of(frame.f_code.co_filename, frame.f_lineno)


class Loops:
    """Places of the user's files that make steps op by op, each found once.

    `found`: is told the code, the line, and whether the code goes round a loop of its
    own there; if not, it is a function that is called for each step.
    """

    def __init__(self, found: Callable[[CodeType, int, bool], None]) -> None:
        self.found = found
        self.places: dict[CodeType, Optional[tuple[FrameType, int]]] = {}
        self.left = 256  # calls that are looked at

    def enter(self, caller: FrameType) -> None:
        self.left -= 1
        if self.left == 0:
            self.places.clear()  # and the frames in it
            return
        frame = own_frame(caller)
        if frame is None:
            return
        code = frame.f_code
        if code not in self.places:
            if len(self.places) < _MOST:
                self.places[code] = frame, frame.f_lineno
            return
        before = self.places[code]
        if before is None:
            return
        same = before[0] is frame
        if same and before[1] != frame.f_lineno:  # one step has several places
            return
        self.places[code] = None
        self.found(code, before[1], same)


class Step:
    """What ends while one call of a step is traced: replayed at each call."""

    def __init__(self) -> None:
        self.begin()

    def begin(self) -> None:
        self.loss: Any = None
        self.kinds: list[str] = []
        self.losses: list[Any] = []  # at each end

    def end(self, kind: str) -> None:
        self.kinds.append(kind)
        self.losses.append(self.loss)

    def replay(self, observer: Observer, losses: list[Any]) -> None:
        for kind, loss in zip(self.kinds, losses):
            if loss is not None:
                observer.loss = loss
            observer.boundary(kind)


def words_of(error: Exception) -> str:
    """Kind and last line of what went wrong."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {(lines or [''])[-1][:200]}"


def plain_step(code: CodeType, refused: Iterable[str] = ()) -> bool:
    """Whether the function does nothing but to compute what it returns, as far as its
    own lines show, in which the refused names do not stand."""
    if code.co_flags & GENERATES or code.co_name == "<module>":
        return False
    if _LEAVES.union(refused).intersection(code.co_names):
        return False
    for line in dis.get_instructions(code):
        if line.opname in ("STORE_GLOBAL", "STORE_ATTR"):
            return False
        if line.opname == "STORE_DEREF" and line.argval in code.co_freevars:
            return False
    return True


def replace(
    code: CodeType,
    make: Callable[[Callable[..., Any], Callable[[], None]], Callable[..., Any]],
) -> bool:
    """What has this code calls ``make(original, undo)`` from its next call on.

    It is the function itself that changes, wherever it is held: by its module, by
    those that imported it, by its class, by a decorator or by a local name.
    """
    functions = [
        one
        for one in gc.get_referrers(code)
        if isinstance(one, FunctionType) and one.__code__ is code
    ]
    for function in functions:

        def undo(function: FunctionType = function) -> None:
            function.__code__ = code

        function.__code__ = _door(code, make(_copy(function), undo))
    return bool(functions)


class Made:
    """What was made of functions that are defined anew each time: the first one again.

    Functions are the same if they have the same code and take the same from outside.
    Where numbers from outside are others again and again, those of the first one stay.
    """

    def __init__(self) -> None:
        self.known: dict[Any, tuple[Any, list[Any]]] = {}
        self.others: dict[Any, int] = {}  # functions that differ in numbers alone

    def again(
        self, function: Any, options: Any, make: Callable[[], Any]
    ) -> tuple[Any, bool]:
        """What was made, and whether it was made of another function."""
        code, held = _taken(function)
        if code is None:
            return make(), False
        key = code, repr(options), tuple(_mark(x) for x in held)
        if key in self.known:
            return self.known[key][0], True
        alike = code, repr(options), tuple(_mark(x, False) for x in held)
        self.others[alike] = self.others.get(alike, 0) + 1
        if self.others[alike] > _VARIES and alike in self.known:
            return self.known[alike][0], True
        made = make()
        if len(self.known) < 256:
            self.known[key] = made, held  # so that nothing else has their identities
            self.known.setdefault(alike, (made, held))
        return made, False


def _taken(function: Any) -> tuple[Optional[CodeType], list[Any]]:
    """Code of a function, and the values that are its own: of closures and defaults."""
    held: list[Any] = []
    while hasattr(function, "func") and hasattr(function, "keywords"):  # a partial
        held += [*function.args, *function.keywords.values()]
        function = function.func
    if hasattr(function, "__self__"):
        held.append(function.__self__)
        function = getattr(function, "__func__", None)
    code = getattr(function, "__code__", None)
    if code is None or not is_own(code.co_filename):
        return None, held
    try:
        held += [cell.cell_contents for cell in function.__closure__ or ()]
    except ValueError:  # not yet
        return None, held
    return code, held + list(function.__defaults__ or ())


def _mark(x: Any, numbers: bool = True) -> Any:
    if type(x) in (int, float) and not numbers:
        return type(x)
    return (type(x), x) if isinstance(x, (bool, int, float, str, type(None))) else id(x)


class Outer:
    """Arrays that a function of the user's own takes from outside of its arguments:
    global ones and those of the functions around it, and what its own callees take."""

    def __init__(self, function: Any, is_array: Callable[[Any], bool]) -> None:
        self.is_array = is_array
        self.cells: dict[int, Any] = {}
        self.names: dict[tuple[int, str], dict[str, Any]] = {}
        self._visit(function, set())

    def _visit(self, function: Any, seen: set[int]) -> None:
        function = getattr(function, "__func__", function)
        code = getattr(function, "__code__", None)
        if code is None or id(function) in seen or not is_own(code.co_filename):
            return
        seen.add(id(function))
        for cell in function.__closure__ or ():
            try:
                value = cell.cell_contents
            except ValueError:  # not yet
                continue
            if self._holds(value):
                self.cells[id(cell)] = cell
            self._visit(value, seen)
        for name in _names(code):
            value = function.__globals__.get(name)
            if self._holds(value):
                self.names[id(function.__globals__), name] = function.__globals__
            self._visit(value, seen)

    def _holds(self, value: Any) -> bool:
        return any(self.is_array(x) for x in leaves(value))

    def now(self) -> list[Any]:
        """All that are taken now, in the same order each time."""
        held = [cell.cell_contents for cell in self.cells.values()]
        held += [names.get(name) for (_, name), names in self.names.items()]
        found: list[Any] = []
        for one in held:
            many = isinstance(one, (list, tuple, dict)) and len(one) > 64
            found += [one] if many else filter(self.is_array, leaves(one))
        return found


def _names(code: CodeType) -> set[str]:
    found = set(code.co_names)
    for one in code.co_consts:
        if isinstance(one, CodeType):
            found |= _names(one)
    return found


def _copy(function: FunctionType) -> FunctionType:
    made = FunctionType(
        function.__code__,
        function.__globals__,
        function.__name__,
        function.__defaults__,
        function.__closure__,
    )
    made.__kwdefaults__ = function.__kwdefaults__
    made.__qualname__, made.__module__ = function.__qualname__, function.__module__
    return made


def _door(code: CodeType, target: Callable[..., Any]) -> CodeType:
    """Code that calls the target, with as many free variables as `code` has."""
    names = ", ".join(code.co_freevars)
    lines = [
        "def outer():",
        *(f" {name} = None" for name in code.co_freevars),
        " def inner(*args, **kwargs):",
        "  target = 'target'",
        "  return target(*args, **kwargs)",
        *([f"  {names}"] if names else []),
    ]
    inner = compile("\n".join(lines), code.co_filename, "exec")
    for _ in range(2):
        inner = next(one for one in inner.co_consts if isinstance(one, CodeType))
    consts = tuple(target if one == "target" else one for one in inner.co_consts)
    return inner.replace(
        co_consts=consts, co_name=code.co_name, co_firstlineno=code.co_firstlineno
    )
