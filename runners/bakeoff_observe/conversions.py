"""The switch `cached_conversion`: arrays that the user's own lines make of Python
lists, tuples or arrays of NumPy are those that the same line made first.

Nothing of it is there without the switch: a compiled function may hold such a call.
"""

from __future__ import annotations

import functools
import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any, Callable

from bakeoff_observe.functions import is_own
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
    def imported(module: ModuleType, begun: int = 0, ended: int = 0) -> None:
        for name in MAKERS[module.__name__]:
            inner = getattr(module, name, None)
            if callable(inner):
                setattr(module, name, _cached(process, name, inner))

    later: dict[str, Callable[[ModuleType, int, int], None]] = {}
    for name in MAKERS:
        if name in sys.modules:
            imported(sys.modules[name])
        else:
            later[name] = imported
    AfterImport(later)


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
