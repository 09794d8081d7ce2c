"""Sizes that the user's code takes out of a trace by ``len`` and ``int``.

Both must give Python's own integer, so that an export takes the batch size for a
number. While a module is traced again, its files have a ``len`` and an ``int`` of
their own, which keep the symbol."""

from __future__ import annotations

import builtins
import contextlib
import sys
from typing import Any, Iterator

import torch

from bakeoff_import.problems import is_users

_TRIED = (2, 3, 5, 1024)  # numbers of rows


def _whole(size: Any) -> Any:
    """c N, where a computed size is that for any N; else Python's integer."""
    expression = size.node.expr
    symbols = list(expression.free_symbols)
    if len(symbols) != 1:
        return builtins.int(size)
    tried = [builtins.int(expression.subs(symbols[0], n)) for n in _TRIED]
    count, rest = divmod(tried[0], _TRIED[0])
    if rest or tried != [count * n for n in _TRIED]:
        return builtins.int(size)
    env = size.node.shape_env
    made = count * symbols[0]
    hint = count * builtins.int(env.backed_var_to_val[symbols[0]])
    return env.create_symintnode(made, hint=hint)


class _Integers(type):
    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        if len(args) == 1 and isinstance(args[0], (torch.SymFloat, torch.SymInt)):
            return _whole(args[0])
        return builtins.int(*args, **kwargs)

    def __instancecheck__(cls, one: Any) -> bool:
        return isinstance(one, builtins.int)


class _Int(int, metaclass=_Integers):
    """Python's int, which takes a symbol as it is."""


def _len(one: Any) -> Any:
    return one.shape[0] if isinstance(one, torch.Tensor) else builtins.len(one)


@contextlib.contextmanager
def kept_symbolic(module: torch.nn.Module, folder: str) -> Iterator[None]:
    """In the files of the model `len` and `int` keep the symbol of the batch size."""
    kinds = {type(part).__module__ for part in module.modules()}
    files = {
        name
        for name, held in list(sys.modules.items())
        if is_users(getattr(held, "__file__", None) or "", folder)
    }
    owners = [
        sys.modules[name].__dict__
        for name in kinds | files
        if name in sys.modules and not name.startswith("torch.")
    ]
    names = {"len": _len, "int": _Int}
    before = [{key: owner[key] for key in names if key in owner} for owner in owners]
    for owner, own in zip(owners, before):
        owner.update({key: held for key, held in names.items() if key not in own})
    try:
        yield
    finally:
        for owner, own in zip(owners, before):
            for key in names.keys() - own.keys():
                owner.pop(key, None)
