"""Loading a script file as a module of its own."""

from __future__ import annotations

import importlib.util
import itertools
import linecache
import re
import sys
from pathlib import Path
from types import ModuleType
from typing import Union

from bakeoff_runner.adapter import AdapterError

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
