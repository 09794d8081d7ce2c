"""The origin in float64: its tensors, the precisions that its code names, and dropout
turned off.

A proof with a bound of 1e-10 needs both sides in double precision, and casting the
parameters is not enough: code says `torch.float32`, masks are made in half precision, a
default type is asked for. Modes of torch's dispatcher widen what is named while the
user's code runs; its text stays as it is. No copy of the module is made, as hooks and
lambdas that it holds would still read the weights of the first. What an export cannot
follow (looks at the numbers of a mask, a custom backward) gets the formula in its
place, and only where that computes the same.
"""

from __future__ import annotations

import contextlib
import inspect
import sys
from collections import OrderedDict
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Iterator, Optional, Sequence

import torch
from torch.overrides import TorchFunctionMode
from torch.utils.hooks import RemovableHandle

from bakeoff_import.problems import is_users

# As functions of torch and of torch.nn.functional; in place with "_" behind.
_DROPOUTS = {
    f"{name}{end}"
    for name in ("dropout", "alpha_dropout", "feature_dropout", "feature_alpha_dropout")
    for end in ("", "_")
} | {"dropout1d", "dropout2d", "dropout3d"}
_WIDER = {
    **dict.fromkeys((torch.float32, torch.float16, torch.bfloat16), torch.float64),
    **dict.fromkeys((torch.complex64, torch.complex32), torch.complex128),
}


def _wide(arg: Any) -> Any:
    if isinstance(arg, torch.dtype):
        return _WIDER.get(arg, arg)
    if isinstance(arg, (list, tuple)) and any(
        isinstance(one, torch.dtype) for one in arg
    ):
        return type(arg)(_wide(one) for one in arg)
    return arg


def frames() -> list[tuple[str, int]]:
    """Files and lines of the calls that led here, the innermost first."""
    frame: Any = sys._getframe(2)
    found = []
    while frame:
        found.append((frame.f_code.co_filename, frame.f_lineno))
        frame = frame.f_back
    return found


def users_line(found: list[tuple[str, int]], folder: str) -> str:
    """'model.py:12': the innermost of the user's own; empty: there is none."""
    own = [(file, line) for file, line in found if is_users(file, folder)]
    return f"{Path(own[0][0]).name}:{own[0][1]}" if own else ""


class Float64(TorchFunctionMode):  # type: ignore[misc]
    """Where the code says float32, float16 or bfloat16 it gets float64, and complex
    numbers of 128 bits for those of fewer. Whether all
    numbers are finite is no question: what gives others is not proven. What forward
    does to gradients, which no export keeps, is remembered with its frames."""

    on_gradients: ClassVar[list[tuple[str, list[tuple[str, int]]]]] = []
    without_hooks: ClassVar[bool] = False  # of tensors
    within: ClassVar[Any] = contextlib.nullcontext()  # what a trace adds to it

    def __torch_function__(
        self, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        kwargs = kwargs or {}
        if func in (torch.Tensor.float, torch.Tensor.half, torch.Tensor.bfloat16):
            return args[0].double()
        if func == torch.Tensor.register_hook:
            self.on_gradients.append(("hook", frames()))
            if self.without_hooks or not args[0].requires_grad:
                return RemovableHandle(OrderedDict())
        elif func in (torch.Tensor.requires_grad_, torch.Tensor.requires_grad.__set__):
            trains = (*args[1:], *kwargs.values(), True)[0]
            weight = isinstance(args[0], torch.nn.Parameter)
            if weight and args[0].requires_grad != trains:
                self.on_gradients.append(("requires_grad", frames()))
        if func == torch.Tensor.data.__get__:
            return args[0].detach()  # which an export can follow
        name = getattr(func, "__name__", "")
        if name == "rms_norm":  # without eps it has that of the precision
            words = dict(zip(("input", "normalized_shape", "weight", "eps"), args))
            kwargs = {**words, **kwargs}
            if kwargs.get("eps") is None:
                kwargs["eps"] = torch.finfo(torch.float32).eps
            return func(**kwargs)
        if name in ("all", "any") and hasattr(next(iter(args), 0), "bakeoff_finite"):
            return args[0].bakeoff_finite  # a branch on it would depend on the data
        made = func(
            *map(_wide, args), **{key: _wide(value) for key, value in kwargs.items()}
        )
        if name in ("isfinite", "isinf", "isnan"):
            made.bakeoff_finite = name == "isfinite"
        return made


_MOVES = set(
    "view reshape _unsafe_view flatten unflatten unsqueeze squeeze view_as reshape_as "
    "slice select getitem expand expand_as clone contiguous alias detach".split()
)
_CASTS = set("to _to_copy type_as type float double long int half bool".split())
BELOW = {"lt", "less", "le", "less_equal"}
ABOVE = {"gt", "greater", "ge", "greater_equal"}


@dataclass(frozen=True)
class Random:
    """What a tensor holds: noise in [shift, shift + 1), or that with probability `true`
    it is true."""

    shift: Optional[float] = None
    true: Optional[float] = None


def random_of(name: str, args: Any, kwargs: Any) -> Optional[Random]:
    """What a function gives that draws random numbers or is given some; `true` where it
    has compared or rounded them. None: of anything else."""
    short = name.strip("_")
    if short in ("rand", "rand_like"):
        return Random(0.0)
    if short == "uniform":
        bounds = (*args[1:], *(kwargs or {}).values())[:2]
        return Random(0.0) if bounds in ((), (0, 1)) else None
    if short == "bernoulli":
        of: Any = args[1] if len(args) > 1 else (kwargs or {}).get("p")
        if of is None:
            of = 0.5 if name.endswith("_") else args[0]
        return Random(true=float(of.flatten()[0] if hasattr(of, "flatten") else of))
    held: list[Any] = [getattr(one, "bakeoff_random", None) for one in args[:2]]
    at = next((i for i, one in enumerate(held) if one is not None), None)
    if at is None:
        return None
    known, other = held[at], args[1 - at] if len(args) > 1 else None
    if short in _MOVES or (short in _CASTS and known.shift is not None):
        return known  # type: ignore[no-any-return]
    if known.shift is None:
        turns = short in ("logical_not", "bitwise_not", "invert")
        return Random(true=1 - known.true) if turns else None
    if short == "floor":
        return Random(true=known.shift)
    if isinstance(other, torch.Tensor) and other.numel() == 1:
        other = other.item()
    if not isinstance(other, (int, float)):
        return None
    if short in ("add", "radd", "iadd"):
        return Random(known.shift + other)
    if short in BELOW | ABOVE:
        below = min(max(other - known.shift, 0.0), 1.0)
        return Random(true=below if (short in BELOW) == (at == 0) else 1 - below)
    return None


def _chosen(cond: Any, yes: Any, no: Any) -> Any:
    """Like torch.where by noise: the mean where one side is 0, else the likelier."""
    true = cond.bakeoff_random.true

    def zero(one: Any) -> bool:
        if isinstance(one, torch.Tensor):
            return not one.requires_grad and not bool(one.any())
        return bool(one == 0)

    if zero(yes) != zero(no):
        return yes * true + no * (1 - true)
    return torch.where(torch.full_like(cond, true >= 0.5), yes, no)


def _mean(one: Any) -> Any:
    """Of a mask its mean."""
    known = getattr(one, "bakeoff_random", None)
    if known is None or known.true is None:
        return one
    return torch.full_like(one, known.true, dtype=torch.get_default_dtype())


class WithoutDropout(TorchFunctionMode):  # type: ignore[misc]
    """Dropout of any spelling passes its input on; Bernoulli noise is its mean.
    Gradients are those of float64. The backward of a custom function sees no mode:
    layers that it computes again have no dropout either."""

    def __enter__(self) -> Any:
        self._own = {n: getattr(torch.nn.functional, n, None) for n in _DROPOUTS}
        for name, own in self._own.items():
            if own is not None:
                setattr(torch.nn.functional, name, lambda input, *_, **__: input)
        return super().__enter__()

    def __exit__(self, *why: Any) -> Any:
        for name, own in self._own.items():
            if own is not None:
                setattr(torch.nn.functional, name, own)
        return super().__exit__(*why)

    def __torch_function__(
        self, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        kwargs = dict(kwargs or {})
        name = getattr(func, "__name__", "")
        if name in _DROPOUTS:
            return args[0] if args else kwargs["input"]
        if name in ("hardsigmoid", "hardsigmoid_"):
            # torch's own backward has 1/6 as float32, also in float64.
            return (args[0] / 6 + 0.5).clamp(0, 1)
        noisy: list[Any] = [getattr(one, "bakeoff_random", None) for one in args[:3]]
        if name in ("where", "masked_fill", "masked_fill_") and any(noisy):
            if name == "where":
                return _chosen(*args)
            made = _chosen(args[1], args[2], args[0])
            return args[0].copy_(made) if name.endswith("_") else made
        found = random_of(name, args, kwargs)
        if found is not None:
            made = func(*args, **kwargs)
            mask = made.dtype == torch.bool
            if found.true is not None and name.strip("_") not in _MOVES:
                made.fill_(found.true >= 0.5 if mask else found.true)
            if mask or found.true is None:
                made.bakeoff_random = found
            return made
        if any(r.true is not None for r in noisy if r):
            if name.strip("_") in _CASTS:
                made = func(*args, **kwargs)
                return made.fill_(noisy[0].true) if made.is_floating_point() else made
            args = [_mean(one) for one in args]
        if name == "multi_head_attention_forward":  # what it calls is not seen here
            bound = inspect.signature(func).bind(*args, **kwargs)
            bound.arguments["dropout_p"] = 0.0
            return func(*bound.args, **bound.kwargs)
        if name == "scaled_dot_product_attention":
            kwargs.pop("dropout_p", None)
            args = (*args[:4], 0.0, *args[5:]) if len(args) > 4 else args
        if func in (torch.lstm, torch.gru, torch.rnn_tanh, torch.rnn_relu):
            at = 6 if isinstance(args[3], (list, tuple)) else 5  # of packed sequences
            args = (*args[:at], 0.0, *args[at + 1 :])
        return func(*args, **kwargs)


@contextlib.contextmanager
def float64_by_default() -> Iterator[None]:
    """Numbers without a stated precision are float64."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        yield
    finally:
        torch.set_default_dtype(before)


def gradients_of(number: Any, tensors: Sequence[Any]) -> list[Any]:
    """Of a number with respect to these leaves; None: it does not depend on one. As
    backward() accumulates them, since that of a custom function may call it again."""
    before = [tensor.grad for tensor in tensors]
    try:
        for tensor in tensors:
            tensor.grad = None
        number.backward()
        return [tensor.grad for tensor in tensors]
    finally:
        for tensor, grad in zip(tensors, before):
            tensor.grad = grad


def real_numbers(tensor: Any) -> Any:
    """Of complex numbers their pairs, on a last axis of 2, in the same memory."""
    return torch.view_as_real(tensor) if tensor.is_complex() else tensor


class _Limits:
    """torch.finfo of what is float64 here and float32 in the user's code: what is least
    there, as it bounds logarithms and roots. Masks keep the largest that there are."""

    own = torch.finfo

    def __init__(self, dtype: Any = None) -> None:
        self._held = self.own(*() if dtype is None else (dtype,))

    def __getattr__(self, name: str) -> Any:
        wide = self._held.bits == 64 and name not in ("min", "max", "bits", "dtype")
        return getattr(self.own(torch.float32) if wide else self._held, name)


@contextlib.contextmanager
def limits_of_float32() -> Iterator[None]:
    """What the code asks of a precision is that which it would have."""
    before, torch.finfo = torch.finfo, _Limits
    try:
        yield
    finally:
        torch.finfo = before


def in_float64(module: torch.nn.Module) -> torch.nn.Module:
    """The module in float64; its forward runs under Float64."""
    module = module._apply(lambda tensor: tensor.to(_wide(tensor.dtype))).cpu()
    experts(module, "eager")
    forward = module.forward

    def wide(*args: Any, **kwargs: Any) -> Any:
        with float64_by_default(), limits_of_float32(), Float64(), Float64.within:
            return forward(*args, **kwargs)

    wide.__wrapped__ = forward  # type: ignore[attr-defined]  # its signature
    module.forward = wide
    return module


def _along(x: Any, indices: Any, dim: Any = None) -> Any:
    if dim is None:
        return x.flatten().gather(0, indices.flatten())

    def wide(one: Any, other: Any) -> Any:
        sizes = [b if a == 1 else a for a, b in zip(one.shape, other.shape)]
        sizes[dim] = -1
        return one.expand(sizes)

    return wide(x, indices).gather(dim, wide(indices, x))


@contextlib.contextmanager
def masks_as_given() -> Iterator[None]:
    """nn.Transformer looks at the numbers of a mask to tell whether it is causal, which
    no export can. Without the look it uses the mask, which computes the same. And
    take_along_dim takes the batch size for a number; the gather that it is does not.
    Distributions look at their arguments too, unless told not to."""
    checks = torch.distributions.Distribution._validate_args
    torch.distributions.Distribution.set_default_validate_args(False)
    owner = torch.nn.modules.transformer
    original = owner._detect_is_causal_mask
    owner._detect_is_causal_mask = lambda mask, is_causal=None, size=None: (
        is_causal is True
    )
    along = torch.take_along_dim, torch.Tensor.take_along_dim
    torch.take_along_dim = torch.Tensor.take_along_dim = _along
    try:
        yield
    finally:
        owner._detect_is_causal_mask = original
        torch.take_along_dim, torch.Tensor.take_along_dim = along
        torch.distributions.Distribution.set_default_validate_args(checks)


@contextlib.contextmanager
def as_if_called() -> Iterator[None]:
    """Code that asks is told that nothing compiles it: some makes the masks that it is
    not given in calls alone."""
    before = torch.compiler.is_compiling, torch.compiler.is_exporting
    torch.compiler.is_compiling = torch.compiler.is_exporting = lambda: False
    try:
        yield
    finally:
        torch.compiler.is_compiling, torch.compiler.is_exporting = before


def experts(module: torch.nn.Module, how: str) -> None:
    """Experts of transformers: "eager" loops over those that are used, as the model's
    own code does; "batched_mm" looks up the weights of each word's experts, which an
    export can follow. The third way, sorting words by experts, has no float64."""
    for part in module.modules():
        config: Any = getattr(part, "config", None)
        if hasattr(config, "_experts_implementation_internal"):
            config._experts_implementation_internal = how


class _Context:
    """Stands for the ctx of a function whose forward autograd follows itself."""

    needs_input_grad = (True,) * 64

    def save_for_backward(self, *tensors: Any) -> None:
        pass

    mark_dirty = mark_non_differentiable = save_for_backward
    set_materialize_grads = save_for_backward


@contextlib.contextmanager
def followed_functions() -> Iterator[list[str]]:
    """Custom functions are their formulas; the names of those that were applied. No
    gradient is kept within forward, so that `no_grad` says nothing there: reversible
    layers have it, and compute again in backward."""
    seen: list[str] = []
    inside = [False]
    entering = torch.no_grad.__enter__

    def enter(self: Any) -> None:
        entering(self)
        if inside[0]:
            torch.set_grad_enabled(self.prev)

    owner = torch.autograd.Function
    original = owner.__dict__["apply"]

    def apply(cls: Any, *args: Any, **kwargs: Any) -> Any:
        if cls.__module__.startswith("torch."):
            return original.__get__(None, cls)(*args, **kwargs)
        seen.append(cls.__name__)
        apart = cls.setup_context is not owner.setup_context
        before, inside[0] = inside[0], True
        try:
            return cls.forward(*args) if apart else cls.forward(_Context(), *args)
        finally:
            inside[0] = before

    owner.apply = classmethod(apply)
    torch.no_grad.__enter__ = enter
    try:
        yield seen
    finally:
        owner.apply = original
        torch.no_grad.__enter__ = entering


@contextlib.contextmanager
def seen_functions(folder: str) -> Iterator[list[tuple[str, str]]]:
    """Custom torch.autograd.Function classes that are applied meanwhile, with the
    user's line."""
    seen: list[tuple[str, str]] = []
    original = torch.autograd.Function.__dict__["apply"]

    def apply(cls: Any, *args: Any, **kwargs: Any) -> Any:
        if not cls.__module__.startswith("torch."):
            seen.append((cls.__name__, users_line(frames(), folder)))
        return original.__get__(None, cls)(*args, **kwargs)

    torch.autograd.Function.apply = classmethod(apply)
    try:
        yield seen
    finally:
        torch.autograd.Function.apply = original
