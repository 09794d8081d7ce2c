"""Runs a script as the supervisor does, with its requests and answers."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, Optional

import forks

RUNNERS = Path(__file__).resolve().parent.parent


def bare(script: Path, *argv: str, **environment: str) -> str:
    """What the script prints when nobody looks."""
    variables = {**os.environ, "PYTHONPATH": "", **environment}
    done = forks.run([str(script), *argv], os.getcwd(), variables)
    assert done.returncode == 0, done.stderr
    return done.stdout


class Observed:
    """One observed script; a context that ends it."""

    def __init__(
        self,
        script: Path | str,
        switches: Optional[dict[str, Any]] = None,
        argv: Optional[list[str]] = None,
        environment: Optional[dict[str, str]] = None,
        folder: Optional[Path] = None,
        notebook: bool = False,
    ) -> None:
        ours, theirs = os.pipe(), os.pipe()
        self._id = 0
        self.switches, self.notebook = switches or {}, notebook
        code = (
            f"import os, sys; os.dup2({ours[0]}, 103); os.dup2({theirs[1]}, 104);"
            "os.dup2(103, 3); os.dup2(104, 4);"
            "os.execv(sys.executable, [sys.executable, *sys.argv[1:]])"
        )
        env = {
            **os.environ,
            "PYTHONPATH": str(RUNNERS / "bakeoff_observe" / "site"),
            "BAKEOFF_OBSERVE": str(RUNNERS),
            **(environment or {}),
        }
        self.process = subprocess.Popen(
            [sys.executable, "-S", "-c", code, str(script), *(argv or [])],
            env=env,
            pass_fds=[ours[0], theirs[1]],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            cwd=folder,
        )
        os.close(ours[0])
        os.close(theirs[1])
        self._requests = os.fdopen(ours[1], "w")
        self._answers = os.fdopen(theirs[0])
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
        assert line, self.process.communicate()[0]
        return json.loads(line)

    def end(self) -> Any:
        """Goes on to the script's own end."""
        answer = self.run(1 << 50)
        assert answer["ended"]
        return answer

    def output(self) -> str:
        """What an ended script printed, without the warnings of frameworks."""
        assert self.process.stdout is not None
        return self.process.stdout.read()

    def __enter__(self) -> Observed:
        return self

    def __exit__(self, *args: Any) -> None:
        self._requests.close()
        self._answers.close()
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        if self.process.stdout is not None:
            self.process.stdout.close()
