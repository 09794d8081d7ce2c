"""How long `bakeoff --version` takes, process start to exit.

    python3 bench/startup/bench.py build/release/bakeoff [--runs 200]

Prints the median, the quartiles and what /bin/true takes the same way (the floor: fork,
exec, wait). Exit status 1 when the median is above the limit.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import time

LIMIT_MS = 10.0


def milliseconds(command: list[str], runs: int) -> list[float]:
    null = os.open(os.devnull, os.O_WRONLY)
    quiet = [(os.POSIX_SPAWN_DUP2, null, 1), (os.POSIX_SPAWN_DUP2, null, 2)]
    times = []
    for _ in range(runs):
        begin = time.monotonic_ns()
        pid = os.posix_spawn(command[0], command, os.environ, file_actions=quiet)
        status = os.waitpid(pid, 0)[1]
        times.append((time.monotonic_ns() - begin) / 1e6)
        if status != 0:
            sys.exit(f"{' '.join(command)} failed with wait status {status}")
    os.close(null)
    return times


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--quick", action="store_true", help="20 runs")
    options = parser.parse_args()
    runs = 20 if options.quick else options.runs
    floor = statistics.median(milliseconds(["/bin/true"], runs))
    times = milliseconds([options.program, "--version"], runs)
    low, median, high = statistics.quantiles(times, n=4)
    verdict = "ok" if median < LIMIT_MS else "MISSED"
    print(
        f"bakeoff --version: {median:.2f} ms, quartiles {low:.2f} to {high:.2f}, "
        f"/bin/true {floor:.2f} (bar: below {LIMIT_MS:g} ms) {verdict}"
    )
    return 0 if median < LIMIT_MS else 1


if __name__ == "__main__":
    sys.exit(main())
