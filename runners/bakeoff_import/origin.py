"""The user's file: loads it and gives the model that it makes."""

from __future__ import annotations

import importlib.util
import inspect
import os
import sys
import traceback
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Callable

from bakeoff_import.problems import ImportProblem, is_users


def user_place(error: BaseException, folder: str) -> str:
    """'model.py:12': where the user's code raised the error, if it did."""
    place = ""
    for frame in traceback.extract_tb(error.__traceback__):
        if is_users(frame.filename, folder):
            place = f"{Path(frame.filename).name}:{frame.lineno}"
    return place


@dataclass(frozen=True)
class Kind:
    """What a framework's models are."""

    type: Any
    noun: str  # "torch.nn.Module"
    environment: str
    seed: Callable[[int], Any]


def load(file: str, name: str, kind: Kind) -> Any:
    """The model that `name` of a file is, or makes when it is called."""
    path = Path(file).resolve()
    folder = str(path.parent)
    sys.path[:0] = [folder]
    os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise ImportProblem(f"{file} is no Python file", "name a file that ends in .py")
    source = importlib.util.module_from_spec(spec)
    sys.modules.setdefault(path.stem, source)
    try:
        spec.loader.exec_module(source)
    except BaseException as error:
        raise ImportProblem(
            f"the file cannot be run: {said(error)}",
            f"it must run by itself in the {kind.environment} environment: python "
            + path.name,
            _place(error, folder, path),
        ) from error
    if not hasattr(source, name):
        known = [k for k, v in vars(source).items() if _makes_model(v, path.stem, kind)]
        raise ImportProblem(
            f"{path.name} has no '{name}'",
            f"it has {', '.join(known)}"
            if known
            else f"name a function that returns a {kind.noun}",
        )
    return _made(getattr(source, name), name, path, kind)


def _place(error: BaseException, folder: str, path: Path) -> str:
    if isinstance(error, SyntaxError) and error.filename == str(path):
        return f"{path.name}:{error.lineno}"
    return user_place(error, folder)


def said(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"


def _makes_model(value: Any, file: str, kind: Kind) -> bool:
    if getattr(value, "__module__", "") != file and not isinstance(value, kind.type):
        return False
    return isinstance(value, kind.type) or callable(value)


def _made(found: Any, name: str, path: Path, kind: Kind) -> Any:
    if isinstance(found, kind.type):
        return found
    if not callable(found):
        raise ImportProblem(
            f"'{name}' is neither a {kind.noun} nor a function",
            "name a function that returns one",
        )
    missing = [
        p.name
        for p in inspect.signature(found).parameters.values()
        if p.default is p.empty and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)
    ]
    if missing:
        raise ImportProblem(
            f"'{name}' needs arguments: {', '.join(missing)}",
            f"add a function without arguments that calls {name}(...) and name that",
        )
    kind.seed(0)
    try:
        made = found()
    except ImportProblem:
        raise
    except BaseException as error:
        raise ImportProblem(
            f"{name}() failed: {said(error)}", "", user_place(error, str(path.parent))
        ) from error
    if not isinstance(made, kind.type):
        raise ImportProblem(
            f"{name}() gives {type(made).__name__}, not a {kind.noun}",
            "return the model",
        )
    return made
