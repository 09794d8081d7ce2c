"""Random numbers of a forward pass that dropout can stand for: masks of 0 and 1, one
number for each row, or for each element.

Where noise is multiplied, its mean must be 1, and it is dropout of ones. Where it
chooses between two values, one of them is what inference has: the likelier one. The
mask that chooses is dropout of ones, compared with 0.5; without dropout it is true.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Optional

import torch

from bakeoff_import.float64 import ABOVE, BELOW
from bakeoff_import.mapping import Args, Mapper, flat, one_number
from bakeoff_import.problems import Unsupported
from bakeoff_import.rows import row
from bakeoff_import.values import Const, Kept, Layout, Noise, Param, Uniform, Value

_RANDOM = (Noise, Uniform, Kept)
_MOVES = """
view reshape _unsafe_view flatten unflatten unsqueeze squeeze view_as reshape_as slice
select
""".split()
_SAME = """
to _to_copy type_as float double long int bool clone contiguous alias detach
""".split()


def _number(arg: Any) -> Optional[float]:
    if isinstance(arg, Const) and arg.n is None and arg.tensor.numel() == 1:
        return float(arg.tensor)
    return float(arg) if isinstance(arg, (int, float)) else one_number(arg)


def _bernoulli(m: Mapper, layout: Layout, keep: Optional[float]) -> Any:
    if keep is None:
        raise Unsupported("draws random numbers", "nn.Dropout")
    keep = min(max(keep, 0.0), 1.0)
    return Noise(layout, keep, 1.0) if 0 < keep < 1 else m.full(keep)


def _fitting(noise: Noise, x: Value) -> Optional[Layout]:
    """The layout of the noise with as many axes as x has; None: it does not fit."""
    lead = x.layout.rank - noise.layout.rank
    shape = (1,) * lead + noise.layout.shape
    n = None if noise.layout.n is None else noise.layout.n + lead
    fits = lead >= 0 and all(one in (1, own) for one, own in zip(shape, x.shape))
    rows = n is None or (n == x.layout.n and shape[n] == x.shape[n] == 1)
    return Layout(shape, n) if fits and rows else None


def _dropped(m: Mapper, x: Value, rate: float) -> Value:
    made = m.unary("dropout", x, rate=rate)
    m.by_hand.add(made.name)
    return made


def _mask(m: Mapper, x: Value, layout: Layout, rate: float) -> Value:
    """Dropout of ones."""
    if layout.n is None:
        ones = m.value(Const(torch.ones(layout.shape, dtype=torch.float64)))
    else:
        x = m.spread_out(m.real(x))
        for axis, size in enumerate(layout.shape):
            if axis != layout.n and size != x.shape[axis]:
                x = m.sliced(x, axis, 0, 1)
        ones = m.binary("add", m.binary("mul", x, 0.0), 1.0)
    return _dropped(m, ones, rate)


def _rate(noise: Noise) -> float:
    return round(1 - noise.keep, 12)  # 1 - 0.8 is 0.2


def _kept(m: Mapper, x: Value, noise: Noise) -> Any:
    """x * noise: stochastic depth, dropout by hand."""
    mean = noise.keep * noise.scale
    made = m.graph.by_output.get(x.name)
    if abs(mean - 1) > 1e-12 and made is not None and made.op == "div":
        by = m.graph.by_output.get(made.inputs[1])  # x.div(keep) * noise
        held: Any = by.attrs["value"] if by is not None and by.op == "constant" else 0
        if abs(held - mean) < 1e-12:
            x = Value(made.inputs[0], x.layout, x.dtype, x.spread)
            mean = 1.0
    if abs(mean - 1) > 1e-12:
        return Kept(x, noise)
    layout = _fitting(noise, x)
    if layout is None:
        raise Unsupported("multiplies by noise of this shape", "nn.Dropout")
    if not m.dropout:
        return x
    if layout == x.layout:
        return _dropped(m, x, _rate(noise))
    mask = m._fitted(_mask(m, x, layout, _rate(noise)), x.layout)
    return m.made("mul", [x, mask], x.layout)


def _is_zero(arg: Any) -> bool:
    if isinstance(arg, Const):
        return not bool(arg.tensor.any())
    return isinstance(arg, (int, float)) and arg == 0


def _chosen(m: Mapper, noise: Noise, yes: Any, no: Any) -> Any:
    """yes where the noise is 1, else no."""
    other = Noise(noise.layout, 1 - noise.keep, 1.0)
    if _is_zero(no) and not _is_zero(yes):
        return _kept(m, m.value(yes), noise)
    if _is_zero(yes) and not _is_zero(no):
        return _kept(m, m.value(no), other)
    if noise.keep < 0.5:
        noise, yes, no = other, no, yes
    x = m.value(yes)
    layout = _fitting(noise, x)
    if layout is None or x.shape != m.out()[0]:
        raise Unsupported("chooses by noise of this shape", "nn.Dropout")
    if not m.dropout:
        return x
    mask = _mask(m, x, layout, _rate(noise))
    mask = m.made("less", [m.number(0.5), mask], mask.layout, "bool")
    return m.pointwise("where", mask, x, no)


def _scaled(m: Mapper, of: Any, by: Any, divides: bool) -> Any:
    """Noise, or what it was multiplied with, times a number; noise times a value."""
    number = _number(by)
    if number is not None and not isinstance(by, Param):
        number = 1 / number if divides else number
        noise = of.noise if isinstance(of, Kept) else of
        noise = replace(noise, scale=noise.scale * number)
        return _kept(m, of.x, noise) if isinstance(of, Kept) else noise
    if isinstance(of, Noise) and isinstance(by, (Value, Param, Const)) and not divides:
        return _kept(m, m.value(by), of)
    return None


def _followed(m: Mapper, short: str, a: Args) -> Any:
    """Of an op of noise: noise, or a value. None: no such op is known."""
    one: Any = a.get("input")
    other: Any = a.get("other")
    if short in _SAME:
        return one
    if short in _MOVES and not isinstance(one, Kept):
        return replace(one, layout=Layout(*m.out()))
    if short.startswith("expand") and not isinstance(one, Kept):
        lay, lead = one.layout, len(m.out()[0]) - one.layout.rank
        n = None if lay.n is None else lay.n + lead
        return replace(one, layout=Layout((1,) * lead + lay.shape, n))
    if short in ("mul", "multiply", "div", "divide", "true_divide"):
        divides = short[0] != "m"
        of, by = (one, other) if isinstance(one, (Noise, Kept)) else (other, one)
        return None if divides and of is not one else _scaled(m, of, by, divides)
    if isinstance(one, Uniform) or isinstance(other, Uniform):
        of, by = (one, other) if isinstance(one, Uniform) else (other, one)
        number = _number(by)
        if short == "floor":
            return _bernoulli(m, of.layout, of.shift)
        if short == "add" and number is not None and a.get("alpha", 1) == 1:
            return Uniform(of.layout, of.shift + number)
        if short in BELOW | ABOVE and number is not None:
            below = min(max(number - of.shift, 0.0), 1.0)
            first = (short in BELOW) == (of is one)
            return _bernoulli(m, of.layout, below if first else 1 - below)
    if isinstance(one, Noise) and one.scale == 1:
        unless = short in ("logical_not", "bitwise_not")
        if unless or (short == "rsub" and other == 1 and a.get("alpha", 1) == 1):
            return Noise(one.layout, 1 - one.keep, 1.0)
    if short == "where" and isinstance(a.condition, Noise):
        return _chosen(m, a.condition, one, other)
    if short == "masked_fill" and isinstance(a.mask, Noise):
        return _chosen(m, a.mask, a["value"], one)
    return None


@row("rand", "rand_like", "uniform", "bernoulli")
def noise(m: Mapper, a: Args) -> Any:
    """noise: floor(keep + rand), rand < keep are that of bernoulli: times a value
    `dropout` of ones, `mul`; where it chooses `less`, `where` too"""
    short = m._op_name(m.node).removeprefix("aten.").rstrip("_")
    if short in ("rand", "rand_like") or (
        short == "uniform" and (a["from"], a.to) == (0.0, 1.0)
    ):
        return Uniform(Layout(*m.out()))
    if short == "bernoulli":
        return _bernoulli(m, Layout(*m.out()), _number(a.get("p", a.input)))
    made = _followed(m, short, a)
    if made is None:
        held = next(v for v in flat(a.values()) if isinstance(v, _RANDOM))
        if isinstance(held, Kept) and held.noise.scale == 1:
            raise Unsupported(
                "chooses by noise what inference takes the mean of",
                "zoneout is old + (1 - p) * F.dropout(new - old, p, self.training)",
            )
        m.value(held)
    return made
