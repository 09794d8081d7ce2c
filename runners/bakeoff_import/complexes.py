"""Complex numbers as pairs of real ones.

The IR has real numbers alone, since referee, emitters and kernels would all have to
know complex ones for the few models that rotate queries or filter in frequencies. A
complex tensor is therefore two values, and never one value with an axis of 2, but where
the model itself looks at it so (`view_as_real`) or holds it as a parameter. An op that
moves elements maps each part; a product is written out; a Fourier transform is a
product with a constant matrix, axis after axis: slower than an FFT, but exact, and all
that scripts and proofs already know.
"""

from __future__ import annotations

from typing import Any, Callable, Optional

import torch

from bakeoff_import.float64 import real_numbers
from bakeoff_import.mapping import Args, Mapper
from bakeoff_import.problems import Unsupported
from bakeoff_import.rows import angle_of, over, root_of, row
from bakeoff_import.steps import along, selected
from bakeoff_import.values import Complex, Const, Param, Value

_MOVES = """
view reshape _unsafe_view flatten unflatten unsqueeze squeeze permute transpose expand
slice select cat stack flip roll clone contiguous neg slice_scatter select_scatter copy
index index_select pad constant_pad_nd sum mean add sub chunk split to
""".split()
_PRODUCTS = "mul multiply matmul bmm mm einsum".split()
_REMEDY = "pairs of real numbers: x cos - y sin and x sin + y cos"


def _parts(arg: Any) -> tuple[Any, Any]:
    """Real and imaginary part; of a real tensor or number no imaginary one."""
    if isinstance(arg, (Complex, complex)):
        return arg.real, arg.imag
    if isinstance(arg, Const) and arg.tensor.is_complex():
        both = torch.view_as_real(arg.tensor.resolve_conj().to(torch.complex128))
        return tuple(Const(both[..., i].contiguous(), arg.n) for i in (0, 1))  # type: ignore[return-value]
    return arg, None


def _read(m: Mapper, arg: Any) -> Any:
    """A complex parameter as it is read: its pairs are a last axis of 2."""
    if isinstance(arg, (list, tuple)):
        return [_read(m, one) for one in arg]
    if not (isinstance(arg, Param) and arg.tensor.is_complex()):
        return arg
    pairs = m.value(Param(arg.key, real_numbers(arg.tensor)))
    return Complex(*(selected(m, pairs, pairs.layout.rank - 1, i) for i in (0, 1)))


def _mapped(m: Mapper, short: str, a: Args, part: int) -> Any:
    """The row of an op that moves elements, for one part of its tensors."""

    def of(arg: Any) -> Any:
        if isinstance(arg, (list, tuple)) and any(isinstance(t, Complex) for t in arg):
            return [of(one) for one in arg]
        real, imag = _parts(arg)
        held = isinstance(arg, (Const, Param, Value))
        return (imag if imag is not None else 0.0 if held else arg) if part else real

    parts = Args({key: of(value) for key, value in a.items()})
    if part and short in ("add", "sub") and isinstance(a.other, (int, float)):
        parts["other"] = 0.0
    return m._rows[short](m, parts)


def _multiplied(m: Mapper, short: str, a: Args) -> Complex:
    """(p + iq)(r + is), for any product."""
    listed = short == "einsum"
    keys = [] if listed else [k for k, v in a.items() if isinstance(
        v, (Complex, Value, Const, Param, int, float, complex))
        and k != "self"][:2]  # fmt: skip
    pair = a["tensors"] if listed else [a[key] for key in keys]
    if len(pair) != 2:
        raise Unsupported("is a complex product of more than two", "two at a time")

    def of(one: Any, two: Any) -> Any:
        more = {"tensors": [one, two]} if listed else dict(zip(keys, (one, two)))
        more.update({"self": more["input"]} if "input" in more else {})
        return m._rows[short](m, Args({**a, **more}))

    def total(op: str, one: Any, two: Any) -> Any:
        return one if two is None else two if one is None else over(op, m, one, two)

    (p, q), (r, s) = _parts(pair[0]), _parts(pair[1])
    crossed = None if q is None or s is None else of(q, s)
    return Complex(
        total("sub", of(p, r), crossed),
        total("add", None if s is None else of(p, s), None if q is None else of(q, r)),
    )


def _turned(m: Mapper, x: Complex, axis: int, matrix: Any) -> Complex:
    """An axis times a complex matrix."""
    u, v = (part.resolve_neg().numpy() for part in (matrix.real, matrix.imag))
    real, imag = along(m, x.real, axis, u), along(m, x.real, axis, v)
    if x.imag is not None:
        real = over("sub", m, real, along(m, x.imag, axis, v))
        imag = over("add", m, imag, along(m, x.imag, axis, u))
    return Complex(real, imag)


def _fourier(m: Mapper, kind: str, a: Args) -> Any:
    """rfft, irfft2, fftn, ...: axis after axis, by the matrix that torch's op has."""
    many = kind[-1] in "2n"
    single = kind.rstrip("2n") if many else kind
    real, imag = _parts(a.input)
    real, imag = m.value(real), None if imag is None else m.value(imag)
    sizes = a.get("s") if many else [a.n] if a.n is not None else None
    axes = a.dim if many else [a.dim]
    if axes is None:
        axes = range(-len(sizes or real.shape), 0)
    todo = [
        (real.layout.axis(axis), sizes[i] if sizes else None)
        for i, axis in enumerate(axes)
    ]
    first = single == "rfft"
    x = Complex(real, imag)
    for axis, size in reversed(todo) if first else todo:
        last = axis == todo[-1][0]
        step = single if last else single.replace("r", "")
        eye = torch.eye(x.real.shape[axis], dtype=torch.float64)
        turn: Callable[..., Any] = getattr(torch.fft, step)
        norm = {"n": size, "dim": 0, "norm": a.get("norm")}
        if step != "irfft":
            x = _turned(m, x, axis, turn(eye, **norm))
            continue
        imaginary = None if x.imag is None else along(
            m, x.imag, axis, turn(1j * eye, **norm).resolve_neg().numpy())  # fmt: skip
        made = along(m, x.real, axis, turn(eye.to(torch.complex128), **norm).numpy())
        return made if imaginary is None else over("add", m, made, imaginary)
    return x


@row(
    *"complex polar view_as_complex view_as_real real imag _conj".split(),
    *(
        f"fft_{i}{r}fft{n}"
        for n in ("", "2", "n")
        for r in ("", "r")
        for i in ("", "i")
    ),
)
def complex_(m: Mapper, a: Args) -> Any:
    """pairs of real numbers; Fourier transforms: `matmul` with constant matrices"""
    short = m._op_name(m.node).removeprefix("aten.").rstrip("_")
    a = Args({key: _read(m, value) for key, value in a.items()})
    if short.startswith("fft_"):
        return _fourier(m, short[4:], a)
    if short == "complex":
        return Complex(m.value(a.real), m.value(a.imag))
    if short == "polar":
        size = m.value(a.abs)
        angle = m.value(a.angle)
        return Complex(
            *(over("mul", m, size, m.unary(f, angle)) for f in ("cos", "sin"))
        )
    if short == "view_as_complex":
        x = m.value(a.input)
        return Complex(*(selected(m, x, x.layout.rank - 1, i) for i in (0, 1)))
    if short in _PRODUCTS:
        return _multiplied(m, short, a)
    real, imag = _parts(a.get("input", a.get("self")))
    if short in ("real", "imag") and imag is not None:
        return real if short == "real" else imag
    if short == "view_as_real":
        return m.stack([m.value(real), m.value(imag)], m.value(real).layout.rank)
    if short in ("_conj", "conj_physical"):
        return Complex(real, m.unary("neg", m.value(imag)))
    if short == "abs":
        squares = [m.unary("square", m.value(part)) for part in (real, imag)]
        return root_of(m, over("add", m, *squares))
    if short == "angle" and imag is not None:
        y, x = m.value(imag), m.value(real)
        return angle_of(m, y, x, m.broadcast([y, x], y.shape, y.layout.n))
    if short == "exp":
        size = m.unary("exp", m.value(real))
        turned = (m.unary(f, m.value(imag)) for f in ("cos", "sin"))
        return Complex(*(over("mul", m, size, part) for part in turned))
    if short in ("div", "true_divide") and _parts(a.other)[1] is not None:
        u, v = (m.value(part) for part in _parts(a.other))
        size = over("add", m, m.unary("square", u), m.unary("square", v))
        back = Complex(over("div", m, u, size), m.unary("neg", over("div", m, v, size)))
        return _multiplied(m, "mul", Args(a, other=back))
    if short in ("div", "true_divide") and _parts(a.other)[1] is None:
        return Complex(
            *(_mapped(m, short, Args(a, input=p, self=p), 0) for p in (real, imag))
        )
    if short not in _MOVES:
        raise Unsupported("computes with complex numbers", _REMEDY)
    made: list[Optional[Any]] = [_mapped(m, short, a, part) for part in (0, 1)]
    if isinstance(made[0], list):
        return [Complex(*both) for both in zip(*made)]
    return Complex(*made)
