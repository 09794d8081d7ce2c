"""What the plain loops are driven by: bursts of steps, asked for on standard input.

    python bursts.py torch_plain data.safetensors weights.safetensors STEPS

runs ``torch_plain.train(data, weights, bursts)``. Each line on standard input asks for
one burst of STEPS steps; each is answered by a line of JSON with its time and a loss.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
import time
from collections.abc import Iterator


class Bursts:
    """``for _ in bursts: <steps steps>; bursts.done(loss)``."""

    def __init__(self, steps: int) -> None:
        self.steps = steps
        self._start = 0
        # Frameworks may print; the answers have the first standard output for them.
        self._answers = os.fdopen(os.dup(1), "w")
        os.dup2(2, 1)

    def __iter__(self) -> Iterator[int]:
        while self.wait():
            yield self.steps

    def wait(self) -> bool:
        """Waits for the next request; False when there are no more."""
        line = sys.stdin.readline()
        self._start = time.monotonic_ns()
        return bool(line)

    def done(self, loss: float, kind: str = "last") -> None:
        """After the completion barrier. `kind` of loss: of the last step, or mean."""
        ns = time.monotonic_ns() - self._start
        self._answers.write(json.dumps({"ns": ns, "loss": loss, "kind": kind}) + "\n")
        self._answers.flush()


def main() -> None:
    module, data, weights, steps = sys.argv[1:]
    importlib.import_module(module).train(data, weights, Bursts(int(steps)))


if __name__ == "__main__":
    main()
