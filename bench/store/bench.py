"""The store with many runs: runs imported a second, queries of histories, their page.

    PYTHONPATH=. python3 bench/store/bench.py BUILD/bakeoff [--runs 100000] [--in DIR] [--postgresql]

The runs are made up (tests/cli/made_runs.py): 25 recipes on two machines, torch and jax in
each, so 100 series of 1,000 to 3,000 points. Bars for 100,000 of them: 500 runs imported
a second, a query below 100 ms, the page below 2 s. --in: a folder for 2 GB of small files;
in memory (/dev/shm) the disk is not measured. The queries are those of `bakeoff history`.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.cli import made_runs
from tests.cli.postgres import Server

RECIPES = 25
IMPORT_BAR = 500.0  # runs a second
QUERY_BAR = 0.1  # s
PAGE_BAR = 2.0  # s


def make(root: Path, runs: int) -> None:
    chance = random.Random(1)
    for number in range(runs):
        recipe = number % RECIPES
        host = {**made_runs.HOST, "cpus": 2 if chance.random() < 0.7 else 4}
        slow = 1.06 if recipe % 5 == 0 and number > runs // 2 else 1.0
        run = made_runs.Run(
            {
                "torch": (5 + recipe) * slow * (1 + chance.gauss(0, 0.02)),
                "jax": (6 + recipe) * (1 + chance.gauss(0, 0.02)),
            },
            number=number // RECIPES,
            recipe=f"net{recipe:02}",
            batch=50 + recipe,
            host=host,
            commit=f"{number // 500:040x}",
            versions={"torch": "2.12.0" if number < runs * 0.7 else "2.13.0"},
        )
        made_runs.write(root / f"{number // 1000:04}" / f"run-{number:06}", run)


class Program:
    def __init__(self, program: Path, home: Path, database: str) -> None:
        self.program = program
        self.variables = {**os.environ, "BAKEOFF_HOME": str(home)}
        self.variables.pop("BAKEOFF_DB", None)
        if database:
            self.variables["BAKEOFF_DB"] = database

    def seconds(self, *words: str | Path) -> tuple[float, str]:
        begin = time.monotonic()
        done = subprocess.run(
            [str(self.program), *map(str, words)],
            env=self.variables,
            check=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        return time.monotonic() - begin, done.stdout

    def median(self, *words: str | Path) -> float:
        return statistics.median(self.seconds(*words)[0] for _ in range(5))


def told(what: str, figure: str, bar: str, ok: bool) -> bool:
    print(f"{what}: {figure} (bar: {bar}) {'ok' if ok else 'MISSED'}", flush=True)
    return ok


def measure(program: Program, runs: Path, count: int, about: str, page: Path) -> bool:
    seconds, out = program.seconds("store", "import", runs)
    assert out.startswith(f"{count} runs read"), out
    rate = count / seconds
    fine = told(f"import of {count:,} runs{about}", f"{rate:.0f} runs/s",
                f"at least {IMPORT_BAR:g}", rate >= IMPORT_BAR)  # fmt: skip
    again, out = program.seconds("store", "import", runs)
    assert f"{count} unchanged" in out, out
    print(f"the same import again{about}: {again:.1f} s")
    for what, words in (
        ("list of runs", ("store", "list")),
        ("history of one series", ("history", "net07 torch")),
        ("histories of a recipe as JSON", ("history", "net07", "--json")),
        ("list of all series", ("history",)),
    ):
        took = program.median(*words)
        fine &= told(f"{what}{about}", f"{1e3 * took:.0f} ms",
                     f"below {1e3 * QUERY_BAR:g} ms", took < QUERY_BAR)  # fmt: skip
    took = program.median("history", "--html", page)
    size = page.stat().st_size / 1e6
    fine &= told(f"page of histories, {size:.1f} MB{about}", f"{took:.2f} s",
                 f"below {PAGE_BAR:g} s", took < PAGE_BAR)  # fmt: skip
    return fine


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("program", type=Path)
    parser.add_argument("--runs", type=int, default=100_000)
    parser.add_argument("--in", dest="folder", type=Path)
    parser.add_argument("--postgresql", action="store_true", help="measure it, too")
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args()
    count = 2000 if options.quick else options.runs
    base = Path(tempfile.mkdtemp(prefix="bakeoff_store_", dir=options.folder))
    try:
        make(base / "runs", count)
        program = options.program.resolve()
        page = base / "page.html"
        sqlite = Program(program, base / "home", "")
        fine = measure(sqlite, base / "runs", count, "", page)
        if options.postgresql:
            server = Server()
            try:
                server.start()
                address = server.new_database("bench")
                other = Program(program, base / "home2", address)
                fine &= measure(other, base / "runs", count, ", PostgreSQL", page)
            finally:
                server.close()
    finally:
        shutil.rmtree(base, ignore_errors=True)
    return 0 if fine else 1


if __name__ == "__main__":
    sys.exit(main())
