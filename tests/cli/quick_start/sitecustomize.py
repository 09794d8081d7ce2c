"""Workers of the everyday tier start in less time (support.quick_start).

Imports make hundreds of thousands of objects, none of them garbage: collecting as
often as Python does takes an eighth of what imports take.

`import torch` and the first optimizer import PyTorch's compiler and its tables of
shapes, half of what a worker's start takes (1.9 s of a processor instead of 3.9),
and an eager training asks them for nothing. They are imported where they are asked:
what asks for more than `torch._dynamo.disable`, as `torch.compile` does, gets them
as they are. The full tier starts workers as users do.
"""

from __future__ import annotations

import gc
import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import sys
import types
from collections.abc import Callable, Sequence
from typing import Any

COMPILER = "torch._dynamo"
SHAPES = "torch._meta_registrations"


class Compiler(types.ModuleType):
    """torch._dynamo until something is asked that needs it; eager code stays as it is."""

    def disable(
        self, fn: Callable[..., Any] | None = None, *_: Any, **__: Any
    ) -> Callable[..., Any] | None:
        return fn

    def graph_break(self, *_: Any) -> None:
        pass

    def __getattr__(self, name: str) -> Any:
        # What walks through all modules asks each for __file__ and its like.
        if name.startswith("__") and name != "__path__":
            raise AttributeError(name)
        if sys.modules.get(COMPILER) is self:
            del sys.modules[COMPILER]
        hasattr(importlib.import_module(SHAPES), "aten")  # the first look runs it
        return getattr(importlib.import_module(COMPILER), name)


class Later(importlib.abc.MetaPathFinder):
    """Finds the tables of shapes, which the first look at one of their names runs."""

    def find_spec(
        self,
        name: str,
        path: Sequence[str] | None = None,
        target: types.ModuleType | None = None,
    ) -> importlib.machinery.ModuleSpec | None:
        if name == "torch":
            sys.modules[COMPILER] = Compiler(COMPILER)
        if name != SHAPES:
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path, target)
        if spec is not None and spec.loader is not None:
            spec.loader = importlib.util.LazyLoader(spec.loader)
        return spec


gc.set_threshold(100_000, 20, 20)
sys.meta_path.insert(0, Later())
