"""A tensor of Keras and how it lies in the IR; parameters in the forms that ops of the
IR read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Optional

import numpy as np

from bakeoff_import.values import Shape, Value

PLAIN = "plain"  # Keras's axes
FIRST = "first"  # N,H,W,C of Keras is N,C,H,W; likewise for 1 and 3 axes of space
ROW = "row"  # N,T,C of Keras is N,C,1,T: an op along one axis as one of pictures
FLAT = "flat"  # N,H*W*C of Keras is N,C*H*W


@dataclass(frozen=True)
class Held:
    """A value of the IR that stands for a tensor of Keras, and the order of its axes.

    picture: of FLAT: C, H, W.
    """

    value: Value
    form: str = PLAIN
    picture: Shape = ()

    @property
    def dtype(self) -> str:
        return self.value.dtype

    @property
    def rank(self) -> int:
        rank = self.value.layout.rank
        return rank - 1 if self.form == ROW else rank

    @property
    def shape(self) -> Shape:
        """Keras's sizes; N counts 1."""
        s = self.value.shape
        if self.form == FIRST:
            return (s[0], *s[2:], s[1])
        return (s[0], s[3], s[1]) if self.form == ROW else s

    @property
    def n(self) -> Optional[int]:
        return self.value.layout.n

    @property
    def symbolic(self) -> Shape:
        """Keras's sizes with None where the batch is."""
        return tuple(None if i == self.n else s for i, s in enumerate(self.shape))  # type: ignore[misc]

    def axis(self, axis: int) -> int:
        """An axis of Keras counted from 0."""
        return axis + self.rank if axis < 0 else axis

    def laid(self, axis: int) -> int:
        """The axis of `value` for one of Keras."""
        axis = self.axis(axis)
        if self.form == FIRST and axis > 0:
            return 1 if axis == self.rank - 1 else axis + 1
        return (0, 3, 1)[axis] if self.form == ROW else axis


@dataclass(frozen=True)
class Form:
    """How a parameter of the IR is made of a variable: ("transpose", perm),
    ("reshape", shape) and ("take", axis, places) in order; places may be some of those
    that there are. Any form can be undone."""

    steps: tuple[tuple[Any, ...], ...] = ()

    def apply(self, array: Any) -> Any:
        for kind, *how in self.steps:
            if kind == "transpose":
                array = np.transpose(array, how[0])
            elif kind == "reshape":
                array = np.reshape(array, how[0])
            else:
                array = np.take(array, how[1], how[0])
        return array

    def undo(self, array: Any, old: Any) -> Any:
        """The variable that apply() makes this array of; what it does not take is as in
        the old one."""
        places = np.arange(old.size).reshape(old.shape)
        flat = np.array(old, dtype=np.asarray(array).dtype).reshape(-1)
        flat[self.apply(places).reshape(-1)] = np.asarray(array).reshape(-1)
        return flat.reshape(old.shape)


@dataclass(frozen=True)
class Read:
    """What the IR's parameter is in Keras."""

    variable: Any
    form: Form
