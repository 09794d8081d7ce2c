"""A process that trains in bursts of steps, asked for on standard input.

    python -m pairing.bursts MODULE FILE...

runs ``MODULE.train(bursts, *files)``. Each line on standard input asks for one burst of
so many steps; each is answered by a line of JSON with its time and a loss. With
``PLAIN_DROPOUT=off`` in the environment, ``MODULE.DROPOUT`` becomes 0.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
import time
from collections.abc import Iterator


class Bursts:
    """``for steps in bursts: <so many steps>; bursts.done(loss)``."""

    def __init__(self) -> None:
        self.steps = 0
        self._start = 0
        self._ns = 0
        # Frameworks may print; the answers have the first standard output for them.
        self._answers = os.fdopen(os.dup(1), "w")
        os.dup2(2, 1)

    def __iter__(self) -> Iterator[int]:
        while self.wait():
            yield self.steps

    def wait(self) -> bool:
        """Waits for the next request; False when there are no more."""
        line = sys.stdin.readline()
        if line:
            self.steps = int(line)
        self.start()
        return bool(line)

    def start(self) -> None:
        """Starts the clock again, where a burst begins later than its request."""
        self._start, self._ns = time.monotonic_ns(), 0

    def stop(self) -> None:
        """Stops the clock: after the completion barrier, before the loss is fetched."""
        self._ns = time.monotonic_ns() - self._start

    def done(self, loss: float, kind: str = "last") -> None:
        """Answers. The loss is of the "first" or "last" step, or their "mean"."""
        ns = self._ns or time.monotonic_ns() - self._start
        self._answers.write(json.dumps({"ns": ns, "loss": loss, "kind": kind}) + "\n")
        self._answers.flush()


def train(name: str, bursts: Bursts, files: list[str]) -> None:
    module = importlib.import_module(name)
    if os.environ.get("PLAIN_DROPOUT") == "off":
        module.DROPOUT = 0.0  # type: ignore[attr-defined]
    module.train(bursts, *files)


def main() -> None:
    name, *files = sys.argv[1:]
    train(name, Bursts(), files)


if __name__ == "__main__":
    main()
