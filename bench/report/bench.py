"""How long `bakeoff report` takes: records read, everything recomputed, table and HTML.

    python3 bench/report/bench.py BUILD [--runs 5] [--quick]

The run directory is made up (recorded_run.cc): every contender of a recipe in 12 heats.
The bar, 1 s, is for the 10 contenders of the CNN. Steps of 0.3 ms leave a hundred times
as many marks; that figure stands beside it.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BAR_S = 1.0
HEATS = 12


def seconds(build: Path, recipe: str, step_ms: float, runs: int) -> tuple[str, float]:
    """What was reported, and the median time."""
    with tempfile.TemporaryDirectory() as directory:
        folder = f"{directory}/run"
        made = subprocess.run(
            [
                str(build / "bench" / "report" / "recorded_run"),
                str(ROOT / "recipes" / f"{recipe}.toml"),
                folder,
                str(HEATS),
                str(step_ms),
            ],
            check=True,
            stdout=subprocess.PIPE,
            text=True,
        )
        times = []
        for _ in range(runs):
            begin = time.monotonic()
            command = [str(build / "bakeoff"), "report", folder]
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
            times.append(time.monotonic() - begin)
    return made.stdout.strip(), statistics.median(times)


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("build", type=Path)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args()
    runs = 1 if options.quick else options.runs
    what, median = seconds(options.build, "mnist_cnn", 80, runs)
    word = "ok" if median < BAR_S else "MISSED"
    print(f"report of {what}: {median:.2f} s (bar: below {BAR_S:g} s) {word}")
    what, light = seconds(options.build, "mlp_small", 0.3, runs)
    print(f"report of {what}, steps of 0.3 ms and up: {light:.2f} s (no bar)")
    return 0 if median < BAR_S else 1


if __name__ == "__main__":
    sys.exit(main())
