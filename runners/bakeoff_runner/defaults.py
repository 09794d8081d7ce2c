"""What a script of the user's own need not define.

Beside such a script lies ``<script>.contender.json`` with what the recipe states::

    {"inputs": {"x": "f32", "y": "i32"}, "divisor": 255.0, "batch": 128, "frozen": []}

and takes the place of `load_data`, `batches` and ``BATCH_SIZE`` where they are missing.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Iterator, Mapping, Sequence

from bakeoff_runner.adapter import AdapterError
from bakeoff_runner.arrays import Array
from bakeoff_runner.tensors import read_safetensors


@dataclass(frozen=True)
class Stated:
    """What a recipe states for a script of the user's own."""

    inputs: Mapping[str, str] = field(default_factory=dict)  # name -> "f32" or "i32"
    divisor: float = 1.0  # of float inputs
    batch: int = 0
    frozen: Sequence[str] = ()  # parameters of the workload that keep their values

    def __bool__(self) -> bool:
        return self.batch > 0


def stated_for(script: Path) -> Stated:
    """Nothing for a script that was emitted."""
    path = script.with_suffix(".contender.json")
    if not path.is_file():
        return Stated()
    return Stated(**json.loads(path.read_text(encoding="utf-8")))


def read_inputs(stated: Stated, path: str) -> list[Array]:
    """The data's arrays, in the order of the workload's inputs: float32 and int32.

    Divided in float32, as emitted scripts do.
    """
    import numpy as np

    tensors = read_safetensors(path)
    arrays = []
    for name, kind in stated.inputs.items():
        if name not in tensors:
            raise AdapterError(f"{path} has no input '{name}'")
        array = tensors[name]
        if kind == "f32":
            array = array.astype(np.float32)
            if stated.divisor != 1:
                array = array / np.float32(stated.divisor)
        else:
            array = array.astype(np.int32)
        arrays.append(array)
    return arrays


def whole_batches(arrays: Sequence[Any], batch: int) -> Iterator[tuple[Any, ...]]:
    """Endless batches in the order of the file; a partial last one is left out."""
    rows = min(len(array) for array in arrays)
    if rows < batch:
        raise AdapterError(f"the data has {rows} rows, a batch {batch}")
    while True:
        for first in range(0, rows - batch + 1, batch):
            yield tuple(array[first : first + batch] for array in arrays)
