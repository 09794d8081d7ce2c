"""Models that the command line names, and live ones that this process serves."""

from __future__ import annotations

import contextlib
import json
import os
import select
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Callable, Optional

from bakeoff._program import BakeoffError

_TICK = 0.2  # seconds between two looks whether the program still lives
_INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "bool")


@dataclass
class Named:
    """A model as the command line takes it."""

    arguments: list[str]
    name: str  # of files that are made for it
    serve: Optional[Callable[[subprocess.Popen[str]], None]] = None
    recipe: bool = False  # a recipe, which is raced as it is
    knows_loss: bool = False  # perhaps: where it was compiled with one
    channels_last: bool = False  # its pictures are N,H,W,C; those of a workload N,C,H,W
    cleanup: contextlib.ExitStack = field(default_factory=contextlib.ExitStack)


def _size_text(tensor: Any) -> str:
    shape = tuple(int(size) for size in getattr(tensor, "shape", ()))
    if not shape:
        raise BakeoffError(
            "an example is no tensor with a batch first\n  give one tensor, a tuple of "
            "them, or a dict by the names of forward's parameters"
        )
    kind = str(getattr(tensor, "dtype", "")).rpartition(".")[2]
    dtype = "i32" if kind in _INTEGERS else "f32"
    return f"{dtype}[{','.join(map(str, shape))}]"


def input_types(example: Any) -> list[str]:
    """'f32[8,3,32,32]' of one tensor, of each of a tuple, or by name of a dict."""
    if isinstance(example, str):
        return [example]
    if isinstance(example, Mapping):
        return [f"{name}={_size_text(one)}" for name, one in example.items()]
    if isinstance(example, (list, tuple)):
        return [one if isinstance(one, str) else _size_text(one) for one in example]
    return [_size_text(example)]


def _is_a(model: Any, module: str, *names: str) -> bool:
    """By the names of its classes: nothing is imported to find out."""
    return any(
        base.__module__.partition(".")[0] == module and base.__name__ in names
        for base in type(model).__mro__
    )


def framework_of(model: Any) -> str:
    if _is_a(model, "keras", "Layer", "Model"):  # on torch it is a Module too
        return "keras"
    if _is_a(model, "torch", "Module"):
        return "torch"
    raise BakeoffError(
        f"a model of type {type(model).__name__} cannot be imported\n  give a "
        'torch.nn.Module, a keras.Model of Keras 3, "model.py:make", or a path to an '
        "ONNX file"
    )


def _torch_service(model: Any, loss: str) -> Any:
    from bakeoff_import.service import Service

    return Service(model)


@contextlib.contextmanager
def _torch_as_it_was(model: Any) -> Iterator[None]:
    """The importer sets what holds for the whole process."""
    import torch

    fast = torch.backends.mha.get_fastpath_enabled()
    threads, state = torch.get_num_threads(), torch.get_rng_state()
    try:
        yield
    finally:
        torch.backends.mha.set_fastpath_enabled(fast)
        torch.set_num_threads(threads)
        torch.set_rng_state(state)


def _keras_service(model: Any, loss: str) -> Any:
    from bakeoff_import.keras_service import KerasService

    return KerasService(model, loss)


def _keras_as_it_was(model: Any) -> Any:
    from bakeoff_import.keras_service import live

    return live(model)


# By framework: what answers the program's requests about a live model (and the loss of
# one that has none), and what keeps this process as it was.
SERVICES: dict[str, tuple[Callable[[Any, str], Any], Callable[[Any], Any]]] = {
    "torch": (_torch_service, _torch_as_it_was),
    "keras": (_keras_service, _keras_as_it_was),
}
KNOWS_INPUTS = ("keras",)  # its models say what they take, where they were built


@contextlib.contextmanager
def _importable(folder: str) -> Iterator[None]:
    sys.path.insert(0, folder)
    try:
        yield
    finally:
        sys.path.remove(folder)


def _accepted(
    listener: socket.socket, process: subprocess.Popen[str]
) -> Optional[socket.socket]:
    """The program's link; None: it ended before it asked for one."""
    while process.poll() is None:
        if select.select([listener], [], [], _TICK)[0]:
            return listener.accept()[0]
    return None


def _first_line(link: socket.socket) -> bytes:
    line = b""
    while not line.endswith(b"\n"):
        if not (byte := link.recv(1)):
            raise BakeoffError("the program ended before it asked for the model")
        line += byte
    return line


def _serving(
    model: Any, framework: str, listener: socket.socket
) -> Callable[[subprocess.Popen[str]], None]:
    make, as_it_was = SERVICES[framework]

    def serve(process: subprocess.Popen[str]) -> None:
        link = _accepted(listener, process)
        if link is None:
            return
        with link:
            hello = json.loads(_first_line(link))
            with _importable(hello["runner"]), as_it_was(model):
                from bakeoff_import.relay import serve as answer
                from bakeoff_runner.channel import Channel

                channel = Channel(os.dup(link.fileno()), os.dup(link.fileno()))
                with contextlib.suppress(BrokenPipeError), contextlib.closing(channel):
                    answer(make(model, hello.get("loss", "")), channel)

    return serve


def _live(model: Any, types: list[str]) -> Named:
    framework = framework_of(model)
    if not types and framework not in KNOWS_INPUTS:
        raise BakeoffError(
            "the example is missing\n  give what forward takes, the batch first"
        )
    name = type(model).__name__
    stack = contextlib.ExitStack()
    folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="bakeoff_"))
    listener = stack.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM))
    path = str(Path(folder) / "model")
    listener.bind(path)
    listener.listen(1)
    arguments = [name, "--socket", path, "--python", sys.executable]
    arguments += ["--framework", framework]
    for one in types:
        arguments += ["--input", one]
    keras = framework == "keras"
    return Named(
        arguments,
        name,
        _serving(model, framework, listener),
        knows_loss=keras,
        channels_last=keras,
        cleanup=stack,
    )


def named(model: Any, example: Any) -> Named:
    types = [] if example is None else input_types(example)
    if not isinstance(model, (str, os.PathLike)):
        return _live(model, types)
    text = os.fspath(model)
    file = Path(text.rpartition(":")[0] if ".py:" in text else text)
    arguments = [text]
    for one in types:
        arguments += ["--input", one]
    return Named(arguments, file.stem, recipe=file.suffix == ".toml")
