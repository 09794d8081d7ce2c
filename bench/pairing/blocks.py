"""Paired blocks, their statistics, and the one line in which a benchmark ends.

A block is two fresh processes that live at the same time, or one with both sides in it
(sides.Together). After a burst of each for warm-up their bursts alternate in random
order, one running at a time, the other stopped.
The value of a block is d = log of the ratio of their mean ms/step, each mean without the slowest tenth
of its bursts. The interval is Student's over the blocks (95%).
"""

from __future__ import annotations

import argparse
import math
import os
import random
import statistics
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from pairing.sides import Side

# Student's t, two-sided 95%, by degrees of freedom.
STUDENT = (12.71, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228)


class Pair(NamedTuple):
    """Two sides; `Side` starts its process when it is made."""

    one: Callable[[], Side]
    other: Callable[[], Side]
    words: tuple[str, str]  # what they are called
    # Largest relative difference of the losses, by their kind.
    tolerance: dict[str, float]
    # Two whose losses are compared in place of theirs: the same without dropout.
    proof: tuple[Callable[[], Side], Callable[[], Side]] | None = None


class Effort(NamedTuple):
    """How much is measured."""

    blocks: int
    bursts: int
    seconds: float = 0  # of a burst; 0: as many steps as the sides were made with


class Judged(NamedTuple):
    """A ratio with its interval, held against a bar."""

    ratio: float
    begin: float
    end: float
    blocks: int
    word: str  # "ok" | "MISSED" | "undecided"
    bar: float = 0


def parser_for(description: str | None) -> argparse.ArgumentParser:
    """Options of every benchmark of pairs."""
    home = Path(os.environ.get("BAKEOFF_HOME", "~/.local/share/bakeoff")).expanduser()
    processors = len(os.sched_getaffinity(0))
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--build", type=Path, default=Path("build/release"))
    parser.add_argument("--envs", type=Path, default=home / "envs")
    parser.add_argument("--threads", type=int, default=processors)
    parser.add_argument("--blocks", type=int, help="pairs of fresh processes")
    parser.add_argument("--bursts", type=int, help="bursts in a block")
    parser.add_argument("--quick", action="store_true", help="does it run at all?")
    return parser


def effort_of(options: argparse.Namespace, blocks: int, bursts: int) -> Effort:
    """As asked for, else `blocks` and `bursts`, else little."""
    usual = Effort(2, 3) if options.quick else Effort(blocks, bursts)
    return Effort(options.blocks or usual.blocks, options.bursts or usual.bursts)


def trimmed_mean(values: list[float]) -> float:
    kept = sorted(values)[: len(values) - len(values) // 10]
    return statistics.fmean(kept)


def ratios(name: str, pair: Pair, effort: Effort) -> list[float] | None:
    """One ratio a block; None, and it is said why, when the losses differ."""
    values = []
    if pair.proof:
        proof = pair._replace(one=pair.proof[0], other=pair.proof[1])
        if not _same(name, proof, _start(proof), end=True):
            return None
    for number in range(effort.blocks):
        sides = _start(pair)
        try:
            if not _same(name, pair, sides, compare=not pair.proof):
                return None
            one, other = _block(sides, effort)
        finally:
            for side in sides:
                side.close()
        values.append(one / other)
        print(
            f"  {name}: block {number + 1}: {pair.words[0]} {one:.3f} ms/step, "
            f"{pair.words[1]} {other:.3f}, ratio {one / other:.4f}",
            flush=True,
        )
    return values


def judge(values: list[float], low: float, high: float) -> Judged:
    """ "ok" and "MISSED" where the whole interval says so."""
    logs = [math.log(value) for value in values]
    mean, half = statistics.fmean(logs), math.inf
    if len(logs) > 1:
        t = STUDENT[min(len(logs) - 2, len(STUDENT) - 1)]
        half = t * statistics.stdev(logs) / math.sqrt(len(logs))
    begin, end = _exp(mean - half), _exp(mean + half)
    inside, outside = low <= begin and end <= high, end < low or begin > high
    word = "ok" if inside else "MISSED" if outside else "undecided"
    return Judged(math.exp(mean), begin, end, len(logs), word)


def conclude(name: str, values: list[float] | None, low: float, high: float) -> bool:
    """Prints the line of a ratio that should lie in low..high; False: it is missed.

    An undecided one is not a failure.
    """
    if values is None:
        return False
    j = judge(values, low, high)
    bar = f"at most {high}" if low == 0 else f"{low} to {high}"
    word = j.word + (", measure more" if j.word == "undecided" else "")
    print(
        f"{name}: {j.ratio:.4f} [{j.begin:.4f}, {j.end:.4f}] over {j.blocks} "
        f"blocks (bar: {bar}) {word}",
        flush=True,
    )
    return j.word != "MISSED"


def _exp(value: float) -> float:
    return math.exp(value) if value < 700 else math.inf


def _start(pair: Pair) -> list[Side]:
    """Neither is always started first."""
    if random.random() < 0.5:
        return [pair.one(), pair.other()]
    other = pair.other()
    return [pair.one(), other]


def _same(
    name: str, pair: Pair, sides: list[Side], compare: bool = True, end: bool = False
) -> bool:
    """Both make their first burst; False, and it is said, where the losses differ."""
    try:
        firsts = sides[0].first(), sides[1].first()
    finally:
        if end:
            for side in sides:
                side.close()
    why = _difference(*firsts, pair.tolerance) if compare else ""
    if why:
        print(f"{name}: not the same training: {why}: MISSED", flush=True)
    return not why


def _difference(
    one: dict[str, float], other: dict[str, float], tolerance: dict[str, float]
) -> str:
    kinds = one.keys() & other.keys()
    if not kinds:
        return "no losses of one kind"
    for kind in kinds:
        if not abs(one[kind] / other[kind] - 1) <= tolerance[kind]:
            return f"{kind} loss {one[kind]} and {other[kind]}"
    return ""


def _block(sides: list[Side], effort: Effort) -> tuple[float, float]:
    for side in sides:
        side.thaw()
        ms = side.burst()
        side.freeze()
    if effort.seconds:
        steps = max(2, round(effort.seconds * 1e3 / ms))
        for side in sides:
            side.steps = steps
    times: list[list[float]] = [[], []]
    for _ in range(effort.bursts):
        for index in random.sample((0, 1), 2):
            sides[index].thaw()
            times[index].append(sides[index].burst())
            sides[index].freeze()
    for side in sides:
        side.thaw()
    return trimmed_mean(times[0]), trimmed_mean(times[1])
