"""Processes that have imported a framework already, as they are forks of one that has.

python forks.py FILE...

Runs pytest on each file in a process of its own. Those, and the processes that tests
start (`Fork`), are forks of this one, which imports what its environment has and does
nothing with it: imports take longer than what is tested.
Exit status: pytest's; 5 where every file skipped itself.
"""

from __future__ import annotations

import atexit
import gc
import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import json
import os
import runpy
import select
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Any

FULL = bool(os.environ.get("BAKEOFF_FULL_TESTS"))
DOOR = "BAKEOFF_FORKS"  # names the socket at which forks are asked for
FRAMEWORKS = (
    ("numpy", "safetensors.numpy"),
    (
        "torch",
        "torch._dynamo.backends.debugging",
        "torch._inductor.compile_fx",
        "safetensors.torch",
    ),
    ("tensorflow",),
    ("tf_keras",),
    ("jax", "jax.numpy", "optax"),
    ("onnxruntime", "onnx"),
)
NO_TESTS = 5  # of pytest
# What a fork of an observed script imports as if for the first time, each with what it
# imports itself, and what it does import for the first time, as that copies names.
AGAIN: dict[str, tuple[str, ...]] = {
    "numpy": (),
    "torch": (),
    "jax": (),
    "jax.numpy": (),
    "tensorflow": ("keras",),
    "tf_keras": ("tensorflow",),
    "keras": ("jax", "torch", "tensorflow"),
}
ANEW = ("optax", "chex")


class Fork:
    """Runs `python arguments`: -m MODULE, -c CODE or SCRIPT, and what follows it.

    fds: what its descriptors 0, 1 and so on are.
    """

    def __init__(
        self,
        arguments: Sequence[str],
        fds: Sequence[int],
        environment: Mapping[str, str],
        folder: str | Path = "/",
    ) -> None:
        self._line = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._line.connect(os.environ[DOOR])
        told = {
            "arguments": list(arguments),
            "environment": dict(environment),
            "folder": str(folder),
        }
        socket.send_fds(self._line, [json.dumps(told).encode()], list(fds))
        self.pid = int(self._line.recv(32))
        self.returncode: int | None = None

    def wait(self) -> int:
        if self.returncode is None:
            self.returncode = int(self._line.recv(32) or b"1")
            self._line.close()
        return self.returncode

    def kill(self) -> None:
        try:
            os.kill(self.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass


def available() -> bool:
    return DOOR in os.environ


def run(
    arguments: Sequence[str],
    folder: str | Path = "/",
    environment: Mapping[str, str] | None = None,
) -> subprocess.CompletedProcess[str]:
    """subprocess.run of this Python, by a fork where that can be had.

    environment: this process's own if none is named. What frameworks read while they
    are imported has no effect on a fork.
    """
    variables = os.environ if environment is None else environment
    if not available():
        return subprocess.run(
            [sys.executable, *arguments],
            cwd=folder,
            env=variables,
            capture_output=True,
            text=True,
            check=False,
        )
    with (
        open(os.devnull, "rb") as nothing,
        tempfile.TemporaryFile("w+") as out,
        tempfile.TemporaryFile("w+") as err,
    ):
        files: list[IO[Any]] = [nothing, out, err]
        fork = Fork(arguments, [f.fileno() for f in files], variables, folder)
        status = fork.wait()
        out.seek(0)
        err.seek(0)
        return subprocess.CompletedProcess(
            list(arguments), status, out.read(), err.read()
        )


class _Again(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Imports what is there already, so that those who wait for its import see it."""

    def __init__(self) -> None:
        self.there = {
            name: sys.modules.pop(name) for name in AGAIN if name in sys.modules
        }
        sys.meta_path.insert(0, self)

    def find_spec(self, name: str, *_: Any) -> Any:
        if name not in self.there:
            return None
        package = hasattr(self.there[name], "__path__")
        return importlib.machinery.ModuleSpec(name, self, is_package=package)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> Any:
        module = self.there.pop(spec.name)
        self._spec = module.__spec__
        return module

    def exec_module(self, module: Any) -> None:
        module.__spec__ = self._spec
        module.__loader__ = self._spec.loader
        for name in AGAIN[module.__name__]:
            if name in self.there:
                importlib.import_module(name)


def _customize() -> None:
    """What a new interpreter does before an observed script, with nothing imported."""
    for name in list(sys.modules):
        if name.split(".")[0] in ANEW:
            del sys.modules[name]
    _Again()
    sys.modules.pop("sitecustomize", None)
    importlib.import_module("sitecustomize")


def _become(told: Mapping[str, Any], fds: Sequence[int]) -> int:
    """The process that was asked for; its exit status."""
    for number, fd in enumerate([os.dup2(fd, 100 + i) for i, fd in enumerate(fds)]):
        os.dup2(fd, number)
        os.close(fd)
    for fd in fds:
        if fd >= len(fds):
            os.close(fd)
    atexit._clear()  # they are of the process before
    os.environ.clear()
    os.environ.update(told["environment"])
    os.chdir(told["folder"])
    paths = os.environ.get("PYTHONPATH", "").split(":")
    first, *rest = told["arguments"]
    beside = told["folder"] if first in ("-m", "-c") else str(Path(first).parent)
    sys.path[:1] = [beside, *(path for path in paths if path)]
    if "BAKEOFF_OBSERVE" in os.environ:
        _customize()
    try:
        if first == "-m":
            sys.argv = rest
            runpy.run_module(rest[0], run_name="__main__", alter_sys=True)
        elif first == "-c":
            sys.argv = ["-c", *rest[1:]]
            exec(compile(rest[0], "<string>", "exec"), {"__name__": "__main__"})
        else:
            sys.argv = [first, *rest]
            runpy.run_path(first, run_name="__main__")
    except SystemExit as end:
        if end.code is None or isinstance(end.code, int):
            return end.code or 0
        print(end.code, file=sys.stderr)
        return 1
    except BaseException:
        sys.excepthook(*sys.exc_info())  # type: ignore[arg-type]
        return 1
    return 0


def _serve(door: socket.socket) -> None:
    """Forks a keeper, which forks the process and tells its number and its end."""
    line, _ = door.accept()
    message, fds, _, _ = socket.recv_fds(line, 1 << 20, 8)
    if os.fork() == 0:
        door.close()
        process = os.fork()
        if process == 0:
            line.close()
            status = _become(json.loads(message), fds)
            atexit._run_exitfuncs()
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(status)
        for fd in fds:
            os.close(fd)
        line.send(str(process).encode())
        ended = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
        try:
            line.send(str(ended).encode())
        except BrokenPipeError:
            pass  # nobody waits for it
        os._exit(0)
    line.close()
    for fd in fds:
        os.close(fd)


def _test(file: str, door: socket.socket) -> int:
    """Runs pytest on a file, and meanwhile forks what it asks for."""
    tests = os.fork()
    if tests == 0:
        door.close()
        import pytest

        os._exit(pytest.main(["-q", "-p", "no:cacheprovider", file]))
    while True:
        ended, status = os.waitpid(-1, os.WNOHANG)
        if ended == tests:
            return os.waitstatus_to_exitcode(status)
        if ended == 0 and select.select([door], [], [], 0.02)[0]:
            _serve(door)


def main(files: Sequence[str]) -> int:
    with tempfile.TemporaryDirectory() as folder:
        results = _all(files, Path(folder))
    failed = {file: code for file, code in results.items() if code not in (0, NO_TESTS)}
    for file, code in failed.items():
        print(f"{file}: pytest ended with {code}")
    if failed:
        return 1
    return 0 if 0 in results.values() else NO_TESTS


def _all(files: Sequence[str], folder: Path) -> dict[str, int]:
    """The exit status of the tests of each file."""
    # A process with threads must not fork.
    os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1")
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    if not FULL and importlib.util.find_spec("jax"):
        # Compiles in less time, and what one process has compiled the next one reads.
        os.environ.setdefault("XLA_FLAGS", "--xla_cpu_use_fusion_emitters=false")
        os.environ.setdefault("JAX_DISABLE_MOST_OPTIMIZATIONS", "1")
        os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(folder / "jax"))
        os.environ["JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"] = "0"
        os.environ["JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES"] = "-1"
    there = [names for names in FRAMEWORKS if importlib.util.find_spec(names[0])]
    for name in [name for names in there for name in names]:
        importlib.import_module(name)
    if importlib.util.find_spec("keras"):  # its backend is the one that is there
        backends = [names[0] for names in there if names[0] in AGAIN["keras"]]
        os.environ["KERAS_BACKEND"] = backends[0]
        importlib.import_module("keras")
        del os.environ["KERAS_BACKEND"]
    gc.freeze()  # what was imported is no garbage of any fork: collecting takes no time
    os.environ[DOOR] = str(folder / "door")
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as door:
        door.bind(os.environ[DOOR])
        door.listen(16)
        return {file: _test(file, door) for file in files}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
