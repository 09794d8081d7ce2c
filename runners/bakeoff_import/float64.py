"""The origin in float64: its tensors, the precisions that its code names, and dropout
turned off."""

from __future__ import annotations

import contextlib
import inspect
import sys
from pathlib import Path
from typing import Any, Iterator, Optional

import torch
from torch.overrides import TorchFunctionMode

from bakeoff_import.problems import is_users

# As functions of torch and of torch.nn.functional; in place with "_" behind.
_DROPOUTS = {
    f"{name}{end}"
    for name in ("dropout", "alpha_dropout", "feature_dropout", "feature_alpha_dropout")
    for end in ("", "_")
} | {"dropout1d", "dropout2d", "dropout3d"}
_NARROW = (torch.float32, torch.float16, torch.bfloat16)


def _wide(arg: Any) -> Any:
    if isinstance(arg, torch.dtype):
        return torch.float64 if arg in _NARROW else arg
    if isinstance(arg, (list, tuple)) and any(
        isinstance(one, torch.dtype) for one in arg
    ):
        return type(arg)(_wide(one) for one in arg)
    return arg


class Float64(TorchFunctionMode):  # type: ignore[misc]
    """Where the code says float32, float16 or bfloat16 it gets float64. Whether all
    numbers are finite is no question: what gives others is not proven."""

    def __torch_function__(
        self, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        kwargs = kwargs or {}
        if func in (torch.Tensor.float, torch.Tensor.half, torch.Tensor.bfloat16):
            return args[0].double()
        name = getattr(func, "__name__", "")
        if name in ("all", "any") and hasattr(next(iter(args), 0), "bakeoff_finite"):
            return args[0].bakeoff_finite  # a branch on it would depend on the data
        made = func(
            *map(_wide, args), **{key: _wide(value) for key, value in kwargs.items()}
        )
        if name in ("isfinite", "isinf", "isnan"):
            made.bakeoff_finite = name == "isfinite"
        return made


def uniform_shift(name: str, args: Any, kwargs: Any) -> Optional[float]:
    """Of torch.rand, of noise plus a number, and of the floor of that: what was added,
    the probability that the floor is 1. None: of anything else."""
    if name in ("rand", "rand_like"):
        return 0.0
    held = [getattr(one, "bakeoff_shift", None) for one in args[:2]]
    shift = next((one for one in held if one is not None), None)
    if shift is None or name.strip("_") not in ("add", "radd", "iadd", "floor"):
        return None
    if name.startswith("floor"):
        return float(shift)
    numbers = [one for one in args[:2] if isinstance(one, (int, float))]
    return float(shift + numbers[0]) if numbers else None


class WithoutDropout(TorchFunctionMode):  # type: ignore[misc]
    """Dropout of any spelling passes its input on; Bernoulli noise is its mean.
    Gradients are those of float64."""

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
        shift = uniform_shift(name, args, kwargs)
        if shift is not None:
            made = func(*args, **kwargs)
            if name.strip("_") == "floor":
                return made.fill_(shift)  # its mean
            made.bakeoff_shift = shift
            return made
        if name == "bernoulli_":
            return args[0].fill_(args[1] if len(args) > 1 else kwargs.get("p", 0.5))
        if name == "multi_head_attention_forward":  # what it calls is not seen here
            bound = inspect.signature(func).bind(*args, **kwargs)
            bound.arguments["dropout_p"] = 0.0
            return func(*bound.args, **bound.kwargs)
        if name == "scaled_dot_product_attention":
            kwargs.pop("dropout_p", None)
            args = (*args[:4], 0.0, *args[5:]) if len(args) > 4 else args
        if func in (torch.lstm, torch.gru, torch.rnn_tanh, torch.rnn_relu):
            args = (*args[:5], 0.0, *args[6:])
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


def in_float64(module: torch.nn.Module) -> torch.nn.Module:
    """The module in float64; its forward runs under Float64."""
    module = module.double().cpu()
    experts(module, "eager")
    forward = module.forward

    def wide(*args: Any, **kwargs: Any) -> Any:
        with float64_by_default(), Float64():
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
    take_along_dim takes the batch size for a number; the gather that it is does not."""
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
    """Custom functions are their formulas; the names of those that were applied."""
    seen: list[str] = []
    owner = torch.autograd.Function
    original = owner.__dict__["apply"]

    def apply(cls: Any, *args: Any, **kwargs: Any) -> Any:
        if cls.__module__.startswith("torch."):
            return original.__get__(None, cls)(*args, **kwargs)
        seen.append(cls.__name__)
        apart = cls.setup_context is not owner.setup_context
        return cls.forward(*args) if apart else cls.forward(_Context(), *args)

    owner.apply = classmethod(apply)
    try:
        yield seen
    finally:
        owner.apply = original


@contextlib.contextmanager
def seen_functions(folder: str) -> Iterator[list[tuple[str, str]]]:
    """Custom torch.autograd.Function classes that are applied meanwhile, with the
    user's line."""
    seen: list[tuple[str, str]] = []
    original = torch.autograd.Function.__dict__["apply"]

    def apply(cls: Any, *args: Any, **kwargs: Any) -> Any:
        if not cls.__module__.startswith("torch."):
            frame: Any = sys._getframe(1)
            while frame and not is_users(frame.f_code.co_filename, folder):
                frame = frame.f_back
            place = (
                f"{Path(frame.f_code.co_filename).name}:{frame.f_lineno}"
                if frame
                else ""
            )
            seen.append((cls.__name__, place))
        return original.__get__(None, cls)(*args, **kwargs)

    torch.autograd.Function.apply = classmethod(apply)
    try:
        yield seen
    finally:
        torch.autograd.Function.apply = original
