"""A tensor of the origin and how it lies in the IR.

In the IR the batch N is axis 0 and stands alone; what has no N has size 1 there. A
torch tensor may hold it at any axis (T,N,F) and merged with others (N*heads,T,D). A
Value remembers where: its IR axes are N, then all others in torch's order. So
transposing (T,N,F) to (N,T,F) or viewing (N*heads,T,D) as (N,heads,T,D) is no op.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, Optional, Sequence

from bakeoff_import.problems import Unsupported

N = -1  # the batch, as a size in shapes of the IR

Shape = tuple[int, ...]


@dataclass(frozen=True)
class Layout:
    """Torch's shape, and where the batch is in it.

    shape: sizes of torch's axes; at axis `n` the number of elements for each row.
    n: the axis that holds N; None: no axis depends on the batch.
    before, after: axis n is before * N * after, the last one running fastest.
    """

    shape: Shape
    n: Optional[int] = None
    before: int = 1
    after: int = 1

    @property
    def rank(self) -> int:
        return len(self.shape)

    @property
    def alone(self) -> bool:
        """N stands alone in its axis, or nowhere."""
        return self.before == 1 and self.after == 1

    def groups(self) -> list[list[int]]:
        """For each torch axis the sizes of its IR axes without N."""
        split = [size for size in (self.before, self.after) if size > 1]
        return [split if i == self.n else [s] for i, s in enumerate(self.shape)]

    def ir(self, spread: bool = False) -> Shape:
        """The shape in the IR; `spread`: stored once for all rows. What has no N has
        a leading axis of 1 in its place, but for scalars."""
        rest = [size for group in self.groups() for size in group]
        if self.n is None:
            return (1, *rest) if self.shape else ()
        return (1 if spread else N, *rest)

    def ir_axis(self, axis: int) -> int:
        """The IR's axis for torch's, which must not hold N."""
        if axis == self.n:
            raise Unsupported("works along the batch axis", "keep the rows apart")
        return 1 + sum(len(group) for group in self.groups()[:axis])

    def axis(self, axis: int) -> int:
        """A torch axis counted from 0."""
        return axis + self.rank if axis < 0 else axis

    def reshaped(self, shape: Shape, n: Optional[int]) -> Layout:
        """The layout of a row-major view with these sizes."""
        if self.n is None or n is None:
            if self.n != n:
                raise Unsupported("reshapes the batch away")
            return Layout(shape)
        inner = self.after * math.prod(self.shape[self.n + 1 :])
        right = math.prod(shape[n + 1 :])
        after, left = divmod(inner, right)
        if left or after == 0 or shape[n] % after:
            raise Unsupported(
                f"view {list(self.shape)} -> {list(shape)} mixes the rows of a batch",
                "keep the batch a dimension of its own, or merge it with its neighbour",
            )
        return Layout(shape, n, shape[n] // after, after)

    def dropped(self, axes: Sequence[int], keep: bool) -> Layout:
        """Without these axes, or with size 1 where `keep`."""
        if self.n in axes:
            raise Unsupported("reduces over the batch axis", "keep the rows apart")
        if keep:
            shape = tuple(1 if i in axes else s for i, s in enumerate(self.shape))
            return replace(self, shape=shape)
        shape = tuple(s for i, s in enumerate(self.shape) if i not in axes)
        n = None if self.n is None else self.n - sum(a < self.n for a in axes)
        return replace(self, shape=shape, n=n)

    def sized(self, axis: int, size: int) -> Layout:
        """With another size of one axis."""
        return replace(self, shape=(*self.shape[:axis], size, *self.shape[axis + 1 :]))


@dataclass(frozen=True)
class Value:
    """A value of the IR that stands for a tensor of the origin.

    spread: the IR's value has size 1 where torch's tensor has N: all rows are equal.
    """

    name: str
    layout: Layout
    dtype: str = "f32"  # f32 | i32 | bool
    spread: bool = False

    @property
    def shape(self) -> Shape:
        return self.layout.shape

    @property
    def ir(self) -> Shape:
        return self.layout.ir(self.spread)

    @property
    def plain(self) -> bool:
        """The IR's shape is torch's: N is axis 0 and alone, or there is no N."""
        return self.layout.n in (0, None) and self.layout.alone


@dataclass(frozen=True)
class Param:
    """A trained parameter of the origin that no op has read yet."""

    key: str  # its name in the state_dict
    tensor: Any


@dataclass(frozen=True)
class Const:
    """A tensor that is the same in every step: a buffer, or made by constants.

    Its tensor has size 1 at axis `n` where torch's has N.
    """

    tensor: Any
    n: Optional[int] = None
    key: str = ""  # its name in the state_dict, if it has one
    source: str = ""  # else the one buffer that it was computed from


@dataclass(frozen=True)
class Noise:
    """Bernoulli noise: `keep` with this probability, times `scale`; one for each
    element of `layout`. keep = 1: memory without defined contents."""

    layout: Layout
    keep: float
    scale: float


@dataclass(frozen=True)
class Uniform:
    """Noise in [shift, shift + 1), whose floor is Bernoulli noise."""

    layout: Layout
    shift: float = 0.0


@dataclass(frozen=True)
class Kept:
    """A value times noise whose mean is not 1, until a number makes it so."""

    x: Value
    noise: Noise


@dataclass(frozen=True)
class Shifted:
    """Places plus `step` times the number of their row: in a tensor that has the rows
    of the batch, of `step` places each, one behind the other."""

    ids: Value
    step: int


@dataclass(frozen=True)
class Complex:
    """Complex numbers: values or constants; no imaginary part: real ones."""

    real: Any
    imag: Any


@dataclass(frozen=True)
class Stacked:
    """Tensors stacked along axis 0 that the origin takes apart again."""

    items: tuple[Any, ...]
