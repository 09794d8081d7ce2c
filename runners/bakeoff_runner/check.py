"""Tries a script of the user's own in its environment: ``bakeoff check``.

    python -m bakeoff_runner.check '{"framework": "torch", "script": "mine.py", ...}'

Imports the script as a worker does, makes its model and optimizer, and, if it is given
the data and weights of a recipe, trains two steps. Standard output is the frameworks';
the result, one JSON object, goes to the file ``result``: ``problem`` with ``line`` and
``remedy``, or none of them, and ``notes``.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import json
import os
import signal
import sys
import time
import traceback
from pathlib import Path
from types import FrameType
from typing import Any, Iterator, Mapping, Optional

from bakeoff_runner.adapter import Adapter, AdapterError, BuildRequest, load_adapter
from bakeoff_runner.script import load_script
from bakeoff_runner.source_check import Refused

# How long a script may take to be imported, once its framework is.
IMPORT_SECONDS = 10.0
_GUARD = 'put it under `if __name__ == "__main__":`'


class _TooLong(BaseException):
    """Not an Exception, which the script might catch."""


class _Network(BaseException):
    pass


def _line_in(path: Path, error: BaseException) -> Optional[int]:
    """The innermost line of the script that an error went through."""
    frames = traceback.extract_tb(error.__traceback__)
    lines = [f.lineno for f in frames if Path(f.filename) == path]
    return lines[-1] if lines else None


def _no_network(event: str, args: tuple[Any, ...]) -> None:
    if event in ("socket.getaddrinfo", "socket.gethostbyname"):
        raise _Network(f"asks for the host {args[0]!r}")
    if event == "socket.connect" and isinstance(args[1], tuple):
        raise _Network(f"connects to {args[1][0]!r}")


@contextlib.contextmanager
def _limited(seconds: float) -> Iterator[None]:
    def stop(number: int, frame: Optional[FrameType]) -> None:
        raise _TooLong

    signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


@contextlib.contextmanager
def _refusing(path: Path, what: str) -> Iterator[None]:
    """Turns whatever the script does wrong into a `Refused`."""
    try:
        yield
    except Refused:
        raise
    except _TooLong as error:
        raise Refused(
            f"{what} takes longer than {IMPORT_SECONDS:g} s",
            f"what trains, downloads or reads data must not run then: {_GUARD}",
            _line_in(path, error),
        ) from None
    except _Network as error:
        raise Refused(
            f"{what} reads from the network: it {error}",
            f"{_GUARD}: a contender's data comes from the recipe",
            _line_in(path, error),
        ) from None
    except SystemExit as error:
        raise Refused(
            f"{what} ends the process (exit code {error.code}): does it read the "
            "command line?",
            _GUARD,
            _line_in(path, error),
        ) from None
    except ModuleNotFoundError as error:
        raise Refused(
            f"{what} fails: {error}",
            f"a contender stands alone, without the files of its folder; install a "
            f"package by {sys.executable} -m pip install {error.name}",
            _line_in(path, error),
        ) from None
    except AdapterError as error:
        raise Refused(str(error), "see docs/own_scripts.md") from None
    except Exception as error:
        kind = type(error).__name__
        raise Refused(
            f"{what} fails: {kind}: {error}",
            "a worker calls it just so; correct it",
            _line_in(path, error),
        ) from None


def _import(path: Path, notes: list[str]) -> Any:
    sys.argv = [str(path)]
    printed = io.StringIO()
    start = time.monotonic()
    with (
        _refusing(path, "importing the script"),
        _limited(IMPORT_SECONDS),
        contextlib.redirect_stdout(printed),
    ):
        script = load_script(path)
    seconds = time.monotonic() - start
    if seconds > 2:
        notes.append(
            f"importing the script takes {seconds:.1f} s, at every start of a worker"
        )
    lines = len(printed.getvalue().splitlines())
    if lines:
        notes.append(f"it prints {lines} lines when it is imported; they go to its log")
    return script


def _parts(framework: str, script: Any, path: Path) -> None:
    """Makes the script's model and optimizer."""
    module = importlib.import_module(f"bakeoff_runner.adapters.{framework}_check")
    module.parts(script, lambda what: _refusing(path, what))


def _train(adapter: Adapter, given: Mapping[str, Any], path: Path) -> None:
    """Two steps on the recipe's own data, from its own weights."""
    layout = given.get("layout")
    request = BuildRequest(
        script=path,
        weights=Path(given["weights"]),
        data=Path(given["data"]),
        layout=Path(layout) if layout else None,
    )
    with _refusing(path, "the first step"):
        adapter.build(request)
        adapter.losses(2)


def check(given: Mapping[str, Any]) -> dict[str, Any]:
    path = Path(given["script"]).resolve()
    notes: list[str] = []
    try:
        adapter = load_adapter(given["framework"])
        adapter.import_framework(given.get("options", {}), given.get("threads", 1))
        sys.addaudithook(_no_network)
        script = _import(path, notes)
        _parts(given["framework"], script, path)
        if given.get("data"):
            _train(adapter, given, path)
    except Refused as refused:
        return {
            "problem": str(refused),
            "remedy": refused.remedy,
            "line": refused.line,
            "notes": notes,
        }
    return {"notes": notes}


def main() -> None:
    given = json.loads(sys.argv[1])
    result = json.dumps(check(given))
    partial = Path(given["result"] + ".part")
    partial.write_text(result, encoding="utf-8")
    os.replace(partial, given["result"])
    sys.stdout.flush()
    os._exit(0)  # whatever threads or processes the script has left


if __name__ == "__main__":
    main()
