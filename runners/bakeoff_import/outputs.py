"""Which of what a model gives the loss compares.

Only that one tensor leaves ``forward``: a cache, a class that no export knows, or an
output of training alone would make an export fail that does not need them.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, Iterator, Sequence

import torch

from bakeoff_import.problems import ImportProblem


def _walk(name: str, made: Any) -> Iterator[tuple[str, torch.Tensor]]:
    parts: Any = ()
    if isinstance(made, torch.Tensor):
        yield name, made
    elif isinstance(made, Mapping):
        parts = made.items()
    elif isinstance(made, tuple) and hasattr(made, "_fields"):
        parts = zip(made._fields, made)
    elif isinstance(made, (list, tuple)):
        parts = enumerate(made)
    elif dataclasses.is_dataclass(made):
        parts = ((f.name, getattr(made, f.name)) for f in dataclasses.fields(made))
    for key, part in parts:
        yield from _walk(f"{name}.{key}".lstrip("."), part)


def side_by_side(outputs: Sequence[torch.Tensor]) -> torch.Tensor:
    """Several outputs as one, each as N,elements."""
    rows = [t.flatten(1) if t.dim() > 1 else t[:, None] for t in outputs]
    return torch.cat(rows, 1) if len(rows) > 1 else outputs[0]


class Outputs:
    """Chooses by the name that the user gives, "logits" or "0"; else the only one.
    Names with commas between them are several outputs, side by side."""

    def __init__(self, wanted: str) -> None:
        self.wanted = wanted
        self.several = wanted.split(",") if "," in wanted else []
        self.sizes: dict[str, tuple[int, ...]] = {}  # of a row of each chosen one
        self.names: dict[bool, list[str]] = {}  # by the mode, training or not
        self.unused: list[str] = []  # that training gives and inference does not

    def look(self, training: bool, made: Any) -> None:
        """Remembers what a mode gives. With no name given inference decides: what
        training gives beside that is for losses of its own."""
        self.names[training] = [name for name, _ in _walk("", made)]

    def of(self, training: bool, made: Any) -> torch.Tensor:
        found = dict(_walk("", made))
        self.names[training] = list(found)
        if len(found) == 1 and ("" in found or not self.wanted):
            self._check_known(found)
            return next(iter(found.values()))
        if self.wanted:
            chosen = self.several or [self.wanted]
            for name in chosen:
                if chosen.count(name) > 1:
                    raise ImportProblem(
                        f"the output '{name}' is named twice", "name each output once"
                    )
                if name not in found:
                    raise self._no_such(name, found)
            self.sizes = {
                name: tuple(map(int, found[name].shape[1:])) for name in chosen
            }
            return side_by_side([found[name] for name in chosen])
        other = self.names.get(not training, [])
        if training and len(other) == 1 and found:
            name = other[0] if other[0] in found else next(iter(found))
            self.unused = [key for key in found if key != name]
            return found[name]
        raise ImportProblem(
            f"the model gives {len(found)} outputs: {', '.join(found)}"
            if found
            else "the model gives no tensor",
            f"name the one that the loss compares: --output {next(iter(found), '0')}; "
            "to predict several, their names with commas between them",
        )

    def _check_known(self, found: Any) -> None:
        """A model that gives one tensor has the output that its other mode names."""
        known = {name for names in self.names.values() for name in names}
        if self.wanted and self.wanted not in known | {"0"}:
            raise self._no_such(self.wanted, found)

    def _no_such(self, wanted: str, found: Any) -> ImportProblem:
        names = [name or "one, without a name" for name in found]
        return ImportProblem(
            f"the model has no output '{wanted}'", f"it has {', '.join(names)}"
        )
