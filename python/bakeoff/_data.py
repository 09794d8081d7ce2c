"""Arrays of the user, written beside a recipe that names them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Union

from bakeoff._models import Named
from bakeoff._program import BakeoffError

_HEADER = re.compile(r"^workload [^(]*\((.*?)\)", re.MULTILINE)
_INPUT = re.compile(r"(\S+): (?:f32|i32)\[([^\]]*)\]")
_DATA = re.compile(r"^\[data\]\n.*?(?=^\[|\Z)", re.MULTILINE | re.DOTALL)


def write_data(
    source: Named, recipe: Path, data: Union[Sequence[Any], Mapping[str, Any]]
) -> None:
    """Writes data.npz beside the recipe, which reads it from now on."""
    if source.recipe:
        raise BakeoffError(
            "a recipe names its data itself\n  leave out data, or change [data] in it"
        )
    import numpy as np  # type: ignore[import-not-found]

    inputs = _inputs(recipe.with_suffix(".ir").read_text(encoding="utf-8"))
    given = _by_name(list(inputs), data)
    arrays = {
        name: _laid(name, _array(np, name, given[name]), shape, source.channels_last)
        for name, shape in inputs.items()
    }
    np.savez(recipe.with_name("data.npz"), **arrays)
    text = '[data]\nkind = "npz"\npath = "data.npz"\n\n'
    made, count = _DATA.subn(lambda _: text, recipe.read_text(encoding="utf-8"))
    if count != 1:
        raise BakeoffError("the program wrote a recipe without [data]")
    recipe.write_text(made, encoding="utf-8")


def _inputs(workload: str) -> dict[str, tuple[int, ...]]:
    """Of a workload's text: the sizes behind N, by name."""
    header = _HEADER.search(workload)
    if header is None:
        raise BakeoffError("the program wrote a workload without inputs")
    return {
        name: tuple(int(size) for size in sizes.split(",")[1:])
        for name, sizes in _INPUT.findall(header[1])
    }


def _by_name(
    names: Sequence[str], data: Union[Sequence[Any], Mapping[str, Any]]
) -> Mapping[str, Any]:
    if isinstance(data, Mapping):
        if set(data) != set(names):
            raise BakeoffError(
                f"data has {', '.join(map(str, data)) or 'nothing'}\n  give an array "
                f"for each of {', '.join(names)}"
            )
        return data
    flat: list[Any] = []
    for one in data:  # ((a, b), y): a model of several inputs
        flat += one if isinstance(one, (list, tuple)) else [one]
    if len(flat) != len(names):
        raise BakeoffError(
            f"data has {len(flat)} arrays\n  give {len(names)}, in this order: "
            f"{', '.join(names)}"
        )
    return dict(zip(names, flat))


def _array(np: Any, name: str, given: Any) -> Any:
    for method in ("detach", "cpu", "numpy"):  # of torch, of TensorFlow
        given = getattr(given, method, lambda same=given: same)()
    made = np.asarray(given)
    if made.dtype.kind not in "buif":
        raise BakeoffError(
            f"'{name}' of data holds {made.dtype}\n  give numbers: an array of floats, "
            "integers or truth values"
        )
    return made


def _laid(name: str, array: Any, shape: tuple[int, ...], channels_last: bool) -> Any:
    """With the sizes of the workload's input behind the rows."""
    own = array.shape[1:]
    if channels_last and len(own) > 1 and (own[-1], *own[:-1]) == shape:
        axes = (0, array.ndim - 1, *range(1, array.ndim - 1))
        return array.transpose(axes)
    if own == (*shape, 1) or (*own, 1) == shape:
        return array.reshape(len(array), *shape)
    if own != shape or not array.ndim:
        sizes = ",".join(["N", *map(str, shape)])
        raise BakeoffError(
            f"'{name}' of data has the shape {list(array.shape)}\n  give [{sizes}], a "
            "row for each sample"
        )
    return array
