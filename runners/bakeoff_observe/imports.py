"""Calls a function once a module has been imported, and times imports."""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import sys
import time
from types import ModuleType
from typing import Any, Callable, Optional, Sequence


class _Loader(importlib.abc.Loader):
    def __init__(
        self, inner: Any, done: Callable[[ModuleType, int, int], None]
    ) -> None:
        self._inner, self._done = inner, done

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> Any:
        return self._inner.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        begun = time.monotonic_ns()
        # The module is to look as if nothing had happened.
        spec = module.__spec__
        if spec is not None:
            spec.loader = self._inner
        module.__loader__ = self._inner
        self._inner.exec_module(module)
        self._done(module, begun, time.monotonic_ns())

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)


class AfterImport(importlib.abc.MetaPathFinder):
    """``then[name](module, begun, ended)``, once the module has been executed; ns."""

    def __init__(self, then: dict[str, Callable[[ModuleType, int, int], None]]) -> None:
        self._then = dict(then)
        self._asking: set[str] = set()  # the others, of which one may ask back
        sys.meta_path.insert(0, self)

    def find_spec(
        self,
        name: str,
        path: Optional[Sequence[str]],
        target: Optional[ModuleType] = None,
    ) -> Optional[importlib.machinery.ModuleSpec]:
        if name not in self._then or name in self._asking:
            return None
        self._asking.add(name)
        try:
            for finder in sys.meta_path:
                find = getattr(finder, "find_spec", None)
                spec: Optional[importlib.machinery.ModuleSpec] = (
                    find(name, path, target) if find is not None else None
                )
                if spec is not None:
                    if spec.loader is not None:
                        spec.loader = _Loader(spec.loader, self._done)
                    return spec
            return None
        finally:
            self._asking.discard(name)

    def _done(self, module: ModuleType, begun: int, ended: int) -> None:
        then = self._then.pop(module.__name__, None)
        if then is not None:
            then(module, begun, ended)
