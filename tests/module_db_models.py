"""The modules of torch's own tests, each as a function that makes one for the importer.

"nn_Conv2d__3" is the third of those that torch tests for nn.Conv2d. As a program it prints
the types of inputs of each as JSON: those that have a batch first, large ranks first.
"""

# mypy: disallow-subclassing-any=False, warn-return-any=False

from __future__ import annotations

import json
import sys
import types
import unittest
from collections.abc import Callable
from typing import Any

if "expecttest" not in sys.modules:  # torch's helpers of tests import it for a class
    stub = types.ModuleType("expecttest")
    stub.TestCase = unittest.TestCase  # type: ignore[attr-defined]
    sys.modules["expecttest"] = stub

import torch
from torch.testing._internal.common_modules import module_db
from torch.utils import _pytree as pytree

_FORWARD = "def forward(self, {names}):\n    return self.run([{names}])\n"


def _inputs(info: Any) -> list[Any]:
    torch.manual_seed(0)
    return info.module_inputs_func(
        info, device="cpu", dtype=torch.float32, requires_grad=False, training=True
    )


def _leaves(given: Any) -> tuple[list[Any], Any]:
    leaves, tree = pytree.tree_flatten(
        (given.forward_input.args, given.forward_input.kwargs)
    )
    return list(leaves), tree


def _made(info: Any, given: Any) -> torch.nn.Module:
    """The module behind one whose inputs are the tensors alone; the other arguments are
    those of the test. Of several outputs it gives the first."""
    made = given.constructor_input
    leaves, tree = _leaves(given)
    tensors = [i for i, leaf in enumerate(leaves) if isinstance(leaf, torch.Tensor)]
    names = ", ".join(f"x{i}" for i in tensors)
    space: dict[str, Any] = {}
    exec(_FORWARD.format(names=names), space)

    class Wrapped(torch.nn.Module):
        forward = space["forward"]

        def __init__(self) -> None:
            super().__init__()
            self.module = info.module_cls(*made.args, **made.kwargs)

        def run(self, given: list[torch.Tensor]) -> Any:
            at = dict(zip(tensors, given, strict=True))
            args, kwargs = pytree.tree_unflatten(
                [at.get(i, leaf) for i, leaf in enumerate(leaves)], tree
            )
            return pytree.tree_leaves(self.module(*args, **kwargs))[0]

    return Wrapped()


def _types(given: Any) -> list[str] | None:
    """None: not all inputs have the same number of rows, and more than one axis."""
    found = []
    tensors = [x for x in _leaves(given)[0] if isinstance(x, torch.Tensor)]
    for x in tensors:
        if x.ndim == 0 or len(x) != len(tensors[0]):
            return None
        kind = "f32" if x.is_floating_point() else "i32"
        found.append(f"{kind}[{','.join(map(str, (4, *x.shape[1:])))}]")
    return found if tensors and tensors[0].ndim > 1 else None


def _order(given: Any) -> tuple[bool, bool, int]:
    kwargs = given.constructor_input.kwargs
    whole = kwargs.get("reduction") == "none" or kwargs.get("batch_first") is True
    first = next(x for x in _leaves(given)[0] if isinstance(x, torch.Tensor))
    return not whole, "no_batch_dim" in str(given.desc), -first.ndim


def listed() -> dict[str, list[tuple[int, list[str]]]]:
    """By name: the number and the types of inputs of each that can be tried."""
    found = {}
    for info in module_db:
        rows = []
        for i, given in enumerate(_inputs(info)):
            if given.forward_input is not None and (typed := _types(given)):
                rows.append((_order(given), i, typed))
        name = info.name.replace(".", "_")
        if rows:
            found[name] = [(i, typed) for _, i, typed in sorted(rows)]
    return found


def __getattr__(name: str) -> Callable[[], torch.nn.Module]:
    kind, _, number = name.rpartition("__")
    info = next((m for m in module_db if m.name.replace(".", "_") == kind), None)
    if info is None:
        raise AttributeError(name)
    return lambda: _made(info, _inputs(info)[int(number)])


if __name__ == "__main__":
    print(json.dumps(listed()))
