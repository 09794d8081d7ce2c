"""Adds ops to the graph of an import, whatever framework the model is of: values that
know where the batch is, and the steps that rows of every table are made of.

Numbers of constants are NumPy arrays here; each importer says how it keeps them
(``constant``).
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, Callable, Optional, Sequence

import numpy as np

from bakeoff_import.graph import Graph
from bakeoff_import.problems import Refusal, Unsupported
from bakeoff_import.values import Layout, Shape, Value

LARGEST = float(np.finfo(np.float32).max)
REDUCES = {"sum", "mean", "max", "min", "logsumexp", "prod"}
MOST_JOINED = 64  # values that the IR's concat takes


# Arithmetic of a value and a number that changes nothing.
NOTHING = (("mul", 1), ("div", 1), ("add", 0), ("sub", 0))


class Builder:
    def __init__(self, ops: Sequence[str] = ()) -> None:
        """ops: of the IR; empty: not known."""
        self._ops = set(ops)
        self.graph = Graph()
        self.refusals: list[Refusal] = []
        self.running: dict[str, Any] = {}  # statistics -> the call that moves them
        # Expanded values -> how they lie, unless reshaped since, and what they were.
        self.expanded: dict[str, tuple[Layout, Value]] = {}
        self._cached: dict[Any, Value] = {}

    def constant(self, array: Any) -> Value:
        """A frozen array as a value without N."""
        raise NotImplementedError

    def value(self, arg: Any) -> Value:
        """A value of the IR for a tensor of any kind; for a number a constant."""
        if isinstance(arg, Value):
            return arg
        if isinstance(arg, (bool, int, float)):
            return self.number(float(arg))
        if type(arg).__name__ in ("SymInt", "SymFloat"):
            raise Unsupported(
                "computes with the batch size as a number",
                "leave it to the loss, which is a mean over the rows",
            )
        raise Unsupported(f"takes {type(arg).__name__} where a tensor is expected")

    def batch_first(self, arg: Any, rank: Optional[int] = None) -> Value:
        """A value whose IR shape is torch's, N first and alone."""
        v = self.spread_out(self.value(arg))
        if rank is not None and v.layout.rank != rank:
            raise Unsupported(
                f"has an input of {v.layout.rank} axes, not {rank}",
                "keep the batch axis",
            )
        if v.layout.n != 0 or not v.layout.alone:
            raise Unsupported(
                "the batch must be axis 0 here, and not merged with another axis",
                "bring the batch first before this op",
            )
        return v

    def known(self, op: str) -> bool:
        """Whether the IR has this op."""
        return not self._ops or op in self._ops

    def _once(self, key: Any, make: Callable[[], Value]) -> Value:
        if key not in self._cached:
            self._cached[key] = make()
        return self._cached[key]

    def number(self, number: float) -> Value:
        """A scalar; printed as a literal. What exceeds float32 (the least number, for
        masks) is its largest."""
        if math.isfinite(number):
            number = max(-LARGEST, min(LARGEST, number))

        def make() -> Value:
            with self.graph.called("c"):
                attrs = {"value": float(number)}
                name = self.graph.node("constant", [], (), attrs=attrs)
            return Value(name, Layout(()))

        return self._once(("n", float(number)), make)

    def expand(self, v: Value, layout: Layout, spread: bool = False) -> Value:
        """Repeated where its size is 1; the rows are its own, or those of an input."""
        shape = layout.ir(spread)
        rows = layout.n is not None and not v.spread and v.layout.n is not None
        inputs = [v.name, v.name if rows else next(iter(self.graph.input_shapes))]
        name = self.graph.node("expand", inputs, shape, v.dtype, attrs={"shape": shape})
        return Value(name, layout, v.dtype, spread)

    def spread_out(self, v: Value) -> Value:
        """With all its rows in the IR."""
        if not v.spread:
            return v
        return self.expand(v, v.layout)

    def _single(self, name: str) -> bool:
        """Whether a number without axes has the shape [1] in the IR."""
        made = self.graph.by_output.get(name)
        return made is not None and made.shape == (1,)

    def apart(self, v: Value) -> Value:
        """The same value with N alone at axis 0, and what was merged with it behind."""
        lay = v.layout
        if lay.n is None:
            raise Unsupported("has no batch axis")
        return Value(v.name, Layout((1, *lay.ir()[1:]), 0), v.dtype, v.spread)

    def made(
        self,
        op: str,
        inputs: Sequence[Value],
        layout: Layout,
        dtype: str = "f32",
        **more: Any,
    ) -> Value:
        """One op whose result lies as `layout` says; spread if every input is. Dropout
        draws a mask for every row, also of what is the same in all rows."""
        if op == "dropout" or more.get("rate"):
            inputs = [self.spread_out(v) for v in inputs]
        spread = layout.n is not None and not any(
            v.layout.n is not None and not v.spread for v in inputs
        )
        shape = layout.ir(spread)
        params = more.pop("params", ())
        names = [v.name for v in inputs]
        if not shape and (op in REDUCES or any(map(self._single, names))):
            shape = (1,)  # the axis in the place of N stays
        name = self.graph.node(op, names, shape, dtype, params, more)
        return Value(name, layout, dtype, spread)

    def reshaped(self, v: Value, layout: Layout) -> Value:
        if v.layout.n is not None and layout.n is None:
            raise Unsupported("reshapes the batch away")
        name = self.graph.reshape(v.name, v.ir, layout.ir(v.spread), v.dtype)
        return Value(name, layout, v.dtype, v.spread)

    def permuted(self, v: Value, perm: Sequence[int]) -> Value:
        """Torch's permutation: an op of the IR only where the axes besides N move."""
        old = v.layout
        n = None if old.n is None else list(perm).index(old.n)
        shape = tuple(old.shape[axis] for axis in perm)
        layout = Layout(shape, n, old.before, old.after)
        starts, at = [], 1
        for group in old.groups():
            starts.append(range(at, at + len(group)))
            at += len(group)
        order = [0, *(i for axis in perm for i in starts[axis])]
        name = self.graph.transpose(v.name, v.ir, order, v.dtype)
        return Value(name, layout, v.dtype, v.spread)

    def real(self, v: Value) -> Value:
        """Integers as floats."""
        return self.unary("cast", v, "f32", to="f32") if v.dtype == "i32" else v

    def unary(
        self, op: str, v: Value, dtype: Optional[str] = None, **attrs: Any
    ) -> Value:
        return self.made(op, [v], v.layout, dtype or v.dtype, **attrs)

    def binary(self, op: str, a: Value, b: Any, dtype: str = "f32") -> Value:
        """Of a value and a number, or of values with the same layout."""
        if (op, b) in NOTHING:
            return a
        other = b if isinstance(b, Value) else self.number(float(b))
        return self.made(op, [a, other], a.layout, dtype)

    def ids(self, v: Value) -> Value:
        """For an op that reads integers."""
        return (
            v if v.dtype == "i32" else self.unary("cast", self.real(v), "i32", to="i32")
        )

    def placed(
        self, op: str, x: Value, ids: Value, axis: int, size: Optional[int] = None
    ) -> Value:
        """`gather` or `scatter_add`; places of size 1 along an axis are all of it's."""
        lay, rank = x.layout, x.layout.rank
        if replace(lay, shape=ids.shape) != ids.layout:
            raise Unsupported(
                "has places of other rows of the batch", "places for each row"
            )
        own = [d for d in range(rank) if d not in (axis, lay.n) and ids.shape[d] > 1]
        lead = [*([] if lay.n is None else [lay.n]), *own, axis]
        order = [*lead, *(d for d in range(rank) if d not in lead)]
        x = self.permuted(self.spread_out(self.real(x)), order)
        ids = self.spread_out(self.real(ids)) if ids.spread else ids
        ids, at = self.permuted(ids, order), len(lead) - 1
        rest = list(range(at + 1, rank))
        ids = self.ids(self.reshaped(ids, ids.layout.dropped(rest, False)))
        more: dict[str, Any] = {} if size is None else {"size": size}
        layout = x.layout.sized(at, size or ids.shape[at])
        made = self.made(op, [x, ids], layout, axis=x.layout.ir_axis(at), **more)
        return self.permuted(made, [order.index(d) for d in range(rank)])

    def sliced(self, v: Value, axis: int, begin: int, end: int, step: int = 1) -> Value:
        size = v.shape[axis]
        if (begin, end, step) == (0, size, 1):
            return v
        layout = v.layout.sized(axis, max(0, -(-(end - begin) // step)))
        return self.made(
            "slice",
            [v],
            layout,
            v.dtype,
            axis=v.layout.ir_axis(axis),
            begin=begin,
            end=end,
            step=step,
        )

    def stack(self, values: Sequence[Value], axis: int) -> Value:
        parts = []
        for v in values:
            lay = v.layout
            shape = (*lay.shape[:axis], 1, *lay.shape[axis:])
            n = lay.n if lay.n is None or lay.n < axis else lay.n + 1
            parts.append(self.reshaped(v, Layout(shape, n, lay.before, lay.after)))
        return self.concat(parts, axis)

    def reduced(self, op: str, v: Value, axes: Sequence[int], keep: bool) -> Value:
        if op == "prod":  # over one axis at a time
            for axis in sorted(axes, reverse=True):
                at, rest = v.layout.ir_axis(axis), v.layout.dropped([axis], keep)
                v = self.made(op, [v], rest, axis=at, keepdims=keep)
            return v
        layout = v.layout.dropped(axes, keep)
        ir_axes = sorted(v.layout.ir_axis(axis) for axis in axes)
        return self.made(op, [v], layout, axes=ir_axes, keepdims=keep)

    def concat(self, values: Sequence[Value], axis: int) -> Value:
        if len(values) == 1:
            return values[0]
        if len(values) > MOST_JOINED:
            parts = range(0, len(values), MOST_JOINED)
            joined = [self.concat(values[i : i + MOST_JOINED], axis) for i in parts]
            return self.concat(joined, axis)
        lead = next((v for v in values if v.layout.n is not None), values[0])
        fitted = []
        for v in values:
            if lead.layout.n is not None:
                v = self._fitted(v, lead.layout.sized(axis, v.shape[axis]))
                v = self.spread_out(v)
                if (v.layout.n, v.layout.before, v.layout.after) != (
                    lead.layout.n,
                    lead.layout.before,
                    lead.layout.after,
                ):
                    raise Unsupported("mixes rows of a batch with each other")
            fitted.append(v)
        if any(v.dtype != "f32" for v in fitted):  # the IR joins floats alone
            fitted = [self.real(v) for v in fitted]
        layout = lead.layout.sized(axis, sum(v.shape[axis] for v in fitted))
        return self.made("concat", fitted, layout, axis=lead.layout.ir_axis(axis))

    def _fitted(self, v: Value, layout: Layout) -> Value:
        """An operand with size 1 where it is broadcast, and N where the result's is."""
        n = layout.n
        if v.layout.rank == 0:
            ones = (1,) * len(layout.ir())
            if not ones or not self._single(v.name):
                return v
            name = self.graph.reshape(v.name, (1,), ones, v.dtype)
            return Value(name, v.layout, v.dtype)
        lead = layout.rank - v.layout.rank
        if n is None or (v.layout.n is not None and not v.spread):
            shape = (1,) * lead + v.shape
            own = None if v.layout.n is None else v.layout.n + lead
            target = Layout(shape, own, v.layout.before, v.layout.after)
            return self.reshaped(v, target) if lead else v
        target, rest = self.without_rows(v.shape, layout)
        name = self.graph.reshape(v.name, v.ir, rest, v.dtype)
        return Value(name, target, v.dtype, spread=True)

    def without_rows(self, sizes: Shape, layout: Layout) -> tuple[Layout, Shape]:
        """For an operand without rows of its own: size 1 at N, and at what is merged
        with it; its layout and its shape in the IR."""
        n = layout.n
        assert n is not None
        shape = (1,) * (layout.rank - len(sizes)) + tuple(sizes)
        size = shape[n]
        if size not in (1, layout.shape[n]):
            raise Unsupported("mixes rows of a batch with each other")
        before, after = (layout.before, layout.after) if size > 1 else (1, 1)
        rest: Shape = Layout(shape, n, before, after).ir(spread=True)
        if size == 1 and not layout.alone:
            rest = (1, *_ones_at(layout, shape))
        return Layout(shape, n, before, after), rest

    def broadcast(
        self, values: Sequence[Any], shape: Shape, n: Optional[int]
    ) -> Layout:
        """The layout of an op of several operands, whose result has these sizes; what
        is no Value has no rows."""
        rank = len(shape)
        held = {
            (v.layout.n + rank - v.layout.rank, v.layout.before, v.layout.after)
            for v in values
            if isinstance(v, Value) and v.layout.n is not None and not v.spread
        }
        if len(held) > 1:
            raise Unsupported("mixes rows of a batch with each other")
        if held:
            at, before, after = next(iter(held))
            return Layout(shape, at, before, after)
        return Layout(shape, n, 1, shape[n] if n is not None else 1)


def _ones_at(layout: Layout, shape: Shape) -> list[int]:
    """IR sizes besides N of an operand with size 1 where `layout` merges N."""
    sizes = []
    for i, group in enumerate(layout.groups()):
        sizes += [1] * len(group) if i == layout.n else [shape[i]]
    return sizes
