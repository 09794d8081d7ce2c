"""What a step mark costs: PYTHONPATH=runners python mark.py.

The loop around it is measured too, and not taken off.
"""

from __future__ import annotations

import os
import statistics
import sys
import tempfile
import time

from bakeoff_runner.ring import create_ring, open_ring

BAR_NS = 1000
MARKS = 100_000


def main() -> int:
    shared = "/dev/shm" if os.path.isdir("/dev/shm") else None
    with tempfile.NamedTemporaryFile(dir=shared) as file:
        create_ring(file.name, 1 << 15)
        mark = open_ring(file.name)
        times = []
        for _ in range(20):
            begin = time.monotonic_ns()
            for _ in range(MARKS):
                mark()
            times.append((time.monotonic_ns() - begin) / MARKS)
    median = statistics.median(times)
    word = "ok" if median < BAR_NS else "MISSED"
    version = sys.version.split()[0]
    print(
        f"step mark, Python {version}: {median:.0f} ns (bar: below {BAR_NS} ns) {word}",
        flush=True,
    )
    return 0 if median < BAR_NS else 1


if __name__ == "__main__":
    sys.exit(main())
