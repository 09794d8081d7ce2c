"""A small supervisor for the tests: one worker process, requests and answers."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
from pathlib import Path
from typing import Any, Optional

import forks

RUNNERS = Path(__file__).resolve().parents[1]


def started(
    arguments: list[str], environment: dict[str, str], requests: int, answers: int
) -> subprocess.Popen[bytes]:
    def place() -> None:
        # Lifted first, so that neither target overwrites the other's source.
        source, target = os.dup(requests), os.dup(answers)
        os.dup2(source, 3)
        os.dup2(target, 4)

    return subprocess.Popen(
        [sys.executable, *arguments],
        preexec_fn=place,
        close_fds=False,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )


def forked(
    arguments: list[str], environment: dict[str, str], requests: int, answers: int
) -> forks.Fork:
    """The same with its framework imported; what it prints is printed here."""
    nothing = os.open(os.devnull, os.O_RDONLY)
    try:
        fds = [nothing, 1, 2, requests, answers]
        return forks.Fork(arguments, fds, environment, RUNNERS)
    finally:
        os.close(nothing)


class WorkerProcess:
    """Starts ``python -m bakeoff_runner`` with the control channel on fds 3 and 4."""

    def __init__(self, framework: str = "fake", ring: Optional[Path] = None) -> None:
        request_read, self._request = os.pipe()
        self._answer, answer_write = os.pipe()
        arguments = ["-m", "bakeoff_runner", "--framework", framework]
        if ring is not None:
            arguments += ["--ring", str(ring)]
        environment = {**os.environ, "PYTHONPATH": f"{RUNNERS}:{RUNNERS / 'tests'}"}

        self.process = (
            forked(arguments, environment, request_read, answer_write)
            if framework != "fake" and forks.available()
            else started(arguments, environment, request_read, answer_write)
        )
        os.close(request_read)
        os.close(answer_write)
        self._received = b""
        self._id = 0
        self.hello = self.receive()

    def __enter__(self) -> WorkerProcess:
        return self

    def __exit__(self, *_: object) -> None:
        self.hang_up()
        self.process.kill()
        if isinstance(self.process, subprocess.Popen):
            self.process.communicate()
        else:
            self.process.wait()
        os.close(self._answer)

    def hang_up(self) -> None:
        if self._request >= 0:
            os.close(self._request)
            self._request = -1

    def send_line(self, line: str) -> None:
        os.write(self._request, line.encode() + b"\n")

    patience = 600.0  # seconds for an answer: a net against hanging

    def receive(self) -> dict[str, Any]:
        while b"\n" not in self._received:
            ready, _, _ = select.select([self._answer], [], [], self.patience)
            assert ready, "the worker does not answer"
            chunk = os.read(self._answer, 65536)
            assert chunk, f"the worker is gone: {self.process.wait()}"
            self._received += chunk
        line, self._received = self._received.split(b"\n", 1)
        answer = json.loads(line, parse_constant=_refuse)
        assert isinstance(answer, dict)
        return answer

    def ask(self, op: str, **fields: Any) -> dict[str, Any]:
        """One request and its answer, whose id is checked."""
        self._id += 1
        self.send_line(json.dumps({"id": self._id, "op": op, **fields}))
        answer = self.receive()
        assert answer["id"] == self._id
        return answer

    def ready(self, **options: str) -> WorkerProcess:
        """Imports with these options, and builds."""
        assert self.ask("import", options=options, threads=1)["ok"]
        assert self.ask("build", script="none.py")["ok"]
        return self


def _refuse(constant: str) -> None:
    raise AssertionError(f"{constant} is not strict JSON")
