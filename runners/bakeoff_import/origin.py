"""The user's file: loads it and gives the module that it makes."""

from __future__ import annotations

import copy
import importlib.util
import inspect
import os
import sys
import traceback
from pathlib import Path
from typing import Any

import torch

from bakeoff_import.problems import ImportProblem, is_users


def user_place(error: BaseException, folder: str) -> str:
    """'model.py:12': where the user's code raised the error, if it did."""
    place = ""
    for frame in traceback.extract_tb(error.__traceback__):
        if is_users(frame.filename, folder):
            place = f"{Path(frame.filename).name}:{frame.lineno}"
    return place


def load(file: str, name: str) -> torch.nn.Module:
    """The module that `name` of a file is, or makes when it is called."""
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
            f"the file cannot be run: {_said(error)}",
            "it must run by itself in the torch environment: python " + path.name,
            _place(error, folder, path),
        ) from error
    if not hasattr(source, name):
        known = [k for k, v in vars(source).items() if _makes_module(v, path.stem)]
        raise ImportProblem(
            f"{path.name} has no '{name}'",
            f"it has {', '.join(known)}"
            if known
            else "name a function that returns a module",
        )
    return _module(getattr(source, name), name, path)


def copied(module: torch.nn.Module) -> torch.nn.Module:
    """A module that lives in this process stays as it is."""
    if isinstance(module, torch.jit.ScriptModule):
        raise ImportProblem(
            "a ScriptModule has no Python code that can be exported",
            "give the module that it was made from",
        )
    try:
        return copy.deepcopy(module)
    except Exception as error:
        raise ImportProblem(
            f"the module cannot be copied: {_said(error)}",
            "keep in it only what copy.deepcopy can copy",
        ) from error


def source_folder(module: torch.nn.Module) -> str:
    """Where the user's own sources lie: a notebook's cells have names of their own."""
    inner = getattr(module, "_orig_mod", module)  # of torch.compile
    code = getattr(getattr(type(inner), "forward", None), "__code__", None)
    if code is None:
        return type(inner).__name__  # no file begins with it
    file: str = code.co_filename
    return os.path.dirname(file) or file


def _place(error: BaseException, folder: str, path: Path) -> str:
    if isinstance(error, SyntaxError) and error.filename == str(path):
        return f"{path.name}:{error.lineno}"
    return user_place(error, folder)


def _said(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"


def _makes_module(value: Any, file: str) -> bool:
    if getattr(value, "__module__", "") != file and not isinstance(
        value, torch.nn.Module
    ):
        return False
    return isinstance(value, torch.nn.Module) or callable(value)


def _module(found: Any, name: str, path: Path) -> torch.nn.Module:
    if isinstance(found, torch.nn.Module):
        return found
    if not callable(found):
        raise ImportProblem(
            f"'{name}' is neither a module nor a function",
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
    torch.manual_seed(0)
    try:
        made = found()
    except BaseException as error:
        raise ImportProblem(
            f"{name}() failed: {_said(error)}", "", user_place(error, str(path.parent))
        ) from error
    if not isinstance(made, torch.nn.Module):
        raise ImportProblem(
            f"{name}() gives {type(made).__name__}, not a torch.nn.Module",
            "return the module",
        )
    return made
