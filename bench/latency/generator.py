"""An open-loop load generator: requests go out at moments fixed beforehand, whatever
becomes of those before them. Its own process, its own clock, two pipes.
"""

from __future__ import annotations

import os
import select
import subprocess
import time
from collections.abc import Sequence

AWAKE_S = 2e-4  # a sleep ends late: the rest is waited for awake
PATIENCE_S = 30


def latencies(server: Sequence[str], arrivals_ns: Sequence[int]) -> list[float]:
    """Milliseconds from each request's moment to its answer, in order of arrival.

    `server`: a command that answers a byte for each byte, after one when it is ready.
    """
    with subprocess.Popen(
        server, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0
    ) as process:
        assert process.stdin is not None and process.stdout is not None
        requests, answers = process.stdin.fileno(), process.stdout.fileno()
        if os.read(answers, 1) != b"!":
            raise RuntimeError(f"{server[0]} does not serve")
        try:
            return _drive(requests, answers, arrivals_ns)
        finally:
            process.stdin.close()
            process.wait(PATIENCE_S)


def _drive(requests: int, answers: int, arrivals_ns: Sequence[int]) -> list[float]:
    found: list[float] = []
    sent = 0
    zero = time.perf_counter() + 0.05
    end = zero + arrivals_ns[-1] / 1e9 + PATIENCE_S
    while len(found) < len(arrivals_ns):
        now = time.perf_counter()
        if now > end:
            raise RuntimeError(f"{len(arrivals_ns) - len(found)} requests unanswered")
        wait = float(PATIENCE_S)
        if sent < len(arrivals_ns):
            wait = zero + arrivals_ns[sent] / 1e9 - now
            if wait <= 0:
                os.write(requests, b"?")
                sent += 1
                continue
        # Awake for the last moment only while nothing is computed beside it.
        idle = sent == len(found)
        sleep = max(0.0, wait - AWAKE_S) if idle else wait
        if select.select([answers], [], [], sleep)[0]:
            for _ in os.read(answers, 1024):
                moment = zero + arrivals_ns[len(found)] / 1e9
                found.append(1e3 * (time.perf_counter() - moment))
    return found
