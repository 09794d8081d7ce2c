"""Arrays that the user's own lines make of Python lists, tuples or arrays of NumPy.

The switch `cached_conversion` gives those that the same line made first, and
`stacked_arrays` makes one array of a list of arrays first. `Given` tells what each
line is given, in a few steps of the observed run. Nothing of them is there else: a
compiled function may hold such a call.
"""

from __future__ import annotations

import functools
import sys
import time
from types import ModuleType
from typing import TYPE_CHECKING, Any, Callable

from bakeoff_observe.functions import is_own, number_of
from bakeoff_observe.imports import AfterImport

if TYPE_CHECKING:
    from bakeoff_observe.process import Process

MAKERS = {
    "numpy": ("array", "asarray", "stack", "vstack", "concatenate"),
    "torch": (
        "tensor",
        "as_tensor",
        "from_numpy",
        "stack",
        "FloatTensor",
        "LongTensor",
    ),
    "tensorflow": ("constant", "convert_to_tensor", "stack"),
    "jax.numpy": ("array", "asarray", "stack"),
}
_FEW = 8  # elements, below which it is a setting and no batch


def throw(process: Process, on: Any) -> None:
    _replace(lambda name, inner: _cached(process, name, inner))


def throw_stacked(process: Process, on: Any) -> None:
    _replace(lambda name, inner: _stacked(process, inner), ("numpy",))


class Given:
    """What lines of the user's own files make arrays of, from now to `stop`."""

    def __init__(self) -> None:
        self.seen: dict[tuple[str, int], dict[str, Any]] = {}
        self.undo: list[tuple[Any, str, Any]] = []
        for name, makers in MAKERS.items():
            module = sys.modules.get(name)
            for maker in makers:
                inner = getattr(module, maker, None)
                if callable(inner) and not isinstance(inner, type):
                    self.undo.append((module, maker, inner))
                    setattr(module, maker, self._watched(inner))

    def _watched(self, inner: Callable[..., Any]) -> Any:
        @functools.wraps(inner, updated=())
        def made(*args: Any, **kwargs: Any) -> Any:
            frame = sys._getframe(1)
            file = frame.f_code.co_filename
            if args and _many(args[0]) and is_own(file):
                place = file, frame.f_lineno
                known = self.seen.setdefault(
                    place, {"calls": 0, "seconds": 0.0, **_words(args[0])}
                )
                since = time.perf_counter()
                try:
                    return inner(*args, **kwargs)
                finally:
                    known["calls"] += 1
                    known["seconds"] += time.perf_counter() - since
            return inner(*args, **kwargs)

        return made

    def stop(self, steps: int) -> list[dict[str, Any]]:
        """With the seconds that the calls of a line took in one step."""
        for module, name, inner in self.undo:
            setattr(module, name, inner)
        for known in self.seen.values():
            known["seconds"] /= max(1, steps)
        return [
            {"line": number_of(file, line), **known}
            for (file, line), known in self.seen.items()
        ]


def _words(x: Any) -> dict[str, Any]:
    """What it is, and whether it is a list of arrays: "list of 64 arrays"."""
    kind = type(x).__name__
    if kind == "ndarray":
        return {"given": f"an array of {_shape(x)} {x.dtype}", "arrays": False}
    first = x[0]
    arrays = type(first).__name__ == "ndarray" and first.ndim > 0
    if arrays:
        of = f"arrays of {_shape(first)} {first.dtype}"
    elif isinstance(first, (list, tuple)):
        of = f"{type(first).__name__}s of {len(first)}"
    else:
        of = f"{type(first).__name__}s"
    return {"given": f"a {kind} of {len(x)} {of}", "arrays": arrays}


def _shape(x: Any) -> str:
    return " x ".join(map(str, x.shape))


def _replace(
    make: Callable[[str, Callable[..., Any]], Any], but: tuple[str, ...] = ()
) -> None:
    """Each maker with what `make` gives for its name and itself."""

    def imported(module: ModuleType, begun: int = 0, ended: int = 0) -> None:
        for name in MAKERS[module.__name__]:
            inner = getattr(module, name, None)
            if callable(inner) and module.__name__ not in but:
                setattr(module, name, make(name, inner))

    later: dict[str, Callable[[ModuleType, int, int], None]] = {}
    for name in MAKERS:
        if name in sys.modules:
            imported(sys.modules[name])
        else:
            later[name] = imported
    AfterImport(later)


def _stacked(process: Process, inner: Callable[..., Any]) -> Any:
    @functools.wraps(inner, updated=())
    def made(*args: Any, **kwargs: Any) -> Any:
        if args and isinstance(args[0], (list, tuple)) and _many(args[0]):
            first = args[0][0]
            file = sys._getframe(1).f_code.co_filename
            if type(first).__name__ == "ndarray" and first.ndim > 0 and is_own(file):
                process.threw("stacked_arrays")
                args = (sys.modules["numpy"].stack(args[0]), *args[1:])
        return inner(*args, **kwargs)

    return made


def _cached(process: Process, name: str, inner: Callable[..., Any]) -> Any:
    known: dict[Any, Any] = {}

    @functools.wraps(inner, updated=())
    def made(*args: Any, **kwargs: Any) -> Any:
        frame = sys._getframe(1)
        file = frame.f_code.co_filename
        if not args or not _many(args[0]) or not is_own(file):
            return inner(*args, **kwargs)
        key = file, frame.f_lineno, name, type(args[0]), len(args[0])
        if key in known:
            process.threw("cached_conversion")
        else:
            known[key] = inner(*args, **kwargs)
        return known[key]

    return made


def _many(x: Any) -> bool:
    array = type(x).__name__ == "ndarray" and x.ndim > 0
    return (array or isinstance(x, (list, tuple))) and len(x) >= _FEW
