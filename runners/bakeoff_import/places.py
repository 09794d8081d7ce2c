"""The table's rows for places along axes.

Indexing is one spelling for many computations: `x[i, :, j]` may be a view, a table
look-up, a gather or a scatter, by what the indices are. Constant places become one
`take`, of several axes that are made one; computed ones `gather` and `scatter_add`, or
`embedding` where a table has no batch. An index that counts 0, 1, 2, ... along the
batch means "each row its own" and disappears, as nothing may mix rows. Sorting has no
op: the few largest are found one after the other by `argmax`, at most MOST_SORTED of
them.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, Sequence

import torch

from bakeoff_import.builder import LARGEST
from bakeoff_import.mapping import ROWS_FOLDED, Args, Mapper
from bakeoff_import.problems import Unsupported
from bakeoff_import.rows import over, row
from bakeoff_import.steps import along, product
from bakeoff_import.values import Const, Layout, Param, Shifted, Value

MOST_SORTED = 32  # places that are found one after the other


def _moved(m: Mapper, x: Value, axis: int, to: int) -> Value:
    order = [i for i in range(x.layout.rank) if i != axis]
    return m.permuted(x, [*order[:to], axis, *order[to:]])


def _sum(m: Mapper, x: Value, axis: int) -> Value:
    return m.reduced("sum", x, [axis], False)


def _ones(m: Mapper, ids: Any, size: int) -> Value:
    """For each integer a row of zeros with a one, on an axis behind."""
    if isinstance(ids, Const):
        places = ids.tensor.to(torch.int64) % size
        hot = torch.nn.functional.one_hot(places, size).to(torch.float64)
        return m.value(Const(hot, ids.n))
    x = m.ids(ids)
    lay = x.layout
    layout = Layout((*lay.shape, size), lay.n, lay.before, lay.after)
    unit = m.slot(Const(torch.eye(size, dtype=torch.float64)))
    return m.made("embedding", [x], layout, params=[("weight", unit)])


def _short(m: Mapper, ids: Any, axis: int) -> Any:
    """Places with size 1 along the axes besides `axis` along which they are equal."""
    if not isinstance(ids, Const):
        v = m.value(ids)
        before = m.expanded.get(v.name, (v.layout, v))[1]
        alike = len(before.shape) == len(v.shape) and before.layout.n == v.layout.n
        return before if alike else v
    tensor = ids.tensor
    for d in range(tensor.ndim):
        first = tensor.narrow(d, 0, 1)
        if d not in (axis, ids.n) and bool((tensor == first).all()):
            tensor = first
    return Const(tensor, ids.n)


def _made_one(
    m: Mapper, x: Value, axes: Sequence[int], ids: Sequence[Any]
) -> tuple[Value, int, Any, list[int]]:
    """x with these axes made one; where that is, the places along it, and how the axes
    were permuted before."""
    beside = list(axes) == list(range(axes[0], axes[0] + len(axes)))
    at = axes[0] if beside else 0
    rest = [d for d in range(x.layout.rank) if d not in axes]
    order = [*rest[:at], *axes, *rest[at:]]
    if x.layout.n in axes:
        raise Unsupported("takes some rows of the batch", "keep all rows")
    places = torch.zeros((), dtype=torch.int64)
    for axis, one in zip(axes, ids):
        places = places * x.shape[axis] + one.to(torch.int64) % x.shape[axis]
    x = m.permuted(x, order)
    lay = x.layout
    size = math.prod(lay.shape[at : at + len(axes)])
    n = lay.n if lay.n is None or lay.n < at else lay.n - len(axes) + 1
    shape = (*lay.shape[:at], size, *lay.shape[at + len(axes) :])
    return m.reshaped(x, Layout(shape, n, lay.before, lay.after)), at, places, order


def _chosen(m: Mapper, x: Value, axes: Sequence[int], ids: Sequence[Any]) -> Value:
    """x[..., i, ..., j, ...] with constant places."""
    flat, at, places, _ = _made_one(m, x, axes, ids)
    whole = torch.equal(places.reshape(-1), torch.arange(flat.shape[at]))
    made = flat if whole else m.taken(m.real(flat), places.reshape(-1), at)
    if x.dtype == "bool" and not whole:
        made = m.made("less", [m.number(0.5), made], made.layout, "bool")
    lay = made.layout
    n = lay.n if lay.n is None or lay.n < at else lay.n + places.ndim - 1
    shape = (*lay.shape[:at], *places.shape, *lay.shape[at + 1 :])
    return m.reshaped(made, Layout(shape, n, lay.before, lay.after))


def _given(indices: Sequence[Any]) -> list[tuple[int, Any]]:
    """Axes and what is read of them; a constant mask as places of its axes."""
    found: list[tuple[int, Any]] = []
    axis = 0
    for one in indices:
        mask = isinstance(one, Const) and one.tensor.dtype == torch.bool
        if mask and one.n is None:
            places = one.tensor.nonzero().unbind(1)
            found += [(axis + i, Const(t)) for i, t in enumerate(places)]
            axis += len(places)
            continue
        found += [] if one is None else [(axis, one)]
        axis += 1
    return found


def _counts_rows(x: Value, ids: Any) -> bool:
    """Whether an index is 0, 1, 2, ... along the batch: each row takes of its own."""
    if x.layout.n != 0 or not isinstance(ids, Const) or ids.n is None:
        return False
    whole = ids.tensor.numel() == ids.tensor.shape[ids.n] == ROWS_FOLDED
    counted = torch.arange(ROWS_FOLDED)
    return whole and bool(torch.equal(ids.tensor.reshape(-1), counted))


def _of_each_row(m: Mapper, x: Value, given: Sequence[tuple[int, Any]]) -> Value:
    """x[rows, i, j, ...]: constant places, or a computed one of the first axis."""
    ids = [one for _, one in given]
    shape, n = m.out()
    if all(isinstance(one, Const) for one in ids):
        tensors = [m.one_row(one, 1) for one in ids]
        made = _chosen(m, x, [axis for axis, _ in given], tensors)
        return m.reshaped(made, Layout(shape, n))
    if len(given) > 1 or given[0][0] != 1 or n != 0:
        raise Unsupported("takes places that are computed", _REMEDY)
    places = m.value(ids[0])
    behind = (1,) * (x.layout.rank - 2)
    flat = Layout((1, math.prod(places.shape[1:]), *behind), 0)
    made = m.placed("gather", x, m.reshaped(places, flat), 1)
    return m.reshaped(made, Layout(shape, 0))


def _of_table(m: Mapper, table: Any, axis: int, ids: Value) -> Value:
    """Rows of what has no batch, by computed integers."""
    if axis:
        raise Unsupported("takes places that are computed", _REMEDY)
    lay = ids.layout
    if isinstance(table, Param) and table.tensor.ndim == 2:
        shape = (*lay.shape, table.tensor.shape[1])
        layout = Layout(shape, lay.n, lay.before, lay.after)
        slots = [("weight", m.slot(table))]
        return m.made("embedding", [m.ids(ids)], layout, params=slots)
    x = m.value(table)
    flat = m.reshaped(x, Layout((x.shape[0], math.prod(x.shape[1:]))))
    made = product(m, _ones(m, ids, x.shape[0]), flat)
    layout = Layout((*lay.shape, *x.shape[1:]), lay.n, lay.before, lay.after)
    return m.reshaped(made, layout)


def _behind_each_other(m: Mapper, x: Value, places: Shifted) -> Value:
    """x.view(N * step, ...)[places of each row + step * its number]"""
    lay, ids = x.layout, places.ids
    fits = (lay.n, lay.before, lay.after) == (0, 1, places.step)
    if not fits or ids.layout.n != 0 or ids.layout.before != 1:
        raise Unsupported("has places of other rows", "places for each row")
    behind, count = lay.shape[1:], math.prod(ids.shape)
    flat = m.reshaped(ids, Layout((1, count, *(1,) * len(behind)), 0))
    rows = m.reshaped(x, Layout((1, places.step, *behind), 0))
    made = m.placed("gather", rows, flat, 1)
    return m.reshaped(made, Layout((*ids.shape, *behind), 0, 1, ids.layout.after))


_REMEDY = (
    "one constant index vector along one axis, slices, nn.Embedding, or "
    "x[torch.arange(len(x)), i] for a row of each"
)


@row("index")
def index(m: Mapper, a: Args) -> Value:
    """`take` by constant integers; `embedding`, `gather` by computed ones of an axis"""
    given = _given(a.indices)
    (axis, first), *rest = given
    if isinstance(first, Shifted) and axis == 0 and not rest:
        return _behind_each_other(m, m.value(a.input), first)
    table = isinstance(a.input, (Param, Const)) or m.value(a.input).layout.n is None
    if table and not rest and isinstance(first, Value) and first.dtype != "bool":
        return _of_table(m, a.input, axis, first)
    x = m.value(a.input)
    if rest and axis == 0 and x.layout.alone and _counts_rows(x, first):
        return _of_each_row(m, x, rest)
    if x.layout.n is None and all(isinstance(one, Const) for _, one in given):
        # The same places for every row.
        ids = [m.one_row(one, 1) for _, one in given]
        made, (shape, n) = _chosen(m, x, [d for d, _ in given], ids), m.out()
        if n is None:
            return made
        whole = Layout(shape, n, 1, shape[n])
        name = m.graph.reshape(made.name, made.ir, whole.ir(True), made.dtype)
        return Value(name, whole, made.dtype, spread=True)
    alike = isinstance(first, Value) and first.layout.n is None and not rest
    if alike and first.dtype != "bool" and axis != x.layout.n:
        hot = _ones(m, first, x.shape[axis])
        flat = m.reshaped(hot, Layout((math.prod(first.shape), x.shape[axis])))
        made = product(
            m, _moved(m, x, axis, x.layout.rank - 1), m.permuted(flat, [1, 0])
        )
        made = _moved(m, made, x.layout.rank - 1, axis)
        return m.reshaped(made, Layout(*m.out(), made.layout.before, made.layout.after))
    if not all(isinstance(one, Const) and one.n is None for _, one in given):
        raise Unsupported(
            "indexes by tensors along several axes, or by a computed one", _REMEDY
        )
    return _chosen(m, x, [d for d, _ in given], [one.tensor for _, one in given])


@row("index_select")
def index_select(m: Mapper, a: Args) -> Value:
    """`take` by constant integers"""
    indices = [None] * m.value(a.input).layout.axis(a.dim) + [a.index]
    return index(m, Args(input=a.input, indices=indices))  # type: ignore[no-any-return]


@row("gather")
def gather(m: Mapper, a: Args) -> Value:
    """`take` by constant integers, `gather` by computed ones"""
    x, (shape, n) = m.value(a.input), m.out()
    axis = x.layout.axis(a.dim)
    if axis == x.layout.n or n != x.layout.n:
        raise Unsupported("takes some rows of the batch", "keep all rows")
    for d in range(x.layout.rank):
        if d not in (axis, n):
            x = m.sliced(x, d, 0, shape[d])
    ids = _short(m, a.index, axis)
    if isinstance(ids, Const):
        tensor = m.one_row(ids, 1)
        if n is not None and bool((tensor == tensor.narrow(n, 0, 1)).all()):
            tensor = tensor.narrow(n, 0, 1)  # in what is merged with N too
        axes = [d for d in range(tensor.ndim) if d == axis or tensor.shape[d] > 1]
        flat = tensor.reshape([tensor.shape[d] for d in axes])
        count = len(axes)
        places = [
            flat
            if d == axis
            else torch.arange(shape[d]).reshape([-1] + [1] * (count - 1 - i))
            for i, d in enumerate(axes)
        ]
        made = _chosen(m, x, axes, places)
        if axes != list(range(axes[0], axes[0] + count)):  # they stand in front
            rest = [d for d in range(tensor.ndim) if d not in axes]
            order = [*axes, *rest]
            made = m.permuted(made, [order.index(d) for d in range(tensor.ndim)])
        return made
    return m.placed("gather", x, ids, axis)


@row("scatter", "scatter_add", "scatter_reduce")
def scatter(m: Mapper, a: Args) -> Value:
    """`scatter_add`; of numbers that replace others, beside what is left of them"""
    shape, n = m.out()
    axis, adds = a.dim % len(shape), "_add" in m._op_name(m.node)
    reduce = a.get("reduce")
    if reduce in ("sum", "add") and a.get("include_self", True):
        adds, reduce = True, None
    mean = reduce == "mean" and not a.get("include_self", True)
    if axis == n or not (reduce is None or mean):
        raise Unsupported("writes to some rows of the batch, or reduces", _WRITES)
    sizes = list(m.node.args[2].meta["val"].shape)
    if any(sizes[d] != size for d, size in enumerate(shape) if d not in (axis, n)):
        raise Unsupported("writes to a part of an axis", _WRITES)
    base, source = a.input, a.get("src", a.get("value"))
    ids = _short(m, a.index, axis)
    if isinstance(ids, Const):
        tensor = m.one_row(ids, 1)
        if tensor.numel() == tensor.shape[axis]:
            part = source
            if not isinstance(source, (int, float)):
                part = m.sliced(m.real(m.value(source)), axis, 0, int(sizes[axis]))
            return _written(m, m.value(base), part, [axis], [tensor.flatten()], adds)
        ids = m.value(a.index)
    wide = ids.layout if n is None else replace(ids.layout, n=n)
    wide = replace(wide, shape=tuple(shape)).sized(axis, int(sizes[axis]))

    def sums(part: Any) -> Value:
        if isinstance(part, (int, float)):
            part = Const(torch.full((1,) * len(shape), float(part)).double())
        part = part if isinstance(part, Const) else m.real(m.value(part))
        if isinstance(part, Value) and part.layout.rank:
            part = m.sliced(part, axis, 0, int(sizes[axis]))
        part = m._fitted(part, wide)
        if part.shape != wide.shape or part.spread:
            part = m.expand(part, wide)
        return m.placed("scatter_add", part, ids, axis, size=int(shape[axis]))

    total = sums(source)
    if mean:  # places that nothing is written to stay as they are
        adds, count = False, sums(1.0)
        total = over("div", m, total, over("maximum", m, count, m.number(1.0)))
    if not isinstance(base, Const) or bool(base.tensor.any()):
        kept = m.real(m.value(base))
        if adds:
            total = over("add", m, kept, total)
        else:  # no product: what others replace may be -inf
            hit = sums(1.0)
            hit = m.made("less", [m.number(0.5), hit], hit.layout, "bool")
            total = m.pointwise("where", hit, total, kept)
    if m.node.meta["val"].dtype == torch.bool:
        total = m.made("less", [m.number(0.5), total], total.layout, "bool")
    return total


_WRITES = "torch.where, or a matrix product with one_hot"


def _written(
    m: Mapper, x: Value, part: Any, axes: Sequence[int], ids: Sequence[Any], adds: bool
) -> Value:
    """x[..., i, ..., j, ...] = part, or += part, with constant places."""
    flat, at, places, order = _made_one(m, x, axes, ids)
    lay, count = flat.layout, places.numel()
    n = lay.n if lay.n is None or lay.n < at else lay.n + places.ndim - 1
    shape = (*lay.shape[:at], *places.shape, *lay.shape[at + 1 :])
    wide = Layout(shape, n, lay.before, lay.after)
    if isinstance(part, (int, float)):
        part = Const(torch.full((1,) * len(shape), float(part), dtype=torch.float64))
    fitted = m._fitted(part if isinstance(part, Const) else m.value(part), wide)
    if fitted.shape != shape or fitted.spread:
        fitted = m.expand(fitted, wide, fitted.spread)
    fitted = m.reshaped(m.real(fitted), lay.sized(at, count))
    size = flat.shape[at]
    if adds:
        matrix = torch.zeros(size, count, dtype=torch.float64)
        matrix[places.reshape(-1), torch.arange(count)] = 1
        made = over("add", m, flat, along(m, fitted, at, matrix.numpy()))
    else:
        sources = torch.arange(size)
        sources[places.reshape(-1)] = size + torch.arange(count)
        made = m.taken(m.concat([m.real(flat), fitted], at), sources, at)
    sizes = [x.shape[d] for d in order]
    n = None if x.layout.n is None else order.index(x.layout.n)
    whole = Layout(tuple(sizes), n, lay.before, lay.after)
    made = m.reshaped(made, whole)
    return m.permuted(made, [order.index(d) for d in range(len(order))])


@row("index_put", "_unsafe_index_put")
def index_put(m: Mapper, a: Args) -> Value:
    """`concat`, `take` with constant integers; `where` with a mask and one number"""
    x, part = m.value(a.input), a["values"]
    (axis, mask), *rest = given = _given(a.indices)
    if not rest and isinstance(mask, Value) and mask.dtype == "bool":
        numel = m.node.args[2].meta["val"].numel()
        if numel != 1 or a.accumulate:
            raise Unsupported("writes several numbers where a mask is true", _WRITES)
        lay = mask.layout
        behind = x.layout.rank - axis - lay.rank
        shape = (*(1,) * axis, *lay.shape, *(1,) * behind)
        n = None if lay.n is None else lay.n + axis
        mask = m.reshaped(mask, Layout(shape, n, lay.before, lay.after))
        number = m.reshaped(m.value(part), Layout(()))
        return m.pointwise("where", mask, number, x)
    if not all(isinstance(one, Const) and one.n is None for _, one in given):
        raise Unsupported("writes to places that are computed", _WRITES)
    ids = [one.tensor for _, one in given]
    return _written(m, x, part, [d for d, _ in given], ids, bool(a.accumulate))


@row("index_add", "index_copy", "index_fill")
def index_written(m: Mapper, a: Args) -> Value:
    """as index_put"""
    x = m.value(a.input)
    if not isinstance(a.index, Const):
        raise Unsupported("writes to places that are computed", _WRITES)
    part = a.get("source", a.get("value"))
    adds = "_add" in m._op_name(m.node)
    if adds and a.alpha != 1:
        part = m.binary("mul", m.value(part), float(a.alpha))
    return _written(m, x, part, [x.layout.axis(a.dim)], [a.index.tensor], adds)


@row("topk", "sort")
def topk(m: Mapper, a: Args) -> list[Value]:
    """`argmax`, `embedding`, `where`, for each place anew: at most 32"""
    x = m.real(m.value(a.input))
    sorts = "k" not in a
    largest = bool(a.descending if sorts else a.largest)
    axis = x.layout.axis(a.dim)
    count = x.shape[axis] if sorts else int(a.k)
    return _in_order(m, x, axis, count, largest)


@row("median", "kthvalue")
def kthvalue(m: Mapper, a: Args) -> list[Any]:
    """the last of the k smallest, as topk; median: of half of them"""
    x = m.real(m.value(a.input))
    if a.get("dim") is None:
        raise Unsupported("takes the median of the batch", "name the axis")
    axis = x.layout.axis(a.dim)
    count = int(a.get("k", (x.shape[axis] + 1) // 2))
    parts = []
    for part in _in_order(m, x, axis, count, False):
        last = m.sliced(part, axis, count - 1, count)
        gone = last.layout.dropped([axis], False)
        parts.append(last if a.keepdim else m.reshaped(last, gone))
    return parts


def _in_order(m: Mapper, x: Value, axis: int, count: int, largest: bool) -> list[Value]:
    """The largest elements along an axis, or the smallest, and their places."""
    if axis == x.layout.n or count > MOST_SORTED:
        raise Unsupported(
            f"finds {count} places in order", f"at most {MOST_SORTED}, or a maximum"
        )
    size = x.shape[axis]
    left = x if largest else m.unary("neg", x)
    values, places = [], []
    gone = x.layout.dropped([axis], False)
    for _ in range(count):
        place = m.made("argmax", [left], gone, "i32", axis=x.layout.ir_axis(axis))
        hot = _moved(m, _ones(m, place, size), x.layout.rank - 1, axis)
        found = m.made("less", [m.number(0.5), hot], hot.layout, "bool")
        # Not a product: what is not found may be -inf.
        one = m.made("where", [found, x, m.number(0.0)], x.layout)
        values.append(_sum(m, one, axis))
        places.append(m.real(place))
        left = m.made("where", [found, m.number(-LARGEST), left], left.layout)
    ids = m.stack(places, axis)
    m.whole.add(ids.name)
    return [m.stack(values, axis), ids]
