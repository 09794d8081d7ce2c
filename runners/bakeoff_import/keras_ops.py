"""The table's rows for keras.ops, as they stand in functional graphs and in traced
layers.

Their names are those of Keras's operation classes, which are the same on all backends.
What several ops share (normalised axes, broadcasting, constants that are folded) is in
steps.py and builder.py, for the rows of torch as well; a row here only reads the
arguments of its operation. An argument that a row does not know must be refused, as an
ignored one would be found much later, by a proof that fails without naming it.
"""

from __future__ import annotations

import contextlib
import math
from typing import Any, Optional, Sequence

import numpy as np

from bakeoff_import.keras_layers import (
    attended,
    convolved,
    dense_of,
    joined,
    normalised,
    padded,
    pairs,
    pooled,
    repeated,
    softmax,
)
from bakeoff_import.keras_tensor import FIRST, FLAT, PLAIN, ROW, Held
from bakeoff_import.keras_walk import (
    LAYERS,
    Call,
    Row,
    Walk,
    is_variable,
    layer,
    operation,
    to_numpy,
)
from bakeoff_import.problems import Unsupported
from bakeoff_import.steps import along, einsum, product, resized, resizing
from bakeoff_import.values import Layout, Value

# ---- element by element


def _unary(op: str, **attrs: Any) -> Row:
    def add(m: Walk, op_: Any, a: Call) -> Held:
        x = m.held(a.first)
        x = Held(m.real(x.value), x.form, x.picture)
        return m.one(op, x, **attrs)

    add.__doc__ = " ".join([f"`{op}`", *(f"{k}={v}" for k, v in attrs.items())])
    return add


for _name, _op in {
    "Relu": "relu", "Sigmoid": "sigmoid", "Tanh": "tanh", "Silu": "silu",
    "Softplus": "softplus", "Softsign": "softsign", "LogSigmoid": "log_sigmoid",
    "HardSilu": "hard_swish", "Selu": "selu", "Mish": "mish", "Exp": "exp",
    "Log": "log", "Log1p": "log1p", "Expm1": "expm1", "Sqrt": "sqrt",
    "Rsqrt": "rsqrt", "Square": "square", "Reciprocal": "reciprocal", "Sin": "sin",
    "Cos": "cos", "Arctan": "atan", "Erf": "erf", "Floor": "floor", "Ceil": "ceil",
    "Sign": "sign", "Absolute": "abs", "Abs": "abs", "Fabs": "abs", "Negative": "neg",
}.items():  # fmt: skip
    operation(_name)(_unary(_op))
operation("ReLU")(LAYERS["ReLU"])  # of keras.activations
operation("Relu6")(_unary("clip", least=0.0, most=6.0))
operation("HardTanh")(_unary("clip", least=-1.0, most=1.0))
operation("HardSigmoid")(_unary("hard_sigmoid", alpha=1 / 6, beta=0.5))


@operation("Gelu")
def gelu(m: Walk, op: Any, a: Call) -> Held:
    """`gelu`, form=erf or tanh"""
    return m.one("gelu", a.first, form="tanh" if op.approximate else "erf")


@operation("LeakyRelu")
def leaky_relu(m: Walk, op: Any, a: Call) -> Held:
    """`leaky_relu`"""
    return m.one("leaky_relu", a.first, slope=float(op.negative_slope))


@operation("Elu")
def elu(m: Walk, op: Any, a: Call) -> Held:
    """`elu`"""
    return m.one("elu", a.first, alpha=float(op.alpha))


@operation("Celu")
def celu(m: Walk, op: Any, a: Call) -> Held:
    """alpha * `elu`(x / alpha)"""
    alpha = float(op.alpha)
    inner = m.one("elu", m.pointwise("mul", a.first, 1 / alpha), alpha=1.0)
    return m.pointwise("mul", inner, alpha)


@operation("Round")
def round_(m: Walk, op: Any, a: Call) -> Held:
    """`round`"""
    if op.decimals:
        raise Unsupported("rounds to decimals", "decimals=0")
    return m.one("round", a.first)


@operation("Clip")
def clip(m: Walk, op: Any, a: Call) -> Held:
    """`clip`; with tensors as bounds `maximum` and `minimum`"""
    low, high = op.x_min, op.x_max
    if all(isinstance(b, (int, float)) for b in (low, high)):
        return m.one("clip", a.first, least=float(low), most=float(high))
    return m.pointwise("minimum", m.pointwise("maximum", a.first, low), high)


@operation("Threshold")
def threshold(m: Walk, op: Any, a: Call) -> Held:
    """`where`(threshold < x, x, value)"""
    above = m.pointwise("less", float(op.threshold), a.first, dtype="bool")
    return m.pointwise("where", above, a.first, float(op.default_value))


@operation("TanhShrink")
def tanh_shrink(m: Walk, op: Any, a: Call) -> Held:
    """x - `tanh`(x)"""
    return m.pointwise("sub", a.first, m.one("tanh", a.first))


@operation("Glu")
def glu(m: Walk, op: Any, a: Call) -> Held:
    """`slice` in halves, a * `sigmoid`(b)"""
    left, right = _sections(m, m.held(a.first), 2, int(op.axis))
    return m.pointwise("mul", left, m.one("sigmoid", right))


def _binary(op: str, dtype: str = "f32", swap: bool = False) -> Row:
    def add(m: Walk, op_: Any, a: Call) -> Held:
        left, right = list(a.arguments.values())[:2]
        if swap:
            left, right = right, left
        return m.pointwise(op, left, right, dtype=dtype)

    add.__doc__ = f"`{op}`" + (" with swapped inputs" if swap else "")
    return add


for _name, _op in {
    "Add": "add", "Subtract": "sub", "Multiply": "mul", "Maximum": "maximum",
    "Minimum": "minimum",
}.items():  # fmt: skip
    operation(_name)(_binary(_op))
operation("Less")(_binary("less", "bool"))
operation("LessEqual")(_binary("less_equal", "bool"))
operation("Greater")(_binary("less", "bool", swap=True))
operation("GreaterEqual")(_binary("less_equal", "bool", swap=True))
operation("Equal")(_binary("equal", "bool"))
operation("LogicalAnd")(_binary("logical_and", "bool"))
operation("LogicalOr")(_binary("logical_or", "bool"))


@operation("Divide", "TrueDivide")
def divide(m: Walk, op: Any, a: Call) -> Held:
    """`div`"""
    left, right = list(a.arguments.values())[:2]
    held = [m.held(x) for x in (left, right)]
    held = [Held(m.real(h.value), h.form, h.picture) for h in held]
    return m.pointwise("div", *held)


@operation("NotEqual")
def not_equal(m: Walk, op: Any, a: Call) -> Held:
    """`equal`, `logical_not`"""
    same = m.pointwise("equal", a.x1, a.x2, dtype="bool")
    return m.one("logical_not", same, "bool")


@operation("LogicalNot")
def logical_not(m: Walk, op: Any, a: Call) -> Held:
    """`logical_not`"""
    return m.one("logical_not", a.first, "bool")


@operation("Power")
def power(m: Walk, op: Any, a: Call) -> Held:
    """`square`, `sqrt`, `rsqrt`, `reciprocal`; whole exponents: `mul`; else `pow`"""
    exponent = a.x2
    if not isinstance(exponent, (int, float)):
        return m.pointwise("pow", a.x1, exponent)
    exponent = float(exponent)
    known = {2.0: "square", 0.5: "sqrt", -0.5: "rsqrt", -1.0: "reciprocal"}
    if exponent in known:
        return m.one(known[exponent], a.x1)
    if exponent == int(exponent) and 1 <= exponent <= 8:
        out = x = m.held(a.x1)
        for _ in range(int(exponent) - 1):
            out = m.pointwise("mul", out, x)
        return out
    return m.pointwise("pow", a.x1, exponent)


@operation("Where")
def where(m: Walk, op: Any, a: Call) -> Held:
    """`where`"""
    condition = m.held(a.condition)
    if condition.dtype != "bool":
        same = m.pointwise("equal", condition, 0.0, dtype="bool")
        condition = m.one("logical_not", same, "bool")
    return m.pointwise("where", condition, a.x1, a.x2)


@operation("Cast", "SaturateCast", "ConvertToTensor")
def cast(m: Walk, op: Any, a: Call) -> Held:
    """`cast`, or nothing between float types"""
    x = m.held(a.first)
    name = str(op.dtype or "")
    if not name:
        return x
    to = "bool" if name == "bool" else "i32" if "int" in name else "f32"
    if to == x.dtype:
        return x
    if to == "bool":
        same = m.pointwise("equal", x, 0.0, dtype="bool")
        return m.one("logical_not", same, "bool")
    if x.dtype == "bool":
        return (
            m.one("cast", m.pointwise("where", x, 1.0, 0.0), to, to=to)
            if to != "f32"
            else m.pointwise("where", x, 1.0, 0.0)
        )
    return m.one("cast", x, to, to=to)


@operation("Copy")
def copy(m: Walk, op: Any, a: Call) -> Any:
    """nothing"""
    return a.first


@operation("OnesLike", "ZerosLike", "FullLike")
def filled(m: Walk, op: Any, a: Call) -> Held:
    """a constant"""
    x = m.held(a.first)
    number = {"OnesLike": 1.0, "ZerosLike": 0.0}.get(type(op).__name__)
    number = float(a.get("fill_value")) if number is None else number
    layout = x.value.layout
    v = m.constant(np.full((1,) * max(layout.rank, 1), number))
    if x.n is not None:
        v = m._fitted(v, layout)
    return Held(m.expand(v, layout), x.form, x.picture)


# ---- reductions


def _reduction(op: str) -> Row:
    def add(m: Walk, op_: Any, a: Call) -> Held:
        if getattr(op_, "initial", None) is not None:
            raise Unsupported("has an initial value", "maximum of the result and it")
        return m.reduce(op, a.first, op_.axis, bool(op_.keepdims))

    add.__doc__ = f"`{op}`"
    return add


for _name, _op in {
    "Mean": "mean", "Sum": "sum", "Max": "max", "Min": "min", "Amax": "max",
    "Amin": "min", "Prod": "prod", "Logsumexp": "logsumexp",
}.items():  # fmt: skip
    operation(_name)(_reduction(_op))


@operation("Var", "Std")
def variance(m: Walk, op: Any, a: Call) -> Held:
    """`mean`, `sub`, `square`, `mean`; Std: `sqrt` of it"""
    mean = m.reduce("mean", a.first, op.axis, True)
    apart = m.one("square", m.pointwise("sub", a.first, mean))
    out = m.reduce("mean", apart, op.axis, bool(op.keepdims))
    return m.one("sqrt", out) if type(op).__name__ == "Std" else out


@operation("Moments")
def moments(m: Walk, op: Any, a: Call) -> Any:
    """`mean`, `sub`, `square`, `mean`"""
    mean = m.reduce("mean", a.first, op.axes, True)
    apart = m.one("square", m.pointwise("sub", a.first, mean))
    keep = bool(op.keepdims)
    kept = mean if keep else m.reduce("mean", a.first, op.axes, False)
    return kept, m.reduce("mean", apart, op.axes, keep)


def _epsilon(m: Walk, op: Any) -> float:
    return float(m.keras.config.epsilon() if op.epsilon is None else op.epsilon)


@operation("Normalize")
def normalize(m: Walk, op: Any, a: Call) -> Held:
    """x * `rsqrt`(`maximum`(`sum`(`square`(x)), epsilon^2))"""
    if op.order not in (2, None):
        raise Unsupported(f"normalises by the norm of order {op.order}", "order=2")
    total = m.reduce("sum", m.one("square", a.first), op.axis, True)
    least = m.pointwise("maximum", total, _epsilon(m, op) ** 2)
    return m.pointwise("mul", a.first, m.one("rsqrt", least))


@operation("Norm")
def norm(m: Walk, op: Any, a: Call) -> Held:
    """`sqrt` of `sum` of `square`; of order 1: `sum` of `abs`"""
    if op.ord == 1:
        return m.reduce("sum", m.one("abs", a.first), op.axis, bool(op.keepdims))
    if op.ord not in (None, 2, "fro", "euclidean"):
        raise Unsupported(f"is the norm of order {op.ord}", "order 2")
    total = m.reduce("sum", m.one("square", a.first), op.axis, bool(op.keepdims))
    return m.one("sqrt", total)


@operation("Cumsum")
def cumsum(m: Walk, op: Any, a: Call) -> Held:
    """`cumsum`"""
    v = m.value(a.first)
    if op.axis is None:
        raise Unsupported("sums over all axes", "axis")
    axis = v.layout.ir_axis(v.layout.axis(int(op.axis)))
    return Held(m.unary("cumsum", v, axis=axis))


@operation("Argmax", "Argmin")
def argmax(m: Walk, op: Any, a: Call) -> Held:
    """`argmax`; Argmin: of `neg`"""
    v = m.value(a.first)
    if op.axis is None:
        raise Unsupported("takes the maximum over the batch", "name the axis")
    axis = v.layout.axis(int(op.axis))
    gone, kept = (v.layout.dropped([axis], keep) for keep in (False, True))
    v = m.unary("neg", v) if type(op).__name__ == "Argmin" else v
    out = m.made("argmax", [v], gone, "i32", axis=v.layout.ir_axis(axis))
    return Held(m.reshaped(out, kept) if op.keepdims else out)


@operation("Softmax")
def softmax_op(m: Walk, op: Any, a: Call) -> Held:
    """`softmax`"""
    return softmax(m, m.held(a.first), -1 if op.axis is None else op.axis)


@operation("LogSoftmax")
def log_softmax(m: Walk, op: Any, a: Call) -> Held:
    """`log_softmax`"""
    return softmax(
        m, m.held(a.first), -1 if op.axis is None else op.axis, "log_softmax"
    )


# ---- shapes


def _known(shape: Sequence[Any]) -> list[Optional[int]]:
    return [None if s is None else int(s) for s in shape]


def to_shape(m: Walk, held: Held, shape: Sequence[Any]) -> Held:
    """Row-major to these sizes, of which one may be -1 or None: the batch, or what is
    left."""
    v = m.plain(held)
    sizes = _known(shape)
    lay = v.layout
    total = math.prod(lay.shape)
    open_ = [i for i, s in enumerate(sizes) if s is None or s == -1]
    if lay.n is None:
        rest = math.prod(s for s in sizes if s not in (None, -1))
        out = [total // rest if s in (None, -1) else s for s in sizes]
        return Held(m.reshaped(v, Layout(tuple(out))))
    if not open_:
        raise Unsupported("has a fixed batch size in its shape", "-1 at the batch")
    if len(open_) == 2:  # the batch and one that is left
        batch = next((i for i in open_ if sizes[i] is None), open_[0])
        left = next(i for i in open_ if i != batch)
        rest = math.prod(s for s in sizes if s not in (None, -1))
        sizes[left] = total // rest
        sizes[batch] = 1
        n = batch
    else:
        n = open_[0]
        rest = math.prod(s for i, s in enumerate(sizes) if i != n)  # type: ignore[misc]
        sizes[n] = total // max(rest, 1)
    layout = lay.reshaped(tuple(sizes), n)  # type: ignore[arg-type]
    return Held(m.reshaped(v, layout))


@operation("Reshape")
def reshape(m: Walk, op: Any, a: Call) -> Held:
    """`reshape`"""
    return to_shape(m, m.held(a.first), op.newshape)


@operation("Ravel")
def ravel(m: Walk, op: Any, a: Call) -> Held:
    """`reshape`"""
    return to_shape(m, m.held(a.first), [-1])


@operation("ExpandDims")
def expand_dims(m: Walk, op: Any, a: Call) -> Held:
    """`reshape`"""
    v = m.value(a.first)
    axes = [op.axis] if isinstance(op.axis, int) else list(op.axis)
    rank = v.layout.rank + len(axes)
    lay = v.layout
    shape, n = list(lay.shape), lay.n
    for axis in sorted(x % rank for x in axes):
        shape.insert(axis, 1)
        n = n if n is None or n < axis else n + 1
    return Held(m.reshaped(v, Layout(tuple(shape), n, lay.before, lay.after)))


@operation("Squeeze")
def squeeze(m: Walk, op: Any, a: Call) -> Held:
    """`reshape`"""
    v = m.value(a.first)
    lay = v.layout
    if op.axis is None:
        axes = [i for i, s in enumerate(lay.shape) if s == 1 and i != lay.n]
    else:
        axes = [op.axis] if isinstance(op.axis, int) else list(op.axis)
        axes = [lay.axis(x) for x in axes]
    return Held(m.reshaped(v, lay.dropped(axes, False)))


@operation("Transpose")
def transpose(m: Walk, op: Any, a: Call) -> Held:
    """`transpose`; nothing where only N moves"""
    v = m.value(a.first)
    axes = op.axes if op.axes is not None else range(v.layout.rank)[::-1]
    out = m.permuted(v, [v.layout.axis(x) for x in axes])
    if is_variable(m.keras, a.first) and v.layout.rank == 2:
        m.turned[out.name] = a.first
    return Held(out)


@operation("Swapaxes")
def swapaxes(m: Walk, op: Any, a: Call) -> Held:
    """`transpose`"""
    v = m.value(a.first)
    perm = list(range(v.layout.rank))
    i, j = v.layout.axis(op.axis1), v.layout.axis(op.axis2)
    perm[i], perm[j] = perm[j], perm[i]
    return Held(m.permuted(v, perm))


@operation("Moveaxis")
def moveaxis(m: Walk, op: Any, a: Call) -> Held:
    """`transpose`"""
    v = m.value(a.first)
    one = isinstance(op.source, int)
    source = [op.source] if one else list(op.source)
    target = [op.destination] if one else list(op.destination)
    source = [v.layout.axis(x) for x in source]
    target = [v.layout.axis(x) for x in target]
    perm = [x for x in range(v.layout.rank) if x not in source]
    for to, x in sorted(zip(target, source)):
        perm.insert(to, x)
    return Held(m.permuted(v, perm))


@operation("BroadcastTo")
def broadcast_to(m: Walk, op: Any, a: Call) -> Held:
    """`expand`"""
    v = m.value(a.first)
    sizes = _known(op.shape)
    lead = len(sizes) - v.layout.rank
    old = (1,) * lead + v.shape
    n = v.layout.n if v.layout.n is None else v.layout.n + lead
    batch = next((i for i, s in enumerate(sizes) if s is None), n)
    shape = tuple(old[i] if s in (None, -1) else s for i, s in enumerate(sizes))
    layout = Layout(shape, batch)
    if n is None and batch is not None:
        return Held(m.expand(m._fitted(m.reshaped(v, Layout(old)), layout), layout))
    return Held(m.expand(m.reshaped(v, Layout(old, n)), layout))


@operation("Concatenate")
def concatenate(m: Walk, op: Any, a: Call) -> Held:
    """`concat`"""
    return joined(m, a.first, int(op.axis))


@operation("Hstack")
def hstack(m: Walk, op: Any, a: Call) -> Held:
    """`concat`"""
    return joined(m, a.first, 1)


@operation("Append")
def append(m: Walk, op: Any, a: Call) -> Held:
    """`concat`"""
    if op.axis is None:
        raise Unsupported("has no axis", "axis")
    return joined(m, [a.x1, a.x2], int(op.axis))


@operation("Stack")
def stack(m: Walk, op: Any, a: Call) -> Held:
    """`reshape`, `concat`"""
    values = [m.value(x) for x in a.first]
    rank = values[0].layout.rank + 1
    return Held(m.stack(values, int(op.axis) % rank))


@operation("Unstack")
def unstack(m: Walk, op: Any, a: Call) -> list[Held]:
    """`slice`, `reshape`"""
    v = m.value(a.first)
    axis = v.layout.axis(int(op.axis))
    return [_picked_one(m, v, axis, i) for i in range(v.shape[axis])]


def _picked_one(m: Walk, v: Value, axis: int, index: int) -> Held:
    if axis == v.layout.n:
        raise Unsupported("takes one row of the batch", "keep all rows")
    one = m.sliced(v, axis, index, index + 1)
    return Held(m.reshaped(one, one.layout.dropped([axis], False)))


def _sections(m: Walk, held: Held, how: Any, axis: int) -> list[Held]:
    if held.form in (FLAT, ROW):
        held = Held(m.plain(held))
    v, at = held.value, held.laid(axis)
    size = v.shape[at]
    if isinstance(how, int):
        if size % how:
            raise Unsupported(f"splits {size} into {how} parts")
        cuts = [size // how * i for i in range(how + 1)]
    else:
        cuts = [0, *(int(c) for c in how), size]
    if at == v.layout.n:
        raise Unsupported("splits the batch", "keep the rows together")
    return [Held(m.sliced(v, at, b, e), held.form) for b, e in zip(cuts, cuts[1:])]


@operation("Split", "ArraySplit")
def split(m: Walk, op: Any, a: Call) -> list[Held]:
    """several `slice`"""
    return _sections(m, m.held(a.first), op.indices_or_sections, int(op.axis))


@operation("GetItem")
def get_item(m: Walk, op: Any, a: Call) -> Held:
    """`slice`, `reshape`"""
    held = m.held(a.x)
    keys = list(a.key) if isinstance(a.key, tuple) else [a.key]
    if Ellipsis in keys:
        at = keys.index(Ellipsis)
        count = held.rank - sum(k is not None for k in keys) + 1
        keys[at : at + 1] = [slice(None)] * count
    plain = all(isinstance(k, slice) for k in keys)
    if held.form in (FLAT, ROW) or not plain:
        held = Held(m.plain(held))
    v, axis = held.value, 0
    dropped: list[int] = []
    added: list[int] = []
    for position, key in enumerate(keys):
        if key is None:
            added.append(position)
            continue
        at = held.laid(axis)
        if isinstance(key, slice):
            if key != slice(None):
                if at == v.layout.n:
                    raise Unsupported("takes a part of the batch", "keep all rows")
                v = _slice(m, v, at, key)
        elif isinstance(key, (int, np.integer)):
            if at == v.layout.n:
                raise Unsupported("takes one row of the batch", "keep all rows")
            index = int(key) % v.shape[at]
            v = m.sliced(v, at, index, index + 1)
            dropped.append(position)
        else:
            raise Unsupported("takes places by a tensor", "keras.ops.take of one axis")
        axis += 1
    axes = []
    axis = 0
    for position, key in enumerate(keys):
        if key is not None:
            if position in dropped:
                axes.append(axis)
            axis += 1
    if axes:
        v = m.reshaped(v, v.layout.dropped(axes, False))
    for position in added:
        at = position - sum(d < position for d in dropped)
        lay = v.layout
        shape = (*lay.shape[:at], 1, *lay.shape[at:])
        n = lay.n if lay.n is None or lay.n < at else lay.n + 1
        v = m.reshaped(v, Layout(shape, n, lay.before, lay.after))
    return Held(v, held.form)


def _slice(m: Walk, v: Value, axis: int, key: slice) -> Value:
    begin, end, step = key.indices(v.shape[axis])
    if step < 0:
        places = list(range(begin, end, step))
        v = m.unary("flip", v, axes=[v.layout.ir_axis(axis)])
        size = v.shape[axis]
        begin, end, step = size - 1 - places[0], size - places[-1], -step
    if end <= begin:
        raise Unsupported("takes an empty part")
    return m.sliced(v, axis, begin, end, step)


@operation("Slice")
def slice_(m: Walk, op: Any, a: Call) -> Held:
    """`slice`"""
    v = m.value(a.inputs)
    for axis, (begin, size) in enumerate(zip(a.start_indices, op.shape)):
        if axis != v.layout.n:
            v = m.sliced(v, axis, int(begin), int(begin) + int(size))
    return Held(v)


@operation("Take")
def take(m: Walk, op: Any, a: Call) -> Held:
    """`slice`, `concat` by constant places; `embedding` of a table by ids"""
    x, ids = a.x, a.indices
    if isinstance(ids, Held) and ids.n is not None:
        if not is_variable(m.keras, x) or op.axis not in (0, None) or len(x.shape) != 2:
            raise Unsupported("takes places by a tensor", "an Embedding")
        v = m.plain(ids)
        lay = v.layout
        layout = Layout((*lay.shape, int(x.shape[1])), lay.n, lay.before, lay.after)
        return Held(
            m.made("embedding", [m.ids(v)], layout, params=[("weight", m.slot(x))])
        )
    if isinstance(ids, Held):
        raise Unsupported("takes places by a computed tensor", "constant places")
    v = m.value(x)
    if op.axis is None:
        raise Unsupported("has no axis", "axis")
    axis = v.layout.axis(int(op.axis))
    places = np.asarray(ids if isinstance(ids, (int, list, tuple)) else to_numpy(ids))
    if places.ndim == 0:
        return _picked_one(m, v, axis, int(places) % v.shape[axis])
    if places.ndim != 1 or axis == v.layout.n:
        raise Unsupported("takes places by a matrix, or of the batch", "one axis")
    return Held(taken(m, v, axis, places % v.shape[axis]))


@operation("TakeAlongAxis")
def take_along_axis(m: Walk, op: Any, a: Call) -> Held:
    """`gather` by ids"""
    if not isinstance(a.indices, Held) or op.axis is None:
        raise Unsupported("takes constant places, or of all axes", "keras.ops.take")
    x, ids = m.value(a.x), m.plain(a.indices)
    axis = x.layout.axis(int(op.axis))
    if any(i > s for d, (i, s) in enumerate(zip(ids.shape, x.shape)) if d != axis):
        raise Unsupported("repeats what it takes from", "keras.ops.broadcast_to")
    return Held(m.placed("gather", x, ids, axis))


def taken(m: Walk, v: Value, axis: int, places: Any) -> Value:
    """Constant places of an axis."""
    steps = np.diff(places)
    if places.size == 1 or (steps[0] > 0 and bool((steps == steps[0]).all())):
        step = int(steps[0]) if places.size > 1 else 1
        return m.sliced(v, axis, int(places[0]), int(places[-1]) + 1, step)
    return m.concat([m.sliced(v, axis, int(p), int(p) + 1) for p in places], axis)


@operation("Repeat")
def repeat(m: Walk, op: Any, a: Call) -> Held:
    """`expand`, `reshape`"""
    v = m.value(a.first)
    if not isinstance(op.repeats, int) or op.axis is None:
        raise Unsupported("repeats places a different number of times", "one number")
    axis = v.layout.axis(int(op.axis))
    if axis == v.layout.n:
        raise Unsupported("repeats rows of the batch")
    return Held(repeated(m, v, axis, int(op.repeats)))


@operation("Tile")
def tile(m: Walk, op: Any, a: Call) -> Held:
    """`concat` with itself"""
    v = m.value(a.first)
    times = (
        [op.repeats] if isinstance(op.repeats, int) else [int(r) for r in op.repeats]
    )
    times = [1] * (v.layout.rank - len(times)) + times
    if len(times) != v.layout.rank:
        raise Unsupported("adds axes", "keras.ops.expand_dims before it")
    for axis, count in enumerate(times):
        if count > 1:
            if axis == v.layout.n:
                raise Unsupported("repeats rows of the batch")
            v = m.concat([v] * count, axis)
    return Held(v)


@operation("Flip")
def flip(m: Walk, op: Any, a: Call) -> Held:
    """`flip`"""
    v = m.value(a.first)
    if op.axis is None:
        raise Unsupported("flips all axes", "axis")
    axes = [op.axis] if isinstance(op.axis, int) else list(op.axis)
    at = sorted(v.layout.ir_axis(v.layout.axis(x)) for x in axes)
    return Held(m.unary("flip", v, axes=at))


@operation("Roll")
def roll(m: Walk, op: Any, a: Call) -> Held:
    """`slice`, `concat`"""
    v = m.value(a.first)
    if op.axis is None:
        raise Unsupported("rolls all axes", "axis")
    one = isinstance(op.axis, int)
    axes = [op.axis] if one else list(op.axis)
    shifts = [op.shift] if one else list(op.shift)
    for axis, shift in zip(axes, shifts):
        at = v.layout.axis(axis)
        size = v.shape[at]
        if at == v.layout.n:
            raise Unsupported("rolls the batch")
        cut = (size - int(shift)) % size
        if cut:
            v = m.concat([m.sliced(v, at, cut, size), m.sliced(v, at, 0, cut)], at)
    return Held(v)


@operation("Pad")
def pad(m: Walk, op: Any, a: Call) -> Held:
    """`pad`; symmetric and reflect by `slice`, `flip`, `concat`"""
    held = m.held(a.first)
    width = op.pad_width
    both = [tuple(int(s) for s in one) for one in width]
    if len(both) == 1:
        both = both * held.rank
    if held.form in (FLAT, ROW):
        held = Held(m.plain(held))
    if held.n is not None and any(both[held.n]):
        raise Unsupported("pads the batch")
    pads = {i: p for i, p in enumerate(both) if any(p)}
    if op.mode == "constant":
        value = a.get("constant_values")
        value = 0.0 if value is None else float(value)
        return padded(m, held, pads, value)  # type: ignore[arg-type]
    v = m.plain(held)
    for axis, (before, behind) in pads.items():
        v = _mirrored(m, v, axis, before, behind, op.mode)
    return Held(v)


def _mirrored(
    m: Walk, v: Value, axis: int, before: int, behind: int, mode: str
) -> Value:
    size, skip = v.shape[axis], 1 if mode == "reflect" else 0
    if mode not in ("reflect", "symmetric"):
        raise Unsupported(f"pads by mode={mode}", "mode='constant'")
    at = v.layout.ir_axis(axis)
    parts = [v]
    if before:
        part = m.sliced(v, axis, skip, skip + before)
        parts.insert(0, m.unary("flip", part, axes=[at]))
    if behind:
        part = m.sliced(v, axis, size - skip - behind, size - skip)
        parts.append(m.unary("flip", part, axes=[at]))
    return m.concat(parts, axis)


@operation("OneHot")
def one_hot(m: Walk, op: Any, a: Call) -> Held:
    """`one_hot`, or `embedding` of the identity"""
    v = m.value(a.first)
    if v.dtype != "i32":
        v = m.unary("cast", v, "i32", to="i32")
    classes = int(op.num_classes)
    lay = v.layout
    if int(op.axis) not in (-1, lay.rank):
        raise Unsupported("puts classes on another axis than the last", "axis=-1")
    layout = Layout((*lay.shape, classes), lay.n, lay.before, lay.after)
    if m.known("one_hot"):
        return Held(m.made("one_hot", [v], layout, classes=classes))
    table = m.graph.parameter(f"{m.graph.base}.identity", np.eye(classes), True)
    return Held(m.made("embedding", [v], layout, params=[("weight", table)]))


# ---- products


@operation("Matmul", "Dot")
def matmul(m: Walk, op: Any, a: Call) -> Held:
    """`linear` by a variable that is a matrix, else `matmul`"""
    if is_variable(m.keras, a.x2) and len(a.x2.shape) == 2:
        return dense_of(m, m.held(a.x1), a.x2, None)
    if isinstance(a.x2, Held) and a.x2.value.name in m.turned:  # a tied weight, O,I
        v, variable = m.value(a.x1), m.turned[a.x2.value.name]
        with contextlib.suppress(Unsupported):  # a layer reads it in another form
            if v.layout.n != v.layout.rank - 1 and v.layout.rank > 1:
                layout = v.layout.sized(v.layout.rank - 1, int(variable.shape[0]))
                weight = [("weight", m.slot(variable))]
                return Held(m.made("linear", [v], layout, params=weight))
    left, right = m.value(a.x1), m.value(a.x2)
    if type(op).__name__ == "Dot" and right.layout.rank > 2:
        raise Unsupported("multiplies all matrices by all", "keras.ops.matmul")
    return Held(product(m, left, right))


@operation("Einsum")
def einsum_op(m: Walk, op: Any, a: Call) -> Held:
    """`transpose`, `reshape`, `matmul`; `sum` of one operand"""
    operands = list(a.get("operands", ()))
    return Held(
        einsum(m, _spelled(op.subscripts, operands, m), [m.value(x) for x in operands])
    )


def _spelled(equation: str, operands: Sequence[Any], m: Walk) -> str:
    """Without '...', which stands for the axes that all have."""
    if "..." not in equation:
        return equation
    terms, _, out = equation.replace(" ", "").partition("->")
    free = [c for c in "ABCDEFGHIJKLMNOP" if c not in equation]
    words = []
    longest = 0
    counts = []
    for word, x in zip(terms.split(","), operands):
        count = m.held(x).rank - len(word.replace("...", "")) if "..." in word else 0
        counts.append(count)
        longest = max(longest, count)
    for word, count in zip(terms.split(","), counts):
        words.append(word.replace("...", "".join(free[longest - count : longest])))
    return ",".join(words) + "->" + out.replace("...", "".join(free[:longest]))


@operation("Tensordot")
def tensordot(m: Walk, op: Any, a: Call) -> Held:
    """as einsum"""
    left, right = m.value(a.x1), m.value(a.x2)
    axes = op.axes
    if isinstance(axes, int):
        first = list(range(left.layout.rank - axes, left.layout.rank))
        second = list(range(axes))
    else:
        first, second = ([x] if isinstance(x, int) else list(x) for x in axes)
    one = [chr(97 + i) for i in range(left.layout.rank)]
    two = [chr(65 + i) for i in range(right.layout.rank)]
    for i, j in zip(first, second):
        two[j] = one[i]
    out = [c for c in one if c not in two] + [c for c in two if c not in one]
    equation = f"{''.join(one)},{''.join(two)}->{''.join(out)}"
    return Held(einsum(m, equation, [left, right]))


@operation("DotProductAttention")
def dot_product_attention(m: Walk, op: Any, a: Call) -> Held:
    """`attention`; with a mask `matmul`, `softmax`, `matmul`"""
    if a.get("bias") is not None or op.attn_logits_soft_cap is not None:
        raise Unsupported("adds a bias or caps its scores", "keras.ops.matmul, softmax")
    q, k, v = (m.rows_apart(a.arguments[x], 4) for x in ("query", "key", "value"))
    scale = a.get("scale")
    scale = 1 / math.sqrt(q.shape[-1]) if scale is None else float(scale)
    return Held(attended(m, q, k, v, scale, bool(op.is_causal), a.get("mask"), 0.0))


@operation("LayerNorm")
def layer_norm(m: Walk, op: Any, a: Call) -> Held:
    """`layer_norm`"""
    held = m.held(a.x)
    axes = [op.axis] if isinstance(op.axis, int) else list(op.axis)
    axes = [held.axis(axis) for axis in axes]
    gamma, beta = a.get("gamma"), a.get("beta")
    if op.rms_scaling or not all(
        g is None or is_variable(m.keras, g) for g in (gamma, beta)
    ):
        raise Unsupported("has a computed scale", "keras.layers.LayerNormalization")
    return normalised(m, held, axes, gamma, beta, _epsilon(m, op))


# ---- pictures


@operation("Conv", "DepthwiseConv")
def conv(m: Walk, op: Any, a: Call) -> Held:
    """`conv2d`"""
    kernel = a.kernel
    if not is_variable(m.keras, kernel):
        raise Unsupported("its kernel is computed, not a variable", "a Conv2D layer")
    x = m.held(a.inputs)
    depthwise = type(op).__name__ == "DepthwiseConv"
    if x.rank != 4 or (op.data_format or "channels_last") != "channels_last":
        raise Unsupported("is no convolution of N,H,W,C", "keras.layers.Conv2D")
    v = m.spread_out(m.first(x).value)
    h, w, inside, outside = (int(s) for s in kernel.shape)
    if depthwise:
        steps: list[Any] = [
            ("transpose", (2, 3, 0, 1)),
            ("reshape", (inside * outside, 1, h, w)),
        ]
        groups, channels = inside, inside * outside
    else:
        steps = [("transpose", (3, 2, 0, 1))]
        groups, channels = v.shape[1] // inside, outside
    strides, dilation = pairs(op.strides, 2), pairs(op.dilation_rate, 2)
    weight, size = m.slot(kernel, *steps), [h, w]
    out = convolved(
        m, v, weight, None, size, channels, strides, dilation, op.padding, groups
    )
    return Held(out, FIRST)


@operation("MaxPool", "AveragePool")
def pool(m: Walk, op: Any, a: Call) -> Held:
    """`max_pool2d`, `avg_pool2d`"""
    x = m.held(a.inputs)
    if x.rank != 4 or (op.data_format or "channels_last") != "channels_last":
        raise Unsupported("is no pool of N,H,W,C", "keras.layers.MaxPooling2D")
    v = m.spread_out(m.first(x).value)
    name = "max" if type(op).__name__ == "MaxPool" else "avg"
    return Held(pooled(m, v, name, op.pool_size, op.strides, op.padding, 2), FIRST)


@operation("Resize")
def resize(m: Walk, op: Any, a: Call) -> Held:
    """`resize`; bicubic and the like: `matmul` with a frozen matrix for each axis"""
    return _resized(m, op, a, list(op.size), bool(op.antialias))


@layer("Resizing")
def resizing_layer(m: Walk, op: Any, a: Call) -> Held:
    """as keras.ops.image.resize"""
    return _resized(m, op, a, [int(op.height), int(op.width)], bool(op.antialias))


def _resized(m: Walk, op: Any, a: Call, size: Sequence[int], antialias: bool) -> Held:
    if op.crop_to_aspect_ratio or op.pad_to_aspect_ratio:
        raise Unsupported("keeps the aspect ratio", "crop before it")
    x = m.held(a.first)
    if x.rank != 4:
        raise Unsupported("resizes a single picture", "a batch of pictures")
    ahead = op.data_format == "channels_first"
    v = m.rows_apart(x, 4) if ahead else m.spread_out(m.first(x).value)
    out = interpolated(m, v, size, op.interpolation, antialias)
    return Held(out, PLAIN if ahead else FIRST)


def interpolated(
    m: Walk, v: Value, size: Sequence[int], interpolation: str, antialias: bool
) -> Value:
    """N,C,H,W resized: by the op where it has this interpolation, else by a product for
    each axis, whose matrix is what Keras makes of unit pictures."""
    mode = {"nearest": "nearest", "bilinear": "linear"}.get(interpolation, "")
    if tuple(size) == tuple(v.shape[2:]):
        return v
    if mode != "nearest" and m.keras.backend.backend() == "tensorflow":
        raise Unsupported(
            "resizes, which TensorFlow does in float32 alone",
            "'import torch' or 'import jax' in the file chooses Keras's backend",
        )
    matrices = []
    for axis, out in zip((2, 3), size):
        old = v.shape[axis]
        unit = np.eye(old)
        down = axis == 2
        picture = unit.reshape((old, old, 1, 1) if down else (old, 1, old, 1))
        made = m.keras.ops.image.resize(
            picture,
            (out, 1) if down else (1, out),
            interpolation=interpolation,
            antialias=antialias,
            data_format="channels_last",
        )
        matrix = to_numpy(made).astype(np.float64).reshape(old, out)
        matrices.append(np.ascontiguousarray(matrix.T))
    for coordinates in ("half_pixel", "asymmetric") if mode else ():
        ours = [
            resizing(old, out, mode, coordinates) for old, out in zip(v.shape[2:], size)
        ]
        if all(np.allclose(a, b, 0, 1e-12) for a, b in zip(matrices, ours)):
            return resized(m, v, size, mode, coordinates)
    for axis, matrix in zip((2, 3), matrices):
        if v.shape[axis] != len(matrix):
            v = along(m, v, axis, matrix)
    return v


@operation("DepthToSpace", "SpaceToDepth")
def depth_to_space(m: Walk, op: Any, a: Call) -> Held:
    """`reshape`, `transpose`, `reshape`"""
    v = m.rows_apart(a.first, 4)
    if (op.data_format or "channels_last") != "channels_last":
        raise Unsupported("has channels first", "data_format='channels_last'")
    b = int(op.block_size)
    _, h, w, c = v.shape
    if type(op).__name__ == "DepthToSpace":
        v = m.reshaped(v, Layout((1, h, w, b, b, c // b // b), 0))
        v = m.permuted(v, [0, 1, 3, 2, 4, 5])
        return Held(m.reshaped(v, Layout((1, h * b, w * b, c // b // b), 0)))
    v = m.reshaped(v, Layout((1, h // b, b, w // b, b, c), 0))
    v = m.permuted(v, [0, 1, 3, 2, 4, 5])
    return Held(m.reshaped(v, Layout((1, h // b, w // b, b * b * c), 0)))


@operation("StopGradient")
def stop_gradient(m: Walk, op: Any, a: Call) -> Held:
    """`stop_gradient`"""
    if not m.known("stop_gradient"):
        raise Unsupported("stops the gradient", "freeze layers by trainable=False")
    return m.one("stop_gradient", a.first)
