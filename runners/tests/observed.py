"""Runs a script as the supervisor does, with its requests and answers."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any, Optional

import forks
from tiers import FULL

RUNNERS = Path(__file__).resolve().parent.parent
PATIENCE = 600  # seconds, after which a script hangs


def written(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


def bare(script: Path, *argv: str, **environment: str) -> str:
    """What the script prints when nobody looks."""
    variables = {**os.environ, "PYTHONPATH": "", **environment}
    done = forks.run([str(script), *argv], os.getcwd(), variables)
    assert done.returncode == 0, done.stderr
    return done.stdout


def interpreter(
    arguments: list[str], fds: list[int], environment: dict[str, str], folder: str
) -> subprocess.Popen[bytes]:
    """The process of a script as its user starts it."""
    code = (
        f"import os, sys; os.dup2({fds[0]}, 103); os.dup2({fds[1]}, 104);"
        "os.dup2(103, 3); os.dup2(104, 4);"
        "os.execv(sys.executable, [sys.executable, *sys.argv[1:]])"
    )
    return subprocess.Popen(
        [sys.executable, "-S", "-c", code, *arguments],
        env=environment,
        pass_fds=fds[:2],
        stdout=fds[2],
        stderr=fds[2],
        cwd=folder,
    )


def forked(
    arguments: list[str], fds: list[int], environment: dict[str, str], folder: str
) -> forks.Fork:
    """The same with its framework imported before, though it looks as if it was not."""
    with open(os.devnull, "rb") as nothing:
        ends = [nothing.fileno(), fds[2], fds[2], fds[0], fds[1]]
        return forks.Fork(arguments, ends, environment, folder)


class Observed:
    """One observed script; a context that ends it.

    alone: in an interpreter of its own; in the full tier all are. What frameworks read
    while they are imported has an effect there alone.
    """

    def __init__(
        self,
        script: Path | str,
        switches: Optional[dict[str, Any]] = None,
        argv: Optional[list[str]] = None,
        environment: Optional[dict[str, str]] = None,
        folder: Optional[Path] = None,
        notebook: bool = False,
        alone: bool = False,
    ) -> None:
        ours, theirs, printed = os.pipe(), os.pipe(), os.pipe()
        self._id = 0
        self.switches, self.notebook = switches or {}, notebook
        env = {
            **os.environ,
            "PYTHONPATH": str(RUNNERS / "bakeoff_observe" / "site"),
            "BAKEOFF_OBSERVE": str(RUNNERS),
            **(environment or {}),
        }
        start = interpreter if alone or FULL or not forks.available() else forked
        fds = [ours[0], theirs[1], printed[1]]
        arguments = [str(script), *(argv or [])]
        self.process = start(arguments, fds, env, str(folder or os.getcwd()))
        for fd in fds:
            os.close(fd)
        self._hangs = threading.Timer(PATIENCE, self.process.kill)
        self._hangs.start()
        self._requests = os.fdopen(ours[1], "w")
        self._answers = os.fdopen(theirs[0])
        self._printed = os.fdopen(printed[0])
        self.hello = json.loads(self._answers.readline())

    def run(
        self, steps: int, seconds: float = 120, facts: bool = False, watch: str = ""
    ) -> Any:
        self._id += 1
        request: dict[str, Any] = {"id": self._id, "op": "run", "steps": steps}
        request |= {"seconds": seconds, "facts": facts}
        if watch:
            request["watch"] = watch
        if self._id == 1:
            request |= {"switches": self.switches, "notebook": self.notebook}
        self._requests.write(json.dumps(request) + "\n")
        self._requests.flush()
        line = self._answers.readline()
        assert line, self.output()
        return json.loads(line)

    def end(self) -> Any:
        """Goes on to the script's own end."""
        answer = self.run(1 << 50)
        assert answer["ended"]
        return answer

    def output(self) -> str:
        """What an ended script printed, and what its framework warned of."""
        return self._printed.read()

    def __enter__(self) -> Observed:
        return self

    def __exit__(self, *args: Any) -> None:
        self._hangs.cancel()
        self._requests.close()
        self._answers.close()
        self.process.kill()
        self.process.wait()
        self._printed.close()
