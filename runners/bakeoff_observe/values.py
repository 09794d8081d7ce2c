"""What facts are made of, whatever the framework.

Facts travel as JSON and are compared as text, so values must come out equal for equal
scripts and must not hold on to tensors. What tells whether a tensor changed is its sum
and its norm (a sum alone misses changes that cancel). The loss is found by name, then
by place, since a step may return anything. The number of looks is bounded: this code
runs in the steps that are observed.
"""

from __future__ import annotations

import inspect
import os
import re
from collections import Counter
from typing import Any, Callable, Iterable, Optional

__all__ = [
    "Inert",
    "Leader",
    "described",
    "given",
    "leaves",
    "main_reasons",
    "plain",
    "processors",
    "scalar_finder",
    "sums_of",
    "tiny_share",
]


def described(tensor: Any) -> dict[str, Any]:
    """Shape and dtype, whatever it is of."""
    dtype = getattr(tensor.dtype, "name", None) or str(tensor.dtype)
    shape = [None if n is None else int(n) for n in tensor.shape]
    return {"shape": shape, "dtype": dtype.removeprefix("torch.")}


def plain(value: Any) -> Any:
    """The value where JSON has it, else its words."""
    if getattr(value, "shape", None) == () and hasattr(value, "item"):
        value = value.item()
    if isinstance(value, (bool, int, float, str, type(None))):
        return value
    named = getattr(value, "__qualname__", "")
    return named or re.sub(r" at 0x[0-9a-f]+", "", str(value))


def processors() -> int:
    """On which this process may run: what frameworks take for their threads."""
    return len(os.sched_getaffinity(0))


def leaves(structure: Any) -> list[Any]:
    """What tuples, lists and dicts hold, in their order."""
    if isinstance(structure, dict):
        structure = list(structure.values())
    if isinstance(structure, (tuple, list)):
        return [leaf for part in structure for leaf in leaves(part)]
    return [structure]


def sums_of(torch: Any, tensor: Any) -> tuple[float, float]:
    """Sum and norm, which tell whether it changes. A bias of two classes goes up and
    down by the same amount, so its sum alone stays as it was."""
    values, double = tensor.detach(), torch.float64
    norm = torch.linalg.vector_norm(values, dtype=double)
    return float(values.sum(dtype=double)), float(norm)


def main_reasons(counted: Counter[str]) -> list[str]:
    """The values at least half as frequent as the most frequent one."""
    most = max(counted.values(), default=0)
    return sorted(reason for reason, n in counted.items() if 2 * n >= most)


def tiny_share(arrays: Iterable[Any]) -> float:
    """The largest share of denormal numbers in one array of NumPy."""
    import numpy

    worst = 0.0
    for x in arrays:
        if x.dtype in (numpy.float32, numpy.float64) and x.size > 0:
            small = (numpy.abs(x) < numpy.finfo(x.dtype).tiny) & (x != 0)
            worst = max(worst, float(small.mean()))
    return worst


def _paths(structure: Any, path: tuple[Any, ...] = ()) -> Iterable[tuple[Any, ...]]:
    if isinstance(structure, dict):
        for key, part in structure.items():
            yield from _paths(part, (*path, key))
    elif isinstance(structure, (tuple, list)):
        for i, part in enumerate(structure):
            yield from _paths(part, (*path, i))
    else:
        yield path


def _at(structure: Any, path: tuple[Any, ...]) -> Any:
    for key in path:
        structure = structure[key]
    return structure


def scalar_finder(
    structure: Any, is_loss: Callable[[Any], bool]
) -> Callable[[Any], Any]:
    """Picks the loss out of what is made like `structure`, at every step.

    It is the first number there that is named like a loss, or else the first number.
    """
    found = [path for path in _paths(structure) if is_loss(_at(structure, path))]
    named = [path for path in found if "loss" in str(path).lower()]
    if not found:
        return lambda structure: None
    path = (named or found)[0]

    def pick(structure: Any) -> Any:
        try:
            for key in path:
                structure = structure[key]
            return structure
        except (KeyError, IndexError, TypeError):
            return None

    return pick


class Leader:
    """Which of several candidates ends the steps: the first.

    Another one takes its place after being seen `PATIENCE` times while the first was
    not: a script may train one model after another, or call a function once that looks
    like a step.
    """

    PATIENCE = 32

    def __init__(self) -> None:
        self.key: Any = None
        self._others: dict[int, int] = {}

    def __call__(self, key: Any) -> bool:
        if key is self.key:
            if self._others:
                self._others.clear()
            return True
        if self.key is not None:
            seen = self._others[id(key)] = self._others.get(id(key), 0) + 1
            if seen < self.PATIENCE:
                return False
        self.key = key
        self._others.clear()
        return True


def given(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Optional[dict[str, Any]]:
    """Arguments of a method by name, without ``self``; None for a wrong call."""
    names = [
        name
        for name, p in inspect.signature(function).parameters.items()
        if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)
    ][1:]
    if len(args) > len(names) or set(names[: len(args)]) & set(kwargs):
        return None
    return dict(zip(names, args)) | kwargs


class Inert:
    """A context, a decorator or a setter that does nothing."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        pass

    def __enter__(self) -> None:
        pass

    def __exit__(self, *args: Any) -> None:
        pass

    def __call__(self, function: Any) -> Any:
        return function
