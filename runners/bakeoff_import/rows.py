"""The table: one row for each op of ATen, a small function that adds nodes of the IR.

ATen has several spellings of most ops (in place, by scalar, by tensor, with overloads),
and exports use any of them; all spellings of one op share its row, so that a fix is
made once. A row decides by shapes and constants alone, never by example numbers: the
graph must hold for all inputs. What it cannot express it refuses with a reason, and the
export is then tried again with torch's own formula for that op.

The first line of a row's documentation says what it becomes; docs/import.md is made
from it (``python -m bakeoff_import --table``).
"""

from __future__ import annotations

import math
from typing import Any, Callable, Optional, Sequence

import torch

from bakeoff_import.mapping import (
    Args,
    Mapper,
    Row,
    coefficient,
    dtype_of,
)
from bakeoff_import.problems import Unsupported
from bakeoff_import.steps import global_pool, selected
from bakeoff_import.values import (
    Const,
    Layout,
    Noise,
    Param,
    Stacked,
    Value,
)

ROWS: dict[str, Row] = {}
_LARGEST = float(torch.finfo(torch.float32).max)


def row(*names: str) -> Callable[[Row], Row]:
    """Registers a row under the names of its ops, without "aten." and overload."""

    def register(function: Row) -> Row:
        for name in names:
            ROWS[name] = function
        return function

    return register


# ---- element by element


def _unary(op: str, **attrs: Any) -> Row:
    def add(m: Mapper, a: Args) -> Value:
        return m.unary(op, m.value(a.input), **attrs)

    add.__doc__ = " ".join([f"`{op}`", *(f"{k}={v}" for k, v in attrs.items())])
    return add


for _name in (
    "neg abs exp log log1p expm1 sqrt rsqrt reciprocal square sin cos atan erf tanh "
    "sigmoid relu ceil floor round silu mish sign"
).split():
    row(_name)(_unary(_name))
row("special_expm1")(_unary("expm1"))
row("special_erf")(_unary("erf"))
row("negative")(_unary("neg"))
row("absolute")(_unary("abs"))
row("log_sigmoid")(_unary("log_sigmoid"))
row("softsign")(_unary("softsign"))
row("hardswish")(_unary("hard_swish"))
row("hardsigmoid")(_unary("hard_sigmoid"))
row("relu6")(_unary("clip", least=0.0, most=6.0))


@row("gelu")
def gelu(m: Mapper, a: Args) -> Value:
    """`gelu`, form=erf or tanh"""
    return m.unary(
        "gelu", m.value(a.input), form="tanh" if a.approximate == "tanh" else "erf"
    )


@row("elu")
def elu(m: Mapper, a: Args) -> Value:
    """`elu`"""
    if a.scale != 1 or a.input_scale != 1:
        raise Unsupported("scales besides alpha", "scale by a multiplication")
    return m.unary("elu", m.value(a.input), alpha=float(a.alpha))


@row("selu")
def selu(m: Mapper, a: Args) -> Value:
    """`selu`"""
    return m.unary("selu", m.value(a.input))


@row("celu")
def celu(m: Mapper, a: Args) -> Value:
    """alpha * `elu`(x / alpha)"""
    alpha = float(a.alpha)
    x = m.value(a.input)
    if alpha == 1:
        return m.unary("elu", x, alpha=1.0)
    inner = m.unary("elu", m.binary("mul", x, 1 / alpha), alpha=1.0)
    return m.binary("mul", inner, alpha)


@row("leaky_relu")
def leaky_relu(m: Mapper, a: Args) -> Value:
    """`leaky_relu`"""
    return m.unary("leaky_relu", m.value(a.input), slope=float(a.negative_slope))


@row("prelu")
def prelu(m: Mapper, a: Args) -> Value:
    """`where`(0 < x, x, weight * x): the slope at 0 is the weight, as in torch"""
    x = m.value(a.input)
    weight = m.value(a.weight)
    count = weight.shape[0]
    if count > 1:
        shape = tuple(count if i == 1 else 1 for i in range(x.layout.rank))
        weight = m.reshaped(weight, Layout(shape))
        weight = m._fitted(weight, x.layout)
    else:
        weight = m.reshaped(weight, Layout(()))
    above = m.made("less", [m.number(0.0), x], x.layout, "bool")
    return m.made("where", [above, x, m.made("mul", [x, weight], x.layout)], x.layout)


@row("softplus")
def softplus(m: Mapper, a: Args) -> Value:
    """`softplus`; with beta: softplus(beta x) / beta; above a threshold below 20: x"""
    x, beta, most = m.value(a.input), float(a.beta), float(a.threshold)
    out = m.unary("softplus", x if beta == 1 else m.binary("mul", x, beta))
    out = out if beta == 1 else m.binary("mul", out, 1 / beta)
    if most >= 20:  # there it differs from x by less than 1e-10 of it
        return out
    above = m.made("less", [m.number(most / beta), x], x.layout, "bool")
    return m.made("where", [above, x, out], x.layout)


@row("hardtanh", "clamp", "clip", "clamp_min", "clamp_max")
def clamp(m: Mapper, a: Args) -> Value:
    """`clip`; with tensors as bounds `maximum` and `minimum`"""
    low = a.get("min_val", a.get("min"))
    high = a.get("max_val", a.get("max"))
    if all(b is None or isinstance(b, (int, float)) for b in (low, high)):
        x = m.real(m.value(a.input))
        total = _under_root(m, x)
        if total and low is not None and low**2 >= _TINY and high is None:
            return root_of(m, total, float(low) ** 2)
        return m.unary(
            "clip",
            x,
            least=-math.inf if low is None else float(low),
            most=math.inf if high is None else float(high),
        )
    x = m.value(a.input)
    if low is not None:
        x = m.pointwise("maximum", x, low)
    if high is not None:
        x = m.pointwise("minimum", x, high)
    return x


@row("threshold")
def threshold(m: Mapper, a: Args) -> Value:
    """`where`(threshold < x, x, value)"""
    x = m.value(a.input)
    above = m.made("less", [m.number(float(a.threshold)), x], x.layout, "bool")
    return m.made("where", [above, x, m.number(float(a["value"]))], x.layout)


@row("softshrink")
def softshrink(m: Mapper, a: Args) -> Value:
    """`relu`(x - l) - `relu`(-x - l)"""
    x, width = m.value(a.input), float(a.lambd)
    over = m.unary("relu", m.binary("sub", x, width))
    under = m.unary("relu", m.binary("sub", m.unary("neg", x), width))
    return m.made("sub", [over, under], x.layout)


def _formula(said: str, add: Callable[[Mapper, Value], Value]) -> Row:
    def made(m: Mapper, a: Args) -> Value:
        return add(m, m.value(a.input))

    made.__doc__ = said
    return made


def _scaled_log(m: Mapper, x: Value, base: float) -> Value:
    return m.binary("mul", m.unary("log", x), 1 / math.log(base))


def _exponentials(m: Mapper, x: Value, sign: str) -> Value:
    """(e^x + e^-x) / 2, or their difference."""
    falls = m.unary("exp", m.unary("neg", x))
    both = m.binary(sign, m.unary("exp", x), falls)
    return m.binary("mul", both, 0.5)


def _truncated(m: Mapper, x: Value) -> Value:
    whole = m.unary("floor", m.unary("abs", x))
    return m.binary("mul", m.unary("sign", x), whole)


def _asinh(m: Mapper, x: Value) -> Value:
    size = m.unary("abs", x)
    root = m.unary("sqrt", m.binary("add", m.unary("square", x), 1.0))
    return m.binary(
        "mul", m.unary("sign", x), m.unary("log", m.binary("add", size, root))
    )


def _asin(m: Mapper, x: Value) -> Value:
    rest = m.binary("add", m.unary("neg", m.unary("square", x)), 1.0)
    return m.unary("atan", m.binary("div", x, m.unary("sqrt", rest)))


def _acos(m: Mapper, x: Value) -> Value:
    below = m.binary("add", m.unary("neg", x), 1.0)
    ratio = m.binary("div", below, m.binary("add", x, 1.0))
    return m.binary("mul", m.unary("atan", m.unary("sqrt", ratio)), 2.0)


for _name, _said, _add in (
    ("exp2", "`exp`(x log 2)",
     lambda m, x: m.unary("exp", m.binary("mul", x, math.log(2)))),
    ("log2", "`log`, `mul`", lambda m, x: _scaled_log(m, x, 2)),
    ("log10", "`log`, `mul`", lambda m, x: _scaled_log(m, x, 10)),
    ("sinh", "(`exp`(x) - `exp`(-x)) / 2", lambda m, x: _exponentials(m, x, "sub")),
    ("cosh", "(`exp`(x) + `exp`(-x)) / 2", lambda m, x: _exponentials(m, x, "add")),
    ("tan", "`sin` / `cos`",
     lambda m, x: m.binary("div", m.unary("sin", x), m.unary("cos", x))),
    ("asin", "`atan`(x / `sqrt`(1 - x^2))", _asin),
    ("acos", "2 `atan`(`sqrt`((1 - x) / (1 + x)))", _acos),
    ("arcsinh", "as asinh", _asinh),
    ("asinh", "`sign`(x) `log`(`abs`(x) + `sqrt`(`square`(x) + 1))", _asinh),
    ("erfc", "1 - `erf`", lambda m, x: m.binary(
        "add", m.unary("neg", m.unary("erf", x)), 1.0)),
    ("trunc", "`sign`(x) `floor`(`abs`(x))", _truncated),
    ("frac", "x - trunc(x)", lambda m, x: m.binary("sub", x, _truncated(m, x))),
):  # fmt: skip
    row(_name)(_formula(_said, _add))


@row("fmod")
def fmod(m: Mapper, a: Args) -> Value:
    """a - b trunc(a / b)"""
    whole = _truncated(m, m.pointwise("div", a.input, a.other))
    return m.pointwise("sub", a.input, m.pointwise("mul", whole, a.other))


@row("copysign")
def copysign(m: Mapper, a: Args) -> Value:
    """`abs`(a), or its `neg` `where` b < 0"""
    (x, y), layout = m.aligned([a.input, a.other])
    size = m.unary("abs", x)
    below = m.made("less", [y, m.number(0.0)], y.layout, "bool")
    return m.made("where", [below, m.unary("neg", size), size], layout)


@row("atan2", "arctan2")
def atan2(m: Mapper, a: Args) -> Value:
    """`atan` of the smaller over the larger, then by the signs"""
    (y, x), layout = m.aligned([a.input, a.other])
    return angle_of(m, y, x, layout)


def angle_of(m: Mapper, y: Value, x: Value, layout: Layout) -> Value:
    """Of x, y in (-pi, pi]; 0 of 0, 0, as in torch."""
    sizes = [m.unary("abs", y), m.unary("abs", x)]
    flat = m.made("less_equal", sizes, layout, "bool")
    least, most = (m.made("where", [flat, *pair], layout) for pair in ((y, x), (x, y)))
    none = m.made("equal", [most, m.number(0.0)], layout, "bool")
    most = m.made("where", [none, m.number(1.0), most], layout)
    arc = m.unary("atan", m.made("div", [least, most], layout))
    under, left = (
        m.real(m.made("less", [v, m.number(0.0)], v.layout, "bool")) for v in (y, x)
    )
    side = m.binary("add", m.binary("mul", under, -2.0), 1.0)
    turned = m.made("mul", [side, m.binary("mul", left, math.pi)], layout)
    steep = m.made("sub", [m.binary("mul", side, math.pi / 2), arc], layout)
    return m.made("where", [flat, m.made("add", [arc, turned], layout), steep], layout)


@row("remainder")
def remainder(m: Mapper, a: Args) -> Value:
    """a - b `floor`(a / b)"""
    whole = m.unary("floor", m.pointwise("div", a.input, a.other), "f32")
    return m.pointwise("sub", a.input, m.pointwise("mul", whole, a.other))


@row("floor_divide")
def floor_divide(m: Mapper, a: Args) -> Value:
    """`floor` of `div`"""
    return m.unary("floor", m.pointwise("div", a.input, a.other))


@row("glu")
def glu(m: Mapper, a: Args) -> Value:
    """`slice` in halves, a * `sigmoid`(b)"""
    x = m.value(a.input)
    axis = x.layout.axis(a.dim)
    half = x.shape[axis] // 2
    first = m.sliced(x, axis, 0, half)  # side by side, scripts print one chunk
    gate = m.unary("sigmoid", m.sliced(x, axis, half, 2 * half))
    return m.made("mul", [first, gate], first.layout)


@row("mul", "multiply")
def mul(m: Mapper, a: Args) -> Any:
    """`mul`; times noise see `rand`"""
    return m.pointwise("mul", a.input, a.other)


def _scaled(m: Mapper, x: Any, alpha: Any) -> Any:
    if alpha == 1:
        return x
    if isinstance(x, (int, float)):
        return x * alpha
    return m.binary("mul", m.value(x), alpha)


@row("add")
def add(m: Mapper, a: Args) -> Any:
    """`add`; of ids and the beginning of each column in one table: lookups"""
    plain = a.get("alpha", 1) == 1
    ids = plain and (m.begun(a.input, a.other) or m.shifted(a.input, a.other))
    if ids:
        return ids
    return m.pointwise("add", a.input, _scaled(m, a.other, a.get("alpha", 1)))


@row("sub", "subtract")
def sub(m: Mapper, a: Args) -> Value:
    """`sub`"""
    other = _scaled(m, a.other, a.get("alpha", 1))
    return m.pointwise("sub", a.input, other)


@row("rsub")
def rsub(m: Mapper, a: Args) -> Value:
    """`sub` the other way"""
    return m.pointwise("sub", a.other, _scaled(m, a.input, a.get("alpha", 1)))


@row("div", "divide", "true_divide")
def div(m: Mapper, a: Args) -> Any:
    """`div`; rounding_mode="floor": `floor` of it; "trunc": as trunc"""
    mode = a.get("rounding_mode")
    out = m.pointwise("div", a.input, a.other)
    if mode == "trunc":
        return _truncated(m, out)
    return m.unary("floor", out) if mode == "floor" else out


@row("pow", "float_power")
def power(m: Mapper, a: Args) -> Value:
    """`square`, `sqrt`, `rsqrt`, `reciprocal`; whole exponents: `mul`; else `pow`"""
    x, y = a.get("input"), a.exponent
    if isinstance(y, (int, float)) and not isinstance(x, (int, float)):
        short = {2: "square", 0.5: "sqrt", -0.5: "rsqrt", -1: "reciprocal"}.get(y)
        if y == 1:
            return m.value(x)
        if short:
            return m.unary(short, m.value(x))
        if float(y).is_integer() and 2 < abs(y) <= 64:
            out = _whole_power(m, m.value(x), int(abs(y)))
            return m.unary("reciprocal", out) if y < 0 else out
    return m.pointwise("pow", x, y)


def _whole_power(m: Mapper, x: Value, count: int) -> Value:
    """x^count for any sign of x."""
    if count == 1:
        return x
    half = m.unary("square", _whole_power(m, x, count // 2))
    return m.made("mul", [half, x], x.layout) if count % 2 else half


row("maximum")(lambda m, a: m.pointwise("maximum", a.input, a.other))
row("minimum")(lambda m, a: m.pointwise("minimum", a.input, a.other))
ROWS["maximum"].__doc__, ROWS["minimum"].__doc__ = "`maximum`", "`minimum`"


@row("hypot")
def hypot(m: Mapper, a: Args) -> Value:
    """`sqrt` of the sum of squares"""
    squares = [m.unary("square", m.value(x)) for x in (a.input, a.other)]
    return m.unary("sqrt", m.pointwise("add", *squares))


@row("logaddexp")
def logaddexp(m: Mapper, a: Args) -> Value:
    """`maximum` + `log1p`(`exp`(-`abs`(a - b)))"""
    apart = m.unary("abs", m.pointwise("sub", a.input, a.other))
    rest = m.unary("log1p", m.unary("exp", m.unary("neg", apart)))
    return m.pointwise("add", m.pointwise("maximum", a.input, a.other), rest)


def _distance(m: Mapper, apart: Value, p: float, keep: bool) -> Value:
    """The norm over the last axis."""
    return norm(m, Args(input=apart, p=p, dim=-1, keepdim=keep))  # type: ignore[no-any-return]


@row("pairwise_distance")
def pairwise_distance(m: Mapper, a: Args) -> Value:
    """`sqrt` of `sum` of `square`(a - b + eps); of order 1: `sum` of `abs`"""
    apart = over("sub", m, m.value(a.x1), m.value(a.x2))
    return _distance(
        m, m.binary("add", apart, float(a.eps)), float(a.p), bool(a.keepdim)
    )


def over(op: str, m: Mapper, x: Value, y: Value) -> Value:
    """Of two values that broadcast, whatever the present node gives."""
    shape = tuple(torch.broadcast_shapes(x.shape, y.shape))
    n = next((v.layout.n + len(shape) - v.layout.rank
              for v in (x, y) if v.layout.n is not None), None)  # fmt: skip
    layout = m.broadcast([x, y], shape, n)
    return m.made(op, [m._fitted(v, layout) for v in (x, y)], layout)


@row("cdist")
def cdist(m: Mapper, a: Args) -> Value:
    """`sqrt` of `sum` of `square`(a - b) of all pairs; of order 1: `sum` of `abs`"""
    x, y = m.value(a.x1), m.value(a.x2)
    x, y = with_axis(m, x, x.layout.rank - 1), with_axis(m, y, y.layout.rank - 2)
    return _distance(m, over("sub", m, x, y), float(a.p), False)


def with_axis(m: Mapper, v: Value, axis: int) -> Value:
    """With an axis of size 1 there."""
    lay = v.layout
    n = lay.n if lay.n is None or lay.n < axis else lay.n + 1
    shape = (*lay.shape[:axis], 1, *lay.shape[axis:])
    return m.reshaped(v, Layout(shape, n, lay.before, lay.after))


@row("addcmul")
def addcmul(m: Mapper, a: Args) -> Value:
    """`mul`, `add`"""
    both = m.pointwise("mul", a.tensor1, a.tensor2)
    return m.pointwise("add", a.input, _scaled(m, both, a.get("value", 1)))


@row("lerp")
def lerp(m: Mapper, a: Args) -> Value:
    """a + w (b - a)"""
    apart = m.pointwise("sub", a.end, a.input)
    return m.pointwise("add", a.input, m.pointwise("mul", apart, a.weight))


# ---- comparisons and masks


def _compare(swap: bool, negate: bool, op: str) -> Row:
    def add(m: Mapper, a: Args) -> Value:
        pair = (a.other, a.input) if swap else (a.input, a.other)
        out = m.pointwise(op, *pair, dtype="bool")
        return m.unary("logical_not", out) if negate else out

    add.__doc__ = (
        f"`{op}`"
        + (" with swapped inputs" if swap else "")
        + (", `logical_not`" if negate else "")
    )
    return add


row("lt", "less")(_compare(False, False, "less"))
row("gt", "greater")(_compare(True, False, "less"))
row("le", "less_equal")(_compare(False, False, "less_equal"))
row("ge", "greater_equal")(_compare(True, False, "less_equal"))
row("eq")(_compare(False, False, "equal"))
row("ne", "not_equal")(_compare(False, True, "equal"))


@row("logical_and", "bitwise_and", "__and__")
def logical_and(m: Mapper, a: Args) -> Value:
    """`logical_and`"""
    return m.pointwise("logical_and", a.input, a.other, dtype="bool")


@row("logical_or", "bitwise_or", "__or__")
def logical_or(m: Mapper, a: Args) -> Value:
    """`logical_or`"""
    return m.pointwise("logical_or", a.input, a.other, dtype="bool")


@row("logical_xor", "bitwise_xor", "__xor__")
def logical_xor(m: Mapper, a: Args) -> Value:
    """`equal` of them as numbers, `logical_not`"""
    pair = [m.real(m.value(x)) for x in (a.input, a.other)]
    return m.unary("logical_not", m.pointwise("equal", *pair, dtype="bool"))


@row("isnan", "isinf", "isfinite")
def finite(m: Mapper, a: Args) -> Value:
    """`equal` of x and itself; `abs`(x) beyond float32"""
    x, name = m.real(m.value(a.input)), m._op_name(m.node)
    if name.endswith("isnan"):
        same = m.made("equal", [x, x], x.layout, "bool")
        return m.unary("logical_not", same)
    pair = [m.number(_LARGEST), m.unary("abs", x)]
    if name.endswith("isinf"):
        return m.made("less", pair, x.layout, "bool")
    return m.made("less_equal", pair[::-1], x.layout, "bool")


@row("nan_to_num")
def nan_to_num(m: Mapper, a: Args) -> Value:
    """`where`(x = x, `clip`(x), nan)"""
    x = m.value(a.input)
    ends = [end if end is not None else size for end, size in (
        (a.neginf, -_LARGEST), (a.posinf, _LARGEST))]  # fmt: skip
    same = m.made("equal", [x, x], x.layout, "bool")
    inside = m.unary("clip", x, least=float(ends[0]), most=float(ends[1]))
    return m.made("where", [same, inside, m.number(float(a.nan or 0))], x.layout)


@row("bucketize", "searchsorted")
def bucketize(m: Mapper, a: Args) -> Value:
    """`sum` of `less` or `less_equal` for each boundary"""
    at = a.get("boundaries", a.get("sorted_sequence"))
    x = m.value(a.input if "boundaries" in a else a["self"])
    if not isinstance(at, Const) or at.tensor.ndim != 1 or a.get("sorter") is not None:
        raise Unsupported("has boundaries that are computed", "one constant vector")
    op = "less_equal" if a.right or a.get("side") == "right" else "less"
    wide = with_axis(m, x, x.layout.rank)
    layout = wide.layout.sized(x.layout.rank, len(at.tensor))
    ends = m._fitted(Const(at.tensor.to(torch.float64)), layout)
    below = m.made(op, [ends, wide], layout, "bool")
    out = m.reduced("sum", m.real(below), [x.layout.rank], False)
    m.whole.add(out.name)
    return out


@row("logical_not", "bitwise_not")
def logical_not(m: Mapper, a: Args) -> Value:
    """`logical_not`"""
    return m.unary("logical_not", m.value(a.input))


@row("where")
def where(m: Mapper, a: Args) -> Value:
    """`where`"""
    if "input" not in a:
        raise Unsupported("finds positions, whose number depends on the data")
    first = a.input
    if _is_number(first) and _is_number(a.other):  # the IR wants a table
        held = first.tensor if isinstance(first, Const) else torch.tensor(float(first))
        first = Const(held.reshape((1,) * len(m.out()[0])))
    return m.pointwise("where", a.condition, first, a.other)


def _is_number(arg: Any) -> bool:
    return not (arg.tensor.ndim if isinstance(arg, Const) else isinstance(arg, Value))


@row("masked_fill")
def masked_fill(m: Mapper, a: Args) -> Value:
    """`where`; nothing by a constant mask that is false throughout"""
    if isinstance(a.mask, Const) and not bool(a.mask.tensor.any()):
        return m.value(a.input)
    return m.pointwise("where", a.mask, a["value"], a.input)


@row("bakeoff.pad_packed_sequence")
def pad_packed_sequence(m: Mapper, a: Args) -> Value:
    """`where`, with total_length; without it nothing, where all rows have all places"""
    x = m.value(a.x)
    places = x.shape[1]
    if not isinstance(a.lengths, Const) or bool((a.lengths.tensor < places).any()):
        raise Unsupported(
            "pads packed sequences to the longest of a batch",
            "pad_packed_sequence(..., total_length=x.shape[1])",
        )
    return x


@row("tril", "triu")
def triangle(m: Mapper, a: Args) -> Value:
    """`where` with a constant mask"""
    x = m.value(a.input)
    side = torch.ones(x.shape[-2:], dtype=torch.bool)
    upper = m._op_name(m.node).rstrip("_").endswith("triu")
    mask = torch.triu(side, a.diagonal) if upper else torch.tril(side, a.diagonal)
    return m.pointwise("where", Const(mask), x, 0.0)


@row("to", "_to_copy", "type_as", "float", "double", "long", "int", "bool")
def cast(m: Mapper, a: Args) -> Any:
    """`cast`, or nothing between float types"""
    if isinstance(a.input, (Noise, Param)):
        return a.input
    x = m.value(a.input)
    kind = dtype_of(m.node.meta["val"].dtype)
    # Integers that were computed are floats here, and stay so.
    held = m.node.args[0].meta["val"].dtype
    if kind == x.dtype or (kind == dtype_of(held) == "i32"):
        return x
    if kind == "bool":
        zero = m.number(0.0)
        same = m.made("equal", [m.real(x), zero], x.layout, "bool")
        return m.unary("logical_not", same)
    if kind == "f32" or x.dtype == "bool":
        return m.real(x)
    return m.unary("cast", x, kind, to=kind)


# ---- constants


def _filled(name: str, number: Optional[float]) -> None:
    def make(m: Mapper, a: Args) -> Const:
        value = number if number is not None else a.get("fill_value", a.get("value"))
        if isinstance(value, Const) and value.tensor.ndim == 0:
            value = value.tensor.item()
        if not isinstance(value, (bool, int, float)):
            raise Unsupported("fills with a computed number", "torch.where")
        return m.full(value)

    make.__doc__ = "a constant"
    ROWS[name] = make


for _name, _number in {
    "new_zeros": 0.0, "zeros_like": 0.0, "zero": 0.0, "new_ones": 1.0, "ones_like": 1.0,
    "new_full": None, "full_like": None, "fill": None,
}.items():  # fmt: skip
    _filled(_name, _number)


# ---- what changes nothing


@row(
    "clone",
    "contiguous",
    "alias",
    "lift_fresh_copy",
    "lift_fresh",
    "positive",
    "identity",
)
def same(m: Mapper, a: Args) -> Any:
    """nothing"""
    return a.input


@row("detach", "detach_copy")
def detach(m: Mapper, a: Args) -> Any:
    """`stop_gradient`"""
    return m.stopped(a.input)


@row("native_dropout")
def native_dropout(m: Mapper, a: Args) -> list[Any]:
    """as dropout"""
    return [dropout(m, a), None]


@row("dropout", "feature_dropout")
def dropout(m: Mapper, a: Args) -> Any:
    """`dropout`; of whole channels (nn.Dropout2d): `dropout` of ones, `mul`"""
    name = m._op_name(m.node).rstrip("_")
    rate = float(a.p)
    m.drops(rate if a.train else 0.0)
    if not a.train or rate == 0 or not m.dropout:
        return a.input
    if rate >= 1:
        raise Unsupported("drops everything (p = 1)", "p below 1")
    x = m.value(a.input)
    if name.endswith("feature_dropout"):
        first = x
        for axis in range(2, x.layout.rank):
            first = m.sliced(first, axis, 0, 1)
        ones = m.binary("add", m.binary("mul", first, 0.0), 1.0)
        mask = m.unary("dropout", ones, rate=rate)
        return m.made("mul", [x, mask], x.layout)
    return m.unary("dropout", x, rate=rate)


@row("alpha_dropout", "feature_alpha_dropout")
def alpha_dropout(m: Mapper, a: Args) -> Any:
    """nothing where it is off; else unsupported"""
    if a.train and a.p > 0:
        raise Unsupported("alpha dropout has no counterpart in the IR", "nn.Dropout")
    return a.input


# ---- shape


@row("view", "reshape", "_unsafe_view", "flatten", "unflatten", "unsqueeze", "squeeze",
     "view_as", "reshape_as", "ravel")  # fmt: skip
def reshape(m: Mapper, a: Args) -> Any:
    """`reshape` or `flatten`; nothing where only N moves"""
    if isinstance(a.input, Noise):
        return Noise(Layout(*m.out()), a.input.keep, a.input.scale)
    x = m.value(a.input)
    shape, n = m.out()
    if n is None and x.layout.n is not None:
        raise Unsupported("reshapes the batch away")
    return m.reshaped(x, x.layout.reshaped(shape, n))


def _permute(m: Mapper, x: Any, perm: Sequence[int]) -> Any:
    v = m.value(x)
    return m.permuted(v, [v.layout.axis(axis) for axis in perm])


@row("permute")
def permute(m: Mapper, a: Args) -> Value:
    """`transpose`; nothing where only N moves"""
    return _permute(m, a.input, a.dims)  # type: ignore[no-any-return]


@row("transpose", "swapaxes", "swapdims")
def transpose(m: Mapper, a: Args) -> Value:
    """`transpose`; nothing where only N moves"""
    x = m.value(a.input)
    first = x.layout.axis(a["dim0"] if "dim0" in a else a["axis0"])
    second = x.layout.axis(a["dim1"] if "dim1" in a else a["axis1"])
    perm = list(range(x.layout.rank))
    perm[first], perm[second] = second, first
    return m.permuted(x, perm)


@row("t", "numpy_T", "mT", "mH", "matrix_H", "adjoint")
def swap(m: Mapper, a: Args) -> Value:
    """`transpose`"""
    x = m.value(a.input)
    rank = x.layout.rank
    return m.permuted(
        x, [*range(rank - 2), *([rank - 1, rank - 2] if rank > 1 else [0])]
    )


@row("diagonal")
def diagonal(m: Mapper, a: Args) -> Value:
    """`take` of constant places of two axes that are made one"""
    x = m.value(a.input)
    first, second = x.layout.axis(a.dim1), x.layout.axis(a.dim2)
    rest = [axis for axis in range(x.layout.rank) if axis not in (first, second)]
    rows, columns = x.shape[first], x.shape[second]
    turned = m.permuted(x, [*rest, first, second])
    lay = turned.layout
    if x.layout.n in (first, second):
        raise Unsupported("takes a diagonal across the batch", "keep the rows apart")
    flat = Layout((*lay.shape[:-2], rows * columns), lay.n, lay.before, lay.after)
    places = torch.arange(rows * columns).reshape(rows, columns).diagonal(a.offset)
    return m.taken(m.reshaped(turned, flat), places, len(rest))


@row("movedim", "moveaxis")
def movedim(m: Mapper, a: Args) -> Value:
    """`transpose`"""
    x = m.value(a.input)

    def listed(axes: Any) -> list[int]:
        axes = axes if isinstance(axes, (list, tuple)) else [axes]
        return [x.layout.axis(axis) for axis in axes]

    source, target = listed(a.source), listed(a.destination)
    rest = iter(axis for axis in range(x.layout.rank) if axis not in source)
    at = dict(zip(target, source))
    return m.permuted(
        x, [at[i] if i in at else next(rest) for i in range(x.layout.rank)]
    )


@row("expand", "expand_as", "broadcast_to")
def expand(m: Mapper, a: Args) -> Any:
    """`expand`; nothing for the batch, which ops broadcast over"""
    x = m.value(a.input)
    shape, n = m.out()
    lead = len(shape) - x.layout.rank
    old = (1,) * lead + x.shape
    own = None if x.layout.n is None else x.layout.n + lead
    if own is not None:
        if own != n:
            raise Unsupported("repeats the rows of a batch")
        v = (
            m.reshaped(x, Layout(old, n, x.layout.before, x.layout.after))
            if lead
            else x
        )
    elif n is None:
        v = m.reshaped(x, Layout(old))
    else:
        if old[n] != 1 or shape[n] != 1:
            raise Unsupported("repeats along a batch that is merged with an axis")
        name = m.graph.reshape(x.name, x.ir, Layout(old, n).ir(True), x.dtype)
        v = Value(name, Layout(old, n), x.dtype, spread=True)
    layout = Layout(shape, n, v.layout.before, v.layout.after)
    if v.shape == shape:
        return v
    out = m.expand(v, layout, v.spread)
    m.expanded[out.name] = layout, v
    return out


@row("cat", "concat", "concatenate")
def cat(m: Mapper, a: Args) -> Value:
    """`concat`"""
    empty = [isinstance(t, Const) and t.tensor.numel() == 0 for t in a.tensors]
    values = [m.value(t) for t, none in zip(a.tensors, empty) if not none]
    axis = values[0].layout.axis(a.get("dim", a.get("axis", 0)))
    rows_join = m.out()[1] == axis and any(v.layout.n == axis for v in values)
    return _rows_joined(m, values, axis) if rows_join else m.concat(values, axis)


def _rows_joined(m: Mapper, values: Sequence[Value], n: int) -> Value:
    """Several batches one behind the other: an axis in front of N within its axis."""
    parts = []
    for v in map(m.spread_out, values):
        lay = v.layout
        if lay.n != n or lay.after > 1:
            raise Unsupported("mixes rows of a batch with each other")
        shape = (*lay.shape[:n], lay.before, 1, *lay.shape[n + 1 :])
        parts.append(m.reshaped(v, Layout(shape, n + 1)))
    out = m.concat(parts, n)
    count = out.shape[n]
    shape = (*out.shape[:n], count, *out.shape[n + 2 :])
    return m.reshaped(out, Layout(shape, n, count, 1))


def _rows_taken(m: Mapper, x: Value, begin: int, end: int) -> Value:
    """Of batches one behind the other those from `begin` to `end`."""
    lay = x.layout
    n = lay.n
    if n is None or lay.after > 1 or not 0 <= begin < end <= lay.before:
        raise Unsupported("takes some rows of the batch", "keep all rows")
    apart = Layout((*lay.shape[:n], lay.before, 1, *lay.shape[n + 1 :]), n + 1)
    part = m.sliced(m.reshaped(x, apart), n, begin, end)
    return m.reshaped(part, Layout(lay.sized(n, end - begin).shape, n, end - begin, 1))


@row("stack")
def stack(m: Mapper, a: Args) -> Value:
    """`reshape`, `concat`"""
    values = [m.value(t) for t in a.tensors]
    axis = a.dim if a.dim >= 0 else a.dim + values[0].layout.rank + 1
    return m.stack(values, axis)


def _size(m: Mapper, x: Any, axis: int) -> int:
    """How many elements an axis has, fixed; the batch's: its coefficient."""
    return int(x.shape[axis])


@row("slice")
def slice_(m: Mapper, a: Args) -> Any:
    """`slice`"""
    if isinstance(a.input, Noise):
        return Noise(Layout(*m.out()), a.input.keep, a.input.scale)
    x = m.value(a.input)
    axis = x.layout.axis(a.dim)
    step = int(a.step)
    shape, n = m.out()
    if axis == x.layout.n:
        start, end = a.start or 0, a.end
        whole = start == 0 and step == 1 and n == axis and shape == x.shape
        if whole and (end is None or not isinstance(end, int) or end > 2**31):
            return x
        if step != 1:
            raise Unsupported("takes some rows of the batch", "keep all rows")
        count = x.shape[axis]
        end = count if end is None else _of_rows(end, count)
        return _rows_taken(m, x, _of_rows(start, count), end)
    size = x.shape[axis]
    begin, end, _ = slice(a.start, a.end, step).indices(size)
    return m.sliced(x, axis, begin, max(begin, end), step)


def _of_rows(place: Any, whole: int) -> int:
    """A place along the batch as a number of batches."""
    count, batch = coefficient(place)
    if count and not batch:
        if count > 2**31:
            return whole
        raise Unsupported("takes some rows of the batch", "keep all rows")
    return count


def _replaced(m: Mapper, x: Value, part: Value, axis: int, begin: int) -> Value:
    """x with another part of an axis."""
    size = x.shape[axis]
    end = begin + part.shape[axis]
    before = [m.sliced(x, axis, 0, begin)] if begin > 0 else []
    behind = [m.sliced(x, axis, end, size)] if end < size else []
    return m.concat([*before, part, *behind], axis)


@row("slice_scatter")
def slice_scatter(m: Mapper, a: Args) -> Any:
    """`slice`, `concat`: what x[:, a:b] = y becomes"""
    x, part = m.under(a.input), m.value(a.src)
    axis = x.layout.axis(a.dim)
    if axis == x.layout.n:
        if part.shape == x.shape and part.layout.n == axis and a.start in (None, 0):
            return part
        raise Unsupported("writes to some rows of the batch", "keep all rows")
    size = x.shape[axis]
    begin, end, step = slice(a.start, a.end, a.step).indices(size)
    if step == 1:
        return _replaced(m, x, part, axis, begin)
    places = torch.arange(size)  # within x, and behind it the part
    places[begin:end:step] = size + torch.arange(part.shape[axis])
    return m.taken(m.concat([x, part], axis), places, axis)


@row("select_scatter")
def select_scatter(m: Mapper, a: Args) -> Value:
    """`reshape`, `slice`, `concat`: what x[:, i] = y becomes"""
    x, part = m.under(a.input), m.value(a.src)
    axis = x.layout.axis(a.dim)
    if axis == x.layout.n:
        raise Unsupported("writes to one row of the batch", "keep all rows")
    part = m.reshaped(part, x.layout.sized(axis, 1))
    return _replaced(m, x, part, axis, int(a.index) % x.shape[axis])


@row("copy")
def copy(m: Mapper, a: Args) -> Value:
    """nothing; `expand` where y is broadcast"""
    x, y = m.under(a.input), m.value(a.src)
    if y.shape == x.shape and y.layout == x.layout:
        return y
    fitted = m._fitted(y, x.layout)
    return m.expand(fitted, x.layout)


@row("narrow")
def narrow(m: Mapper, a: Args) -> Value:
    """`slice`"""
    x = m.value(a.input)
    axis = x.layout.axis(a.dim)
    if axis == x.layout.n:
        raise Unsupported("takes some rows of the batch", "keep all rows")
    begin = int(a.start) % x.shape[axis]
    return m.sliced(x, axis, begin, begin + int(a.length))


@row("select")
def select(m: Mapper, a: Args) -> Any:
    """`slice`, `reshape`"""
    if isinstance(a.input, Stacked) and a.dim == 0:
        return a.input.items[a.index]
    if isinstance(a.input, Noise):
        return Noise(Layout(*m.out()), a.input.keep, a.input.scale)
    x = m.value(a.input)
    return selected(m, x, x.layout.axis(a.dim), int(a.index))


@row("unbind")
def unbind(m: Mapper, a: Args) -> Any:
    """several `slice`"""
    if isinstance(a.input, Stacked) and a.dim == 0:
        return list(a.input.items)
    x = m.value(a.input)
    axis = x.layout.axis(a.dim)
    if axis == x.layout.n:
        raise Unsupported("takes the rows of the batch apart", "keep all rows")
    return [selected(m, x, axis, i) for i in range(x.shape[axis])]


@row(
    "chunk",
    "split",
    "split_with_sizes",
    "tensor_split",
    "unsafe_chunk",
    "unsafe_split",
    "hsplit",
)
def split(m: Mapper, a: Args) -> list[Value]:
    """several `slice`"""
    x = m.value(a.input)
    second = m._op_name(m.node) == "aten.hsplit" and x.layout.rank > 1
    axis = x.layout.axis(a.get("dim", 1 if second else 0))
    parts: list[Any] = []
    begin = 0
    for meta in m.node.meta["val"]:
        size, _ = coefficient(meta.shape[axis])
        if axis == x.layout.n:
            parts.append(_rows_taken(m, x, begin, begin + size))
        else:
            nothing = size == 0
            parts.append(
                m.nothing(meta) if nothing else m.sliced(x, axis, begin, begin + size)
            )
        begin += size
    return parts


@row("repeat", "tile")
def repeat(m: Mapper, a: Args) -> Value:
    """`concat` with itself"""
    x = m.value(a.input)
    shape, n = m.out()
    lead = len(shape) - x.layout.rank
    lay = x.layout
    own = None if lay.n is None else lay.n + lead
    if own is None and n is not None:  # a constant or parameter for each row
        old = (1,) * lead + x.shape
        if old[n] != shape[n]:
            raise Unsupported("repeats along a batch that is merged with an axis")
        whole = Layout(old, n, 1, old[n])
        name = m.graph.reshape(x.name, x.ir, whole.ir(True), x.dtype)
        x = Value(name, whole, x.dtype, spread=True)
    elif lead:
        x = m.reshaped(x, Layout((1,) * lead + x.shape, own, lay.before, lay.after))
    for axis, size in enumerate(shape):
        times = size // x.shape[axis]
        if times > 1:
            same = [x] * times
            join = _rows_joined if axis == x.layout.n else Mapper.concat
            x = join(m, same, axis)
    return x


@row("repeat_interleave")
def repeat_interleave(m: Mapper, a: Args) -> Value:
    """`expand`, `reshape`"""
    x = m.value(a.input)
    counts = a.get("repeats")
    if isinstance(counts, Const) and counts.n is None and a.get("dim") is not None:
        axis = x.layout.axis(a.dim)
        if axis != x.layout.n:
            times = counts.tensor.broadcast_to(x.shape[axis])
            places = torch.arange(x.shape[axis]).repeat_interleave(times)
            return m.taken(x, places, axis)
    if not isinstance(counts, int) or a.get("dim") is None:
        raise Unsupported("repeats by a computed tensor, or without an axis")
    axis = x.layout.axis(a.dim)
    if axis == x.layout.n:
        return _rows_repeated(m, m.spread_out(x), a.repeats)
    lay = x.layout
    n = lay.n if lay.n is None or lay.n <= axis else lay.n + 1
    shape = (*lay.shape[: axis + 1], 1, *lay.shape[axis + 1 :])
    wide = m.reshaped(x, Layout(shape, n, lay.before, lay.after))
    layout = wide.layout.sized(axis + 1, a.repeats)
    wide = m.expand(wide, layout, wide.spread)
    return m.reshaped(wide, lay.sized(axis, lay.shape[axis] * a.repeats))


def _rows_repeated(m: Mapper, x: Value, times: int) -> Value:
    """Each row `times` times, one after the other: an axis behind N."""
    lay = x.layout
    parts = m.apart(x)
    if lay.n != 0:
        raise Unsupported("repeats the rows of a batch that is not axis 0")
    at = 1 + len(lay.groups()[0])  # behind all that is merged with N
    shape = (*parts.shape[:at], 1, *parts.shape[at:])
    wide = m.reshaped(parts, Layout(shape, 0))
    layout = wide.layout.sized(at, times)
    wide = m.expand(wide, layout)
    size = lay.before * lay.after * times
    return m.reshaped(
        Value(wide.name, layout, x.dtype),
        Layout((size, *lay.shape[1:]), 0, lay.before, lay.after * times),
    )


@row("flip")
def flip(m: Mapper, a: Args) -> Value:
    """`flip`"""
    x = m.value(a.input)
    axes = sorted(x.layout.ir_axis(x.layout.axis(axis)) for axis in a.dims)
    return m.unary("flip", x, axes=axes)


@row("roll")
def roll(m: Mapper, a: Args) -> Value:
    """`slice`, `concat`"""
    x = m.value(a.input)
    if not a.dims:
        raise Unsupported("rolls the flattened tensor", "name the axes")
    shifts = a.shifts if isinstance(a.shifts, (list, tuple)) else [a.shifts]
    axes = a.dims if isinstance(a.dims, (list, tuple)) else [a.dims]
    for shift, dim in zip(shifts, axes):
        axis = x.layout.axis(dim)
        if axis == x.layout.n:
            raise Unsupported("rolls along the batch")
        size = x.shape[axis]
        cut = (size - shift) % size
        if cut:
            x = m.concat(
                [m.sliced(x, axis, cut, size), m.sliced(x, axis, 0, cut)], axis
            )
    return x


@row("pixel_shuffle")
def pixel_shuffle(m: Mapper, a: Args) -> Value:
    """`reshape`, `transpose`, `reshape`"""
    x = m.batch_first(a.input, 4)
    r = int(a.upscale_factor)
    _, c, h, w = x.shape
    x = m.reshaped(x, Layout((1, c // r**2, r, r, h, w), 0))
    x = m.permuted(x, [0, 1, 4, 2, 5, 3])
    return m.reshaped(x, Layout((1, c // r**2, h * r, w * r), 0))


@row("pixel_unshuffle")
def pixel_unshuffle(m: Mapper, a: Args) -> Value:
    """`reshape`, `transpose`, `reshape`"""
    x = m.batch_first(a.input, 4)
    r = int(a.downscale_factor)
    _, c, h, w = x.shape
    x = m.reshaped(x, Layout((1, c, h // r, r, w // r, r), 0))
    x = m.permuted(x, [0, 1, 3, 5, 2, 4])
    return m.reshaped(x, Layout((1, c * r * r, h // r, w // r), 0))


@row("channel_shuffle", "native_channel_shuffle")
def channel_shuffle(m: Mapper, a: Args) -> Value:
    """`reshape`, `transpose`, `reshape`"""
    x = m.batch_first(a.input, 4)
    _, c, h, w = x.shape
    g = int(a.groups)
    y = m.permuted(m.reshaped(x, Layout((1, g, c // g, h, w), 0)), [0, 2, 1, 3, 4])
    return m.reshaped(y, x.layout)


def _side(
    m: Mapper, x: Value, axis: int, count: int, mode: str, first: bool
) -> list[Value]:
    """What a pad repeats on one side of an axis."""
    size = x.shape[axis]
    if count == 0:
        return []
    if mode == "circular":
        begin = size - count if first else 0
        return [m.sliced(x, axis, begin, begin + count)]
    if mode == "edge":
        begin = 0 if first else size - 1
        return [m.sliced(x, axis, begin, begin + 1)] * count
    begin = 1 if first else size - 1 - count
    part = m.sliced(x, axis, begin, begin + count)
    return [m.unary("flip", part, axes=[x.layout.ir_axis(axis)])]


@row("pad", "constant_pad_nd")
def pad(m: Mapper, a: Args) -> Value:
    """`pad`; circular: `slice`, `concat`; negative: `slice`"""
    x = m.value(a.input)
    mode = {"replicate": "edge"}.get(
        a.get("mode", "constant"), a.get("mode", "constant")
    )
    pads = [(0, 0)] * x.layout.rank
    for i in range(len(a.pad) // 2):
        pads[-1 - i] = (int(a.pad[2 * i]), int(a.pad[2 * i + 1]))
    for axis, (low, high) in enumerate(pads):
        if axis == x.layout.n and (low or high):
            raise Unsupported("pads the batch")
        if low < 0 or high < 0:
            size = x.shape[axis]
            x = m.sliced(x, axis, max(0, -low), size - max(0, -high))
    pads = [(max(0, low), max(0, high)) for low, high in pads]
    if mode == "circular" or (mode != "constant" and not m.known("pad.mode")):
        for axis, (low, high) in enumerate(pads):
            before = _side(m, x, axis, low, mode, first=True)
            behind = _side(m, x, axis, high, mode, first=False)
            x = m.concat([*before, x, *behind], axis)
        return x
    if not any(low or high for low, high in pads):
        return x
    layout = x.layout
    flat: list[int] = []
    for axis, (low, high) in enumerate(pads):
        layout = layout.sized(axis, layout.shape[axis] + low + high)
        if axis == x.layout.n:
            flat += [0, 0] * len(x.layout.groups()[axis])
        else:
            flat += [low, high]
    more = {} if mode == "constant" else {"mode": mode}
    return m.made(
        "pad", [x], layout, x.dtype, pad=flat, value=float(a.get("value") or 0), **more
    )


# ---- reductions


def _axes(m: Mapper, x: Value, dim: Any) -> list[int]:
    if dim is None or dim == []:
        dim = list(range(x.layout.rank))
    dim = dim if isinstance(dim, (list, tuple)) else [dim]
    return sorted(x.layout.axis(axis) for axis in dim)


@row("mean")
def mean(m: Mapper, a: Args) -> Value:
    """`mean`; over height and width `global_avg_pool2d`"""
    x = m.real(m.value(a.input))
    axes, keep = _axes(m, x, a.get("dim")), bool(a.get("keepdim", False))
    if (
        x.plain
        and x.layout.n == 0
        and x.layout.rank == 4
        and axes == [2, 3]
        and not x.spread
    ):
        return global_pool(m, x, keep)
    return m.reduced("mean", x, axes, keep)


def _reduction(op: str) -> Row:
    def add(m: Mapper, a: Args) -> Value:
        x = m.real(m.value(a.input))
        return m.reduced(
            op, x, _axes(m, x, a.get("dim")), bool(a.get("keepdim", False))
        )

    add.__doc__ = f"`{op}`"
    return add


for _name, _op in {
    "sum": "sum", "prod": "prod", "amax": "max", "amin": "min", "logsumexp": "logsumexp"
}.items():  # fmt: skip
    row(_name)(_reduction(_op))


@row("max", "min")
def extreme(m: Mapper, a: Args) -> Any:
    """`max`, `min` over an axis, `argmax`; `maximum`, `minimum` of two tensors"""
    op = m._op_name(m.node).removeprefix("aten.")
    if "other" in a:
        return m.pointwise(f"{op}imum", a.input, a.other)
    x = m.value(a.input)
    if a.get("dim") is None:
        return m.reduced(op, x, _axes(m, x, None), False)
    x, keep = m.real(x), bool(a.keepdim)
    users = [u for u in m.node.users if u.args[1] == 1 and u.users]
    places = _places(m, x, a.dim, keep, op == "min") if users else None
    return [m.reduced(op, x, _axes(m, x, a.dim), keep), places]


def _places(m: Mapper, x: Value, dim: int, keep: bool, smallest: bool) -> Value:
    """Of the largest elements along an axis, or of the smallest ones."""
    axis = x.layout.axis(dim)
    gone = x.layout.dropped([axis], False)
    x = m.unary("neg", x) if smallest else x
    out = m.made("argmax", [x], gone, "i32", axis=x.layout.ir_axis(axis))
    return m.reshaped(out, x.layout.dropped([axis], True)) if keep else out


@row("argmax", "argmin")
def argmax(m: Mapper, a: Args) -> Value:
    """`argmax`; argmin: of `neg`"""
    if a.get("dim") is None:
        raise Unsupported("takes the maximum over the batch", "name the axis")
    smallest = m._op_name(m.node) == "aten.argmin"
    return _places(m, m.real(m.value(a.input)), a.dim, bool(a.keepdim), smallest)


@row("cumsum")
def cumsum(m: Mapper, a: Args) -> Value:
    """`cumsum`"""
    x = m.real(m.value(a.input))
    return m.unary("cumsum", x, axis=x.layout.ir_axis(x.layout.axis(a.dim)))


def _running(
    m: Mapper, a: Args, first: float, join: Callable[[Value, Value], Value]
) -> Value:
    """Each element joined with what is 1, 2, 4, ... places before; `first` in front."""
    x = m.real(m.value(a.input))
    axis, shift = x.layout.axis(a.dim), 1
    at = x.layout.ir_axis(axis)
    while shift < x.shape[axis]:
        before = m.sliced(x, axis, 0, x.shape[axis] - shift)
        pads = [0] * 2 * (len(x.ir) - 1)  # of the axes behind N
        pads[2 * at - 2] = shift
        before = m.made("pad", [before], x.layout, pad=pads, value=first)
        x, shift = join(x, before), 2 * shift
    return x


@row("cumprod")
def cumprod(m: Mapper, a: Args) -> Value:
    """products with what is 1, 2, 4, ... places before"""
    return _running(m, a, 1.0, lambda x, y: m.made("mul", [x, y], x.layout))


@row("cummax", "cummin")
def cummax(m: Mapper, a: Args) -> list[Optional[Value]]:
    """`maximum`, `minimum` with what is 1, 2, 4, ... places before; no places"""
    op = "maximum" if m._op_name(m.node) == "aten.cummax" else "minimum"
    first = -_LARGEST if op == "maximum" else _LARGEST
    return [_running(m, a, first, lambda x, y: m.made(op, [x, y], x.layout)), None]


@row("logcumsumexp")
def logcumsumexp(m: Mapper, a: Args) -> Value:
    """`logaddexp` with what is 1, 2, 4, ... places before"""
    return _running(m, a, -1e30, lambda x, y: logaddexp(m, Args(input=x, other=y)))


def _variance(m: Mapper, a: Args) -> tuple[Value, Value]:
    """Mean and variance along axes."""
    x = m.value(a.input)
    axes = _axes(m, x, a.get("dim"))
    correction = a.get("correction")
    if correction is None:
        correction = 1 if a.get("unbiased", True) else 0
    count = math.prod(x.shape[axis] for axis in axes)
    mean_ = m.reduced("mean", x, axes, True)
    apart = m.made("sub", [x, mean_], x.layout)
    total = m.reduced("sum", m.unary("square", apart), axes, True)
    var = m.binary("mul", total, 1 / (count - correction))
    if not a.get("keepdim", False):
        var = m.reshaped(var, x.layout.dropped(axes, False))
        mean_ = m.reshaped(mean_, x.layout.dropped(axes, False))
    return mean_, var


@row("var")
def var(m: Mapper, a: Args) -> Value:
    """`mean`, `sub`, `square`, `sum`, `mul`"""
    return _variance(m, a)[1]


_TINY = 1e-36  # its root is 0 beside numbers of networks


def root_of(m: Mapper, total: Value, least: float = _TINY) -> Value:
    """A norm's root: torch's slope at 0 is 0 (rows of zeros, a point's distance from
    itself), where that of the root alone is not finite. Weights are not 0."""
    if least > _TINY or (total.layout.n is not None and not total.spread):
        total = m.unary("clip", total, least=least, most=math.inf)
    return m.unary("sqrt", total)


def _under_root(m: Mapper, root: Value) -> Optional[Value]:
    """Of what root_of has made its argument."""
    made = m.graph.by_output.get(root.name)
    low = m.graph.by_output.get(made.inputs[0]) if made and made.op == "sqrt" else None
    if low is None or low.op != "clip" or low.attrs["least"] != _TINY:
        return None
    return Value(low.inputs[0], root.layout, "f32", root.spread)


@row("std")
def std(m: Mapper, a: Args) -> Value:
    """as var, `sqrt`"""
    return root_of(m, _variance(m, a)[1])


@row("var_mean")
def var_mean(m: Mapper, a: Args) -> list[Value]:
    """as var"""
    mean_, var_ = _variance(m, a)
    return [var_, mean_]


@row("norm", "linalg_vector_norm", "frobenius_norm", "linalg_norm")
def norm(m: Mapper, a: Args) -> Value:
    """`sqrt` of `sum` of `square`; of order 1: `sum` of `abs`; else by `pow`, `max`"""
    x = m.value(a.input)
    order = a.get("p", a.get("ord", 2))
    axes, keep = _axes(m, x, a.get("dim")), bool(a.get("keepdim", False))
    matrix = m._op_name(m.node) == "aten.linalg_norm" and len(axes) == 2
    if order in (None, "fro"):
        order = 2
    elif matrix or isinstance(order, str):
        raise Unsupported("is a norm of matrices", "ord='fro', or one axis")
    if order == 1:
        return m.reduced("sum", m.unary("abs", x), axes, keep)
    if order != 2:
        if order == 0:
            raise Unsupported("counts what is not 0", "order 1 or 2")
        size = m.unary("abs", x)
        if math.isinf(order):
            return m.reduced("max" if order > 0 else "min", size, axes, keep)
        total = m.reduced("sum", m.binary("pow", size, order), axes, keep)
        total = m.unary("clip", total, least=_TINY, most=math.inf)
        return m.binary("pow", total, 1 / order)
    return root_of(m, m.reduced("sum", m.unary("square", x), axes, keep))


@row("_weight_norm")
def weight_norm(m: Mapper, a: Args) -> Value:
    """v * g / `sqrt`(`sum`(`square`(v))) over all axes but one"""
    v, g = m.value(a.v), m.value(a.g)
    axes = [axis for axis in range(v.layout.rank) if axis != v.layout.axis(a.dim)]
    size = m.unary("sqrt", m.reduced("sum", m.unary("square", v), axes, True))
    return m.made("mul", [v, m.made("div", [g, size], g.layout)], v.layout)


@row("softmax", "_softmax", "special_softmax")
def softmax(m: Mapper, a: Args) -> Value:
    """`softmax`"""
    x = m.value(a.input)
    return m.unary("softmax", x, axis=x.layout.ir_axis(x.layout.axis(a.dim)))


@row("log_softmax", "_log_softmax", "special_log_softmax")
def log_softmax(m: Mapper, a: Args) -> Value:
    """`log_softmax`"""
    x = m.value(a.input)
    return m.unary("log_softmax", x, axis=x.layout.ir_axis(x.layout.axis(a.dim)))
