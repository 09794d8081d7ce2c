"""Rows that a mask selects, in a trace: x[mask], torch.where(mask), index_add_.

How many they are depends on the data, and no export follows that. Here every row is
computed, and the mask decides what is kept where the rows are put back: the same
numbers, as long as what lies between takes each row by itself (a layer of an expert
does). A mean over the rows, or batch norm, would give others; the proof runs the
model's own code, and refuses.

`if mask.any():` is taken as true where it has no `else` and the same mask selects rows:
without any row, nothing is put back.
"""

from __future__ import annotations

import ast
import functools
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Iterator, Optional

import torch
from torch.overrides import TorchFunctionMode

from bakeoff_import.float64 import frames, users_line
from bakeoff_import.problems import ImportProblem

_VIEWS = set("view reshape flatten squeeze unsqueeze to long int contiguous".split())


@dataclass(frozen=True)
class Selected:
    """What a tensor stands for: all rows, of which the mask's count; with an axis, the
    places of them along that axis of the mask."""

    mask: Any
    axis: Optional[int] = None


def _of(one: Any) -> Optional[Selected]:
    return getattr(one, "bakeoff_selected", None)


def with_all_rows(output: Any) -> Any:
    """The output, if it has a row for each of the batch."""
    if _of(output) is not None:
        raise ImportProblem(
            "the output has the rows that a mask selects, whose number depends on the "
            "data",
            "put them back: y = torch.zeros_like(x), y[mask] = ...",
        )
    return output


def _selects(one: Any) -> bool:
    """Whether it is a mask of rows of the batch."""
    bools = isinstance(one, torch.Tensor) and one.dtype == torch.bool
    return bools and any(isinstance(size, torch.SymInt) for size in one.shape)


def _tensors(args: Any) -> Iterator[Any]:
    for one in args:
        if isinstance(one, torch.Tensor):
            yield one
        elif isinstance(one, (list, tuple)):
            yield from _tensors(one)


@functools.cache
def _branches_without_else(file: str) -> frozenset[int]:
    """Lines of the `if` statements of a file that have no else."""
    try:
        tree = ast.parse(Path(file).read_text(encoding="utf-8"))
    except (OSError, SyntaxError, ValueError):
        return frozenset()
    found = (node for node in ast.walk(tree) if isinstance(node, ast.If))
    return frozenset(node.lineno for node in found if not node.orelse)


def _flat(x: Any, axes: int) -> Any:
    return x.flatten(0, axes - 1) if axes > 1 else x


def _rows(x: Any, mask: Any, axes: list[int]) -> Any:
    """x, whose first axes are these of the mask, for every place of the mask."""
    count = len(axes)
    order = sorted(range(count), key=lambda i: axes[i])
    x = x.permute(*order, *range(count, x.dim()))
    for axis in range(mask.dim()):
        if axis not in axes:
            x = x.unsqueeze(axis)
    return x.expand(*mask.shape, *x.shape[mask.dim() :])


class Selecting(TorchFunctionMode):  # type: ignore[misc]
    """`folder`: of the user's files."""

    def __init__(self, folder: str) -> None:
        super().__init__()
        self.folder = folder
        self.used: list[Any] = []  # masks that selected rows
        self.assumed: list[tuple[Any, str]] = []  # masks taken as true somewhere

    def check(self) -> None:
        """A branch on a mask that selects nothing depends on the data."""
        for mask, place in self.assumed:
            if not any(mask is one for one in self.used):
                raise ImportProblem(
                    "what is computed depends on the data (a branch by a tensor's "
                    "values)",
                    "torch.where keeps both branches in one graph",
                    place,
                )

    def __torch_function__(
        self, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        kwargs = kwargs or {}
        name = getattr(func, "__name__", "")
        known = getattr(self, f"_on_{name.strip('_')}", None)
        if known is not None:
            made = known(name, args, kwargs)
            if made is not None:
                return made[0]
        made = func(*args, **kwargs)
        views = name.strip("_") in _VIEWS
        for one in _tensors(args):
            held = _of(one)
            if held is not None and (views or held.axis is None):
                for result in _tensors([made]):
                    result.bakeoff_selected = held
                break
            if views and isinstance(made, torch.Tensor) and _selects(one):
                made.bakeoff_root = getattr(one, "bakeoff_root", one)
        return made

    def _use(self, mask: Any) -> None:
        self.used.append(getattr(mask, "bakeoff_root", mask))

    def _chosen(self, index: Any) -> Optional[tuple[Any, list[int], list[Any]]]:
        """Of an index: the mask, its axes that the places are of, and what is left."""
        parts = list(index) if isinstance(index, tuple) else [index]
        if parts and _selects(parts[0]) and _of(parts[0]) is None:
            return parts[0], list(range(parts[0].dim())), parts[1:]
        held = _of(parts[0]) if parts else None
        if held is None or held.axis is None:
            return None
        axes = []
        while parts and (one := _of(parts[0])) is not None and one.axis is not None:
            if one.mask is not held.mask:
                return None
            axes.append(one.axis)
            parts.pop(0)
        return held.mask, axes, parts

    def _on_getitem(self, name: str, args: Any, kwargs: Any) -> Any:
        x, index = args
        front = 0
        while isinstance(index, tuple) and index and index[0] is None:
            index, front = index[1:], front + 1
        chosen = self._chosen(index)
        if chosen is None or any(isinstance(p, torch.Tensor) for p in chosen[2]):
            return None
        mask, axes, rest = chosen
        self._use(mask)
        made = _flat(_rows(x, mask, axes), mask.dim()).clone()
        if rest:
            within = (slice(None), *rest)
            made = made[within]
        for _ in range(front):
            made = made.unsqueeze(0)
        made.bakeoff_selected = Selected(mask)
        return (made,)

    def _kept(self, mask: Any, value: Any, other: Any) -> Any:
        """Of each place of the mask the value where it counts, else the other."""
        rest = (1,) * (value.dim() - 1)
        return torch.where(
            mask.reshape(*mask.shape, *rest),
            value.reshape(*mask.shape, *value.shape[1:]),
            other,
        )

    def _on_setitem(self, name: str, args: Any, kwargs: Any) -> Any:
        x, index, value = args
        chosen = self._chosen(index)
        held = _of(value)
        if chosen is None or held is None or held.axis is not None or chosen[2]:
            return None
        mask, axes, _ = chosen
        self._use(mask)
        if len(axes) == mask.dim():
            x.copy_(self._kept(mask, value, _rows(x, mask, axes)))
            return (None,)
        zero = value.new_zeros(())
        change = value - _flat(_rows(x, mask, axes), mask.dim())
        return (x.add_(self._summed(mask, self._kept(mask, change, zero), axes)),)

    def _summed(self, mask: Any, kept: Any, axes: list[int]) -> Any:
        others = [axis for axis in range(mask.dim()) if axis not in axes]
        return kept.sum(others) if others else kept

    def _on_index_add(self, name: str, args: Any, kwargs: Any) -> Any:
        words = ("input", "dim", "index", "source")
        given = {**dict(zip(words, args)), **kwargs}
        held = _of(given.get("index"))
        if held is None or held.axis is None or given["dim"] != 0 or "alpha" in given:
            return None
        x, value = given["input"], given["source"]
        self._use(held.mask)
        kept = self._kept(held.mask, value, value.new_zeros(()))
        added = self._summed(held.mask, kept, [held.axis]).to(x.dtype)
        return (x.add_(added) if name.endswith("_") else x + added,)

    def _places(self, mask: Any) -> list[Any]:
        made = []
        for axis in range(mask.dim()):
            place = mask.flatten().long()
            place.bakeoff_selected = Selected(mask, axis)
            made.append(place)
        return made

    def _on_where(self, name: str, args: Any, kwargs: Any) -> Any:
        if len(args) != 1 or kwargs or not _selects(args[0]):
            return None
        return (tuple(self._places(args[0])),)

    def _on_nonzero(self, name: str, args: Any, kwargs: Any) -> Any:
        if len(args) != 1 or not _selects(args[0]):
            return None
        if kwargs.get("as_tuple", False):
            return (tuple(self._places(args[0])),)
        return (self._places(args[0])[0].unsqueeze(1),) if args[0].dim() == 1 else None

    def _on_any(self, name: str, args: Any, kwargs: Any) -> Any:
        if len(args) == 1 and not kwargs and _selects(args[0]):
            made = args[0].flatten().any(0)
            made.bakeoff_any = getattr(args[0], "bakeoff_root", args[0])
            return (made,)
        return None

    def _on_bool(self, name: str, args: Any, kwargs: Any) -> Any:
        mask = getattr(args[0], "bakeoff_any", None) if name == "__bool__" else None
        if mask is None:
            return None
        found = [f for f in frames() if f[0] != __file__]
        if not found or found[0][1] not in _branches_without_else(found[0][0]):
            return None
        self.assumed.append((mask, users_line(found, self.folder)))
        return (True,)
