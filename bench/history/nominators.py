"""Change points in histories with known truth: Bakeoff's, those of Otava and of ruptures.

    python3 -m venv V && V/bin/pip install apache-otava ruptures
    V/bin/python bench/history/nominators.py BUILD/bakeoff [--series 200] [--points 100]

All three get the same series, one kind of noise after the other. Without a change: the
share of series in which one is named. With a step: the share in which it is named at most
2 points from its place, then how many other changes are named in a series. Otava at its own p = 0.001 and its magnitude of 0; ruptures'
PELT with the usual penalty 2 sd^2 log n, its sd from differences (it has no default).
Prints a Markdown table. --csv FILE: instead, where each names changes in the columns of it.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import statistics
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy
import ruptures
from otava.analysis import compute_change_points

Noise = Callable[[random.Random, int], list[float]]
Nominator = Callable[[Sequence[float]], list[int]]
SD = 0.01  # of all kinds of noise, of the logarithm, without their spikes and modes
NEAR = 2


def white(chance: random.Random, n: int) -> list[float]:
    return [chance.gauss(0, SD) for _ in range(n)]


def correlated(phi: float) -> Noise:
    def noise(chance: random.Random, n: int) -> list[float]:
        values = [chance.gauss(0, SD)]
        while len(values) < n:
            new = chance.gauss(0, SD * math.sqrt(1 - phi * phi))
            values.append(phi * values[-1] + new)
        return values

    return noise


def spikes(chance: random.Random, n: int) -> list[float]:
    """One run of 20 took 10 to 50% longer."""
    slow = [chance.uniform(0.1, 0.5) if chance.random() < 0.05 else 0 for _ in range(n)]
    return [a + b for a, b in zip(white(chance, n), slow, strict=True)]


def heavy(chance: random.Random, n: int) -> list[float]:
    """Student's t with 3 degrees of freedom."""
    return [
        SD * chance.gauss(0, 1) / math.sqrt(chance.gammavariate(1.5, 2) / 3)
        for _ in range(n)
    ]


def modes(chance: random.Random, n: int) -> list[float]:
    """A quarter of the runs is 4% slower: another place in memory."""
    return [
        a + (0.04 if chance.random() < 0.25 else 0)
        for a in white(chance, n)
    ]  # fmt: skip


def hosts(chance: random.Random, n: int) -> list[float]:
    """Two machines in turn, 4% apart."""
    return [a + 0.04 * (i % 2) for i, a in enumerate(white(chance, n))]


KINDS: dict[str, Noise] = {
    "white": white,
    "AR(1), phi 0.3": correlated(0.3),
    "AR(1), phi 0.6": correlated(0.6),
    "spikes": spikes,
    "heavy tails": heavy,
    "two modes": modes,
    "two hosts in turn": hosts,
}


def otava(values: Sequence[float]) -> list[int]:
    return [int(point.index) for point in compute_change_points(list(values))[0]]


def pelt(values: Sequence[float]) -> list[int]:
    logs = numpy.log(numpy.asarray(values))
    spread = numpy.median(numpy.abs(numpy.diff(logs))) / 0.6745 / math.sqrt(2)
    penalty = 2 * spread**2 * math.log(len(logs))
    found = ruptures.Pelt(model="l2", min_size=2, jump=1).fit(logs).predict(penalty)
    return [int(at) for at in found[:-1]]


def histories(program: Path, file: Path) -> list[dict[str, Any]]:
    words: list[str | Path] = [program, "history", "--read", file, "--json"]
    done = subprocess.run(words, check=True, capture_output=True)
    return list(json.loads(done.stdout))


def shifts(history: dict[str, Any]) -> list[int]:
    return [shift["index"] for shift in history["shifts"]]


def of_all(
    program: Path, series: dict[str, list[float]]
) -> dict[str, dict[str, list[int]]]:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "series.csv"
        rows = [f"{name},{v!r}" for name, values in series.items() for v in values]
        file.write_text("\n".join(["name,seconds", *rows]) + "\n")
        ours = {h["name"]: shifts(h) for h in histories(program, file)}
    others: dict[str, Nominator] = {"Otava": otava, "ruptures": pelt}
    return {
        "Bakeoff": ours,
        **{who: {n: f(v) for n, v in series.items()} for who, f in others.items()},
    }


def row(program: Path, kind: str, step: float, asked: argparse.Namespace) -> str:
    chance = random.Random(f"{kind} {step} {asked.seed}")
    series, places = {}, {}
    for i in range(asked.series):
        noise = KINDS[kind](chance, asked.points)
        at = chance.randrange(asked.points // 5, asked.points - asked.points // 5)
        places[f"s{i}"] = at
        series[f"s{i}"] = [
            0.1 * math.exp(v + (math.log1p(step) if k >= at else 0))
            for k, v in enumerate(noise)
        ]
    cells = []
    for found in of_all(program, series).values():
        if step == 0:
            cells.append(f"{100 * sum(map(bool, found.values())) / len(series):.1f}%")
            continue
        hit = sum(any(abs(c - places[n]) <= NEAR for c in f) for n, f in found.items())
        other = [sum(abs(c - places[n]) > NEAR for c in f) for n, f in found.items()]
        cells.append(
            f"{100 * hit / len(series):.0f}%, {statistics.mean(other):.2f} others"
        )
    what = (
        "nothing: share with a change named" if step == 0 else f"{100 * step:g}% slower"
    )
    return f"| {kind} | {what} | {' | '.join(cells)} |"


def of_file(program: Path, file: Path) -> None:
    """What each names in a file of series, for people to judge."""
    for history in histories(program, file):
        values = [point["seconds_per_step"] for point in history["points"]]
        print(f"{history['name']}, {len(values)} points")
        print("  Bakeoff ", shifts(history))
        print("  Otava   ", otava(values))
        print("  ruptures", pelt(values))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("program", type=Path)
    parser.add_argument("--series", type=int, default=200)
    parser.add_argument("--points", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--csv", type=Path)
    asked = parser.parse_args()
    if asked.csv:
        of_file(asked.program, asked.csv)
        return
    print("| noise | planted | Bakeoff | Otava | ruptures |\n|---|---|---|---|---|")
    for kind in KINDS:
        for step in (0.0, 0.02, 0.05, 0.1):
            print(row(asked.program, kind, step, asked), flush=True)


if __name__ == "__main__":
    main()
