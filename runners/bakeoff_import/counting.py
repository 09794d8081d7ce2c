"""Modules of any size to be counted: their parameters take no memory, one number stands
for all of each. Buffers hold their numbers, which an import may have to look at."""

from __future__ import annotations

import contextlib
from typing import Any, Iterator

import torch


@contextlib.contextmanager
def without_memory() -> Iterator[None]:
    """Parameters that are registered meanwhile are on the meta device."""
    original = torch.nn.Module.register_parameter

    def register(self: Any, name: str, param: Any) -> None:
        # A tied one is there already, and stays the same object.
        if type(param) is torch.nn.Parameter and not param.is_meta:
            param = torch.nn.Parameter(param.to("meta"), param.requires_grad)
        original(self, name, param)

    torch.nn.Module.register_parameter = register
    try:
        yield
    finally:
        torch.nn.Module.register_parameter = original


def filled(module: torch.nn.Module) -> torch.nn.Module:
    """Parameters of the meta device become views of one number in float64."""
    made: dict[int, torch.nn.Parameter] = {}
    for part in module.modules():
        for name, held in list(part._parameters.items()):
            if held is not None and held.is_meta:
                one = torch.full((), 0.5, dtype=torch.float64).expand(held.shape)
                new = made.setdefault(
                    id(held), torch.nn.Parameter(one, held.requires_grad)
                )
                setattr(part, name, new)
    return module
