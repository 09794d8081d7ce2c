"""Canonical layouts to a framework's and back.

A layout file stands beside a script whose framework stores parameters otherwise than
the canonical form (conv kernels O,I,kH,kW; linear O,I)::

    {"conv1.weight": {"target": "conv1/kernel", "perm": [2, 3, 1, 0]},
     "fc1.weight":   {"target": "fc1/kernel", "view": [128, 64, 12, 12],
                      "perm": [2, 3, 1, 0], "reshape": [9216, 128]}}

meaning ``framework = canonical.reshape(view).transpose(perm).reshape(reshape)``, each
step optional. Arrays may be anything numpy-like.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Mapping, Optional, Sequence, Union

from bakeoff_runner.arrays import Array


class LayoutError(ValueError):
    """The layout does not fit the array, or the file is malformed."""


@dataclass(frozen=True)
class LayoutEntry:
    """Where one canonical parameter goes, and in which shape."""

    target: str
    view: Optional[tuple[int, ...]] = None
    perm: Optional[tuple[int, ...]] = None
    reshape: Optional[tuple[int, ...]] = None


Layout = Mapping[str, LayoutEntry]


def read_layout(path: Union[str, Path, None]) -> dict[str, LayoutEntry]:
    """The layout file's entries by canonical name; empty for None."""
    if path is None:
        return {}
    try:
        table = json.loads(Path(path).read_text(encoding="utf-8"))
    except ValueError as error:
        raise LayoutError(f"{path}: not JSON: {error}") from error
    if not isinstance(table, dict):
        raise LayoutError(f"{path}: not a JSON object")
    return {name: _entry(path, name, fields) for name, fields in table.items()}


def entry_for(layout: Layout, name: str) -> LayoutEntry:
    """The entry of `name`, or "the same name, the same layout" if there is none."""
    return layout.get(name, LayoutEntry(target=name))


def by_order(
    layout: Layout, weights: Mapping[str, Array], mine: Mapping[str, Sequence[int]]
) -> dict[str, LayoutEntry]:
    """The layout with the names of a script of the user's own.

    `mine`: the shapes of its parameters and buffers, in the model's order; `weights`
    are in the workload's. Where the script lacks a name, and as many shapes follow each
    other in the same order, the first is the first and so on: a guess, which the proof
    shows to be right or wrong. Else the layout is as it was.

    A shape may differ by axes of size 1.
    """
    entries = {name: entry_for(layout, name) for name in weights}
    for name, entry in entries.items():
        have, want = mine.get(entry.target), to_framework(weights[name], entry).shape
        if have is not None and tuple(have) != want and _long(have) == _long(want):
            layout = {**layout, name: replace(entry, reshape=tuple(have))}
    if all(entry.target in mine for entry in entries.values()):
        return dict(layout)
    shapes = [
        tuple(to_framework(weights[name], entry).shape)
        for name, entry in entries.items()
    ]
    if shapes != [tuple(shape) for shape in mine.values()]:
        return dict(layout)
    renamed = dict(layout)
    for (name, entry), target in zip(entries.items(), mine):
        renamed[name] = replace(entry, target=target)
    return renamed


def _long(shape: Sequence[int]) -> list[int]:
    return [size for size in shape if size != 1]


def to_framework(array: Array, entry: LayoutEntry) -> Array:
    """The array as the framework stores it (possibly a view of `array`)."""
    try:
        if entry.view is not None:
            array = array.reshape(entry.view)
        if entry.perm is not None:
            array = array.transpose(entry.perm)
        if entry.reshape is not None:
            array = array.reshape(entry.reshape)
    except ValueError as error:
        raise LayoutError(f"'{entry.target}': {error}") from error
    return array


def to_canonical(
    array: Array, entry: LayoutEntry, canonical_shape: Sequence[int]
) -> Array:
    """The inverse: a framework's array in canonical layout and `canonical_shape`."""
    shape = tuple(canonical_shape)
    viewed = shape if entry.view is None else entry.view
    try:
        if entry.perm is not None:
            if sorted(entry.perm) != list(range(len(viewed))):
                raise ValueError(f"perm {entry.perm} does not fit shape {viewed}")
            if entry.reshape is not None:
                array = array.reshape([viewed[axis] for axis in entry.perm])
            inverse = sorted(range(len(entry.perm)), key=entry.perm.__getitem__)
            array = array.transpose(inverse)
        return array.reshape(shape)
    except ValueError as error:
        raise LayoutError(f"'{entry.target}': {error}") from error


def _entry(path: Union[str, Path], name: str, fields: Any) -> LayoutEntry:
    def axes(key: str) -> Optional[tuple[int, ...]]:
        value = fields.get(key)
        if value is None:
            return None
        if not isinstance(value, list) or not all(type(n) is int for n in value):
            raise LayoutError(f"{path}: '{name}': {key} is not a list of integers")
        return tuple(value)

    if not isinstance(fields, dict) or not isinstance(fields.get("target"), str):
        raise LayoutError(f"{path}: '{name}': no target")
    unknown = set(fields) - {"target", "view", "perm", "reshape"}
    if unknown:
        raise LayoutError(f"{path}: '{name}': unknown key '{min(unknown)}'")
    return LayoutEntry(fields["target"], axes("view"), axes("perm"), axes("reshape"))
