"""Loading a script file as a module of its own; what adapters of scripts share."""

from __future__ import annotations

import importlib.util
import itertools
import linecache
import os
import re
import sys
from abc import abstractmethod
from collections.abc import Collection
from pathlib import Path
from types import ModuleType
from typing import Any, Callable, Mapping, Optional, Sequence, Union

from bakeoff_runner.adapter import Adapter, AdapterError, Array, BuildRequest
from bakeoff_runner.defaults import Stated, stated_for

_serial = itertools.count(1)


def load_script(path: Union[str, Path]) -> ModuleType:
    """Runs the file as a module under a name no other build has used.

    Its ``if __name__ == "__main__":`` part does not run. The module is in
    ``sys.modules`` (dataclasses, pickling and torch.compile look there), so
    `unload_script` should be called when the build is dropped. The script's own folder
    is not put on ``sys.path``: a script stands alone. No byte code is written.
    """
    file = Path(path).resolve()
    if not file.is_file():
        raise AdapterError(f"script '{path}' does not exist")
    stem = re.sub(r"\W", "_", file.stem)
    name = f"bakeoff_script_{next(_serial)}_{stem}"
    spec = importlib.util.spec_from_file_location(name, file)
    if spec is None or spec.loader is None:
        raise AdapterError(f"script '{path}' is not a Python file")
    linecache.checkcache(str(file))
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    kept, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    finally:
        sys.dont_write_bytecode = kept
    return module


def unload_script(module: ModuleType) -> None:
    """Forgets a module made by `load_script`."""
    sys.modules.pop(module.__name__, None)


def check_options(
    options: Mapping[str, str], known: Collection[str], framework: str
) -> None:
    """Of a contender: an option that the adapter does not know is an error."""
    for option in sorted(set(options) - set(known)):
        raise AdapterError(f"unknown option '{option}' of framework {framework}")


def check_rows(first: int, count: int, rows: int) -> None:
    """That the data has the rows [first, first + count)."""
    if first + count > rows:
        raise AdapterError(f"the data has {rows} rows, not {first + count}")


def check_devices(file: str, asked: int, used: int, what: str) -> None:
    """That a script uses as many devices as its contender's setting says."""
    if used != asked:
        raise AdapterError(
            f"{file}: {what} on {used} device{'' if used == 1 else 's'}, but devices = "
            f"{asked} of its contender"
        )


def as_real(array: Array, dtype: str) -> Array:
    """Real numbers in this dtype; others as they are."""
    import numpy as np

    return array.astype(dtype) if np.issubdtype(array.dtype, np.floating) else array


class ScriptAdapter(Adapter):
    """An adapter that has one script at a time."""

    _script: Optional[ModuleType] = None

    @abstractmethod
    def _drop(self) -> None:
        """Forgets the build; calls `_drop_script`."""

    def close(self) -> None:
        self._drop()

    _stated = Stated()  # by the recipe, for a script of the user's own

    def _load_script(self, request: BuildRequest) -> ModuleType:
        stated = self._stated = stated_for(request.script)
        try:
            script = self._script = load_script(request.script)
        except ModuleNotFoundError as error:
            if not stated:
                raise
            raise AdapterError(
                f"{request.script.name}: {error}; install it there with pip, or name "
                "another environment beside `script`"
            ) from error
        if stated and not hasattr(script, "BATCH_SIZE"):
            script.BATCH_SIZE = stated.batch  # type: ignore[attr-defined]
        if request.batch is not None:
            script.BATCH_SIZE = request.batch  # type: ignore[attr-defined]
        return script

    def _loaded(self, request: BuildRequest, framework: str) -> Sequence[Any]:
        """What the script's `load_data` gives, one for each input."""
        if request.data is None:
            raise AdapterError(f"{framework} needs a data file")
        loaded = self._the_script().load_data(request.data)
        return loaded if isinstance(loaded, (tuple, list)) else (loaded,)

    def _arrays(
        self, request: BuildRequest, framework: str, dtype: str
    ) -> tuple[Array, ...]:
        """The same as NumPy arrays, real numbers in this dtype."""
        import numpy as np

        loaded = self._loaded(request, framework)
        return tuple(as_real(np.asarray(array), dtype) for array in loaded)

    def _provide(self, **functions: Optional[Callable[..., Any]]) -> None:
        """Functions that a script of the user's own need not define."""
        script = self._the_script()
        for name, function in functions.items():
            if self._stated and function and not hasattr(script, name):
                setattr(script, name, function)

    def _drop_script(self) -> None:
        if self._script is not None:
            unload_script(self._script)
        self._script = None

    def _the_script(self) -> ModuleType:
        if self._script is None:
            raise AdapterError("nothing is built")
        return self._script

    def _file(self) -> str:
        return os.path.basename(str(self._the_script().__file__))

    def _require(self, calls: Mapping[str, str], *names: str) -> None:
        """These functions of the script, or all; `calls` says how each is called."""
        for name in names or calls:
            if not callable(getattr(self._the_script(), name, None)):
                raise AdapterError(f"{self._file()} defines no {calls[name]}")
