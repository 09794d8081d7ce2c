"""Steps that rows for the ops of every framework are made of.

Torch and Keras spell the same computation with other arguments: a row brings them into
one form, and what follows stands here once. Most steps are about what the IR lacks:
resizing and averaging are products with constant matrices, transposed convolutions are
one product and sums of tiles, pools of one axis are pools of pictures of height 1. The
batch axis is symbolic throughout: no step may multiply, split or move it by its size.
"""

from __future__ import annotations

import math
import string
from collections import Counter
from typing import Any, Optional, Sequence

import numpy as np

from bakeoff_import.builder import Builder
from bakeoff_import.problems import Unsupported
from bakeoff_import.values import Layout, Value


def product(m: Builder, a: Value, b: Value) -> Value:
    """A matrix product over the last two axes; those before are broadcast."""
    squeeze_a, squeeze_b = a.layout.rank == 1, b.layout.rank == 1
    if squeeze_a:
        a = m.reshaped(
            a, a.layout.reshaped((1, *a.shape), None if a.layout.n is None else 1)
        )
    if squeeze_b:
        b = m.reshaped(b, b.layout.reshaped((*b.shape, 1), b.layout.n))
    rank = max(a.layout.rank, b.layout.rank)
    lead_b = b.shape[:-2]
    if b.layout.n is None and all(size == 1 for size in lead_b):
        # All axes of a but the last one are rows of one matrix.
        if a.layout.n == a.layout.rank - 1:
            raise Unsupported("works along the batch axis", "keep the rows apart")
        out = times_matrix(m, a, b)
    elif b.layout.n is None and a.layout.n == rank - 2 == b.layout.rank - 2:
        out = _rows_by_matrices(m, a, b)
    else:
        for v in (a, b):
            if v.layout.n is not None and v.layout.n >= v.layout.rank - 2:
                raise Unsupported("multiplies rows of a batch with each other")
        lead = np.broadcast_shapes(a.shape[:-2], lead_b)
        held = [v for v in (a, b) if v.layout.n is not None and not v.spread]
        held = held or [v for v in (a, b) if v.layout.n is not None]
        first = held[0].layout if held else a.layout
        n = None if first.n is None else first.n + rank - first.rank

        def target(v: Value) -> Layout:
            return Layout((*lead, *v.shape[-2:]), n, first.before, first.after)

        pair = [m._fitted(v, target(v)) for v in (a, b)]
        for v, old in zip(pair, (a, b)):
            own = v.layout
            if (
                old.layout.n is not None
                and not v.spread
                and ((own.n, own.before, own.after) != (n, first.before, first.after))
            ):
                raise Unsupported("mixes rows of a batch with each other")
        layout = Layout((*lead, a.shape[-2], b.shape[-1]), n, first.before, first.after)
        out = m.made("matmul", pair, layout)
    drop = ([out.layout.rank - 2] if squeeze_a else []) + (
        [out.layout.rank - 1] if squeeze_b else []
    )
    return m.reshaped(out, out.layout.dropped(drop, False)) if drop else out


def _rows_by_matrices(m: Builder, a: Value, b: Value) -> Value:
    """a: E,N,I; b: E,I,O without N: a matrix of its own for each of E."""
    layout = a.layout.sized(a.layout.rank - 1, b.shape[-1])
    lead = tuple(np.broadcast_shapes(a.shape[:-2], b.shape[:-2]))
    layout = Layout((*lead, *layout.shape[-2:]), layout.n, layout.before, layout.after)
    rows = (a.ir[0], *a.shape)
    left = m.graph.reshape(a.name, a.ir, rows)
    made = (a.ir[0], *lead, a.shape[-2], b.shape[-1])
    name = m.graph.node("matmul", [left, b.name], made)
    name = m.graph.reshape(name, made, layout.ir(a.spread))
    return Value(name, layout, "f32", a.spread)


def times_matrix(m: Builder, a: Value, b: Value) -> Value:
    """All axes of a but the last one are rows; b is one matrix without N."""
    layout = a.layout.sized(a.layout.rank - 1, b.shape[-1])
    shape = a.ir if len(a.ir) > 2 else (a.ir[0], 1, a.ir[-1])
    left = m.graph.reshape(a.name, a.ir, shape)
    right = m.graph.reshape(b.name, b.ir, (1,) * (len(shape) - 2) + b.shape[-2:])
    made = (*shape[:-1], b.shape[-1])
    name = m.graph.node("matmul", [left, right], made)
    name = m.graph.reshape(name, made, layout.ir(a.spread))
    return Value(name, layout, "f32", a.spread)


def transposed_by_product(
    m: Builder,
    x: Value,
    weight: Value,
    stride: Sequence[int],
    pad: Sequence[int],
    layout: Layout,
) -> Value:
    """A transposed convolution, pad: before each axis; weight: I,O,kH,kW.

    Every place times the kernel, by one product; the kernel's tiles of the size of a
    stride lie side by side without overlap, and tiles are added where they meet."""
    inside, outside, *kernel = weight.shape
    _, _, *sizes = x.shape
    tiles = [-(-k // s) for k, s in zip(kernel, stride)]
    flat = m.reshaped(weight, Layout((inside, outside * math.prod(kernel))))
    made = times_matrix(m, m.permuted(x, [0, 2, 3, 1]), flat)
    made = m.reshaped(made, Layout((1, *sizes, outside, *kernel), 0))
    wide = [t * s for t, s in zip(tiles, stride)]
    more = [w - k for w, k in zip(wide, kernel)]
    whole = Layout((1, *sizes, outside, *wide), 0)
    if any(more):
        pads = [0, 0, 0, 0, 0, 0, 0, more[0], 0, more[1]]
        made = m.made("pad", [made], whole, pad=pads, value=0.0)
    total: Optional[Value] = None
    grown = [(size + t - 1) * s for size, t, s in zip(sizes, tiles, stride)]
    for i in range(tiles[0]):
        for j in range(tiles[1]):
            tile = m.sliced(made, 4, i * stride[0], (i + 1) * stride[0])
            tile = m.sliced(tile, 5, j * stride[1], (j + 1) * stride[1])
            tile = m.permuted(tile, [0, 3, 1, 4, 2, 5])
            own = [size * s for size, s in zip(sizes, stride)]
            tile = m.reshaped(tile, Layout((1, outside, *own), 0))
            top, left = i * stride[0], j * stride[1]
            pads = [0, 0, top, grown[0] - own[0] - top, left, grown[1] - own[1] - left]
            placed = Layout((1, outside, *grown), 0)
            if any(pads):
                tile = m.made("pad", [tile], placed, pad=pads, value=0.0)
            total = tile if total is None else m.made("add", [total, tile], placed)
    assert total is not None
    for axis, (p, size) in enumerate(zip(pad, layout.shape[2:]), 2):
        missing = p + size - total.shape[axis]
        if missing > 0:  # output_padding beyond the last tile
            shape = total.layout.sized(axis, total.shape[axis] + missing)
            pads = [0] * 6
            pads[2 * axis - 1] = missing
            total = m.made("pad", [total], shape, pad=pads, value=0.0)
        total = m.sliced(total, axis, p, p + size)
    return total


def pool_made(
    m: Builder, name: str, x: Value, out: Layout, attrs: dict[str, Any]
) -> Value:
    """A pool; one of rows as one of pictures of height 1, where the IR has no other."""
    if m.known(name) or not name.endswith("1d"):
        return m.made(name, [x], out, **attrs)
    for key, ahead in (("kernel", [1]), ("stride", [1]), ("pad", [0, 0])):
        attrs[key] = [*ahead, *attrs[key]]
    wide = m.reshaped(x, Layout((*x.shape[:2], 1, x.shape[2]), 0))
    shape = (*out.shape[:2], 1, out.shape[2])
    made = m.made(name.replace("1d", "2d"), [wide], Layout(shape, 0), **attrs)
    return m.reshaped(made, out)


def along(m: Builder, x: Value, axis: int, matrix: Any) -> Value:
    """An axis times a constant matrix, of new by old size."""
    right = m.constant(np.ascontiguousarray(matrix.T))
    if axis == x.layout.rank - 1:
        return product(m, x, right)
    perm = list(range(x.layout.rank))
    perm[axis], perm[-1] = perm[-1], perm[axis]
    return m.permuted(product(m, m.permuted(x, perm), right), perm)


def averaging(size: int, out: int) -> Any:
    """The matrix of an adaptive average pool along one axis."""
    matrix = np.zeros((out, size))
    for i in range(out):
        begin, end = i * size // out, -(-(i + 1) * size // out)
        matrix[i, begin:end] = 1 / (end - begin)
    return matrix


def resizing(size: int, out: int, mode: str, coordinates: str) -> Any:
    """The matrix of the IR's resize along one axis, of new by old size."""
    i = np.arange(out)
    if mode == "nearest":
        shift = 1 if coordinates == "half_pixel" else 0
        return np.eye(size)[(2 * i + shift) * size // (2 * out)]
    places = i * size / out
    if coordinates == "half_pixel":
        places = (i + 0.5) * size / out - 0.5
    elif coordinates == "align_corners":
        places = i * (size - 1) / max(out - 1, 1)
    places = np.clip(places, 0, size - 1)
    low = np.floor(places).astype(int)
    share = (places - low)[:, None]
    high = np.minimum(low + 1, size - 1)
    return np.eye(size)[low] * (1 - share) + np.eye(size)[high] * share


def resized(
    m: Builder, x: Value, size: Sequence[int], mode: str, coordinates: str
) -> Value:
    """N,C and places in new sizes."""
    out = Layout((*x.shape[:2], *size), 0)
    more: dict[str, Any] = {"size": list(size), "mode": mode}
    return m.made("resize", [x], out, coordinates=coordinates, **more)


def channels_scaled(m: Builder, x: Value, weight: Any, bias: Any) -> Value:
    """x * weight + bias of axis 1."""
    shape = tuple(s if i == 1 else 1 for i, s in enumerate(x.shape))
    for op, arg in (("mul", weight), ("add", bias)):
        if arg is not None:
            value = m.value(arg)
            if value.layout.rank == 1:
                value = m.reshaped(value, Layout(shape))
            x = m.made(op, [x, m._fitted(value, x.layout)], x.layout)
    return x


def grouped_norm(
    m: Builder,
    x: Value,
    groups: int,
    eps: float,
    weight: Any,
    bias: Any,
    slots: Sequence[tuple[str, str]],
) -> Value:
    """Of N,C,...; `slots` name `weight` and `bias` where the IR has the op."""
    if m.known("group_norm"):
        return m.made("group_norm", [x], x.layout, params=slots, groups=groups, eps=eps)
    rest = math.prod(x.shape[1:]) // groups
    flat = m.reshaped(x, Layout((1, groups, rest), 0))
    flat = m.made("sub", [flat, m.reduced("mean", flat, [2], True)], flat.layout)
    var = m.reduced("mean", m.unary("square", flat), [2], True)
    scale = m.unary("rsqrt", m.binary("add", var, eps))
    out = m.reshaped(m.made("mul", [flat, scale], flat.layout), x.layout)
    return channels_scaled(m, out, weight, bias)


def split_evenly(m: Builder, x: Value, count: int) -> list[Value]:
    axis = x.layout.rank - 1
    size = x.shape[axis] // count
    return [m.sliced(x, axis, i * size, (i + 1) * size) for i in range(count)]


def global_pool(m: Builder, x: Value, keep: bool) -> Value:
    out = m.made("global_avg_pool2d", [x], Layout(x.shape[:2], 0))
    return m.reshaped(out, Layout((*x.shape[:2], 1, 1), 0)) if keep else out


def selected(m: Builder, x: Value, axis: int, index: int) -> Value:
    if axis == x.layout.n:
        raise Unsupported("takes one row of the batch", "keep all rows")
    index %= x.shape[axis]
    one = m.sliced(x, axis, index, index + 1)
    return m.reshaped(one, one.layout.dropped([axis], False))


def _letters(equation: str, ranks: Sequence[int]) -> tuple[list[str], str]:
    """Of each operand and of the result; "..." and a missing result are spelled."""
    terms, arrow, out = equation.replace(" ", "").partition("->")
    words = terms.split(",")
    free = [c for c in string.ascii_letters if c not in equation]
    more = max(rank - len(w.replace("...", "")) for w, rank in zip(words, ranks))
    spelled = []
    for word, rank in zip(words, ranks):
        own = rank - len(word.replace("...", ""))
        spelled.append(word.replace("...", "".join(free[more - own : more])))
    if not arrow:
        counts = Counter("".join(words).replace(".", ""))
        out = "..." * ("..." in terms) + "".join(
            sorted(c for c in counts if counts[c] == 1)
        )
    return spelled, out.replace("...", "".join(free[:more]))


def einsum(m: Builder, equation: str, values: Sequence[Value]) -> Value:
    """Products and sums over named axes; of several operands from left to right."""
    letters, out = _letters(equation, [v.layout.rank for v in values])
    values = list(values)
    while len(values) > 2:
        needed = set(out).union(*letters[2:])
        both = [c for c in dict.fromkeys(letters[0] + letters[1]) if c in needed]
        pair = f"{letters[0]},{letters[1]}->{''.join(both)}"
        values[:2] = [einsum(m, pair, values[:2])]
        letters[:2] = ["".join(both)]
    if any(len(set(word)) != len(word) for word in [*letters, out]):
        raise Unsupported(
            "einsum with a repeated letter", "torch.diagonal, torch.matmul"
        )
    if len(values) == 1:
        gone = [i for i, c in enumerate(letters[0]) if c not in out]
        v = m.reduced("sum", values[0], gone, False) if gone else values[0]
        left = [c for c in letters[0] if c in out]
        return m.permuted(v, [left.index(c) for c in out])
    for i in (0, 1):  # letters of one operand alone that the result lacks
        other = letters[1 - i]
        gone = [k for k, c in enumerate(letters[i]) if c not in other and c not in out]
        if gone:
            values[i] = m.reduced("sum", values[i], gone, False)
            letters[i] = "".join(c for c in letters[i] if c in other or c in out)
    one, two = letters
    # N leads, as matmul's leading axes broadcast; so do letters of both and the result.
    held = {w[v.layout.n] for v, w in zip(values, letters) if v.layout.n is not None}
    if len(held) > 1 or not held <= set(out):
        raise Unsupported("mixes rows of a batch with each other")
    lead = [*held, *(c for c in out if c in one and c in two and c not in held)]
    summed = [c for c in one if c in two and c not in lead]
    rows_ = [c for c in out if c in one and c not in lead]
    columns = [c for c in out if c in two and c not in lead]
    sizes = {**dict(zip(two, values[1].shape)), **dict(zip(one, values[0].shape))}

    def matrix(v: Value, word: str, first: list[str], second: list[str]) -> Value:
        """Axes: leading ones (size 1 where v lacks them), then a matrix."""
        own = [c for c in lead if c in word]
        v = m.permuted(v, [word.index(c) for c in (*own, *first, *second)])
        shape = (
            *(sizes[c] if c in word else 1 for c in lead),
            math.prod(sizes[c] for c in first),
            math.prod(sizes[c] for c in second),
        )
        return m.reshaped(
            v, v.layout.reshaped(shape, None if v.layout.n is None else 0)
        )

    first = matrix(values[0], one, rows_, summed)
    made = product(m, first, matrix(values[1], two, summed, columns))
    target = [*lead, *rows_, *columns]
    shape = tuple(sizes[c] for c in target)
    v = m.reshaped(made, made.layout.reshaped(shape, made.layout.n))
    return m.permuted(v, [target.index(c) for c in out])
