#!/usr/bin/env python3
"""The lines of the repository: by room, what a change adds, and whether they are within their budget.

Usage: lines.py [BASE]

BASE is a commit whose lines are subtracted; default: where this branch left origin/main, or main. The budget stands
in scripts/lines.toml. Ends with 1 where a part has more lines than its budget.
"""

from __future__ import annotations

import subprocess
import sys
import tomllib
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BUDGET = "scripts/lines.toml"
# What is code of ours or prose; goldens, pictures and public scripts are data.
KINDS = (".cc", ".h", ".py", ".md", ".toml", ".cmake", ".txt", ".html", ".css", ".js")
DATA = ("tests/golden/", "docs/images/", "bench/explain/public/")


def git(*arguments: str, input: str | None = None) -> bytes:
    words = ["git", "-C", str(ROOT), *arguments]
    told = None if input is None else input.encode()
    return subprocess.run(words, input=told, capture_output=True, check=True).stdout


def is_test(name: str) -> bool:
    file = name.rsplit("/", 1)[-1]
    return "_test." in file or "testing" in name


def part_of(name: str) -> str | None:
    """The part of the budget that a file counts in; None: it counts in none."""
    if name.startswith(DATA) or not name.endswith(KINDS):
        return None
    top = name.split("/", 1)[0]
    if top in ("src", "prove"):
        return f"{top} tests" if is_test(name) else top
    if top in ("runners", "tests", "bench", "docs", "scripts", "python", "recipes"):
        return top
    return None


def room_of(name: str) -> str:
    folders = name.split("/")[:-1]
    return "/".join(folders[:2])


def texts_here() -> Iterable[tuple[str, bytes]]:
    listed = git("ls-files", "--cached", "--others", "--exclude-standard", "-z")
    for name in filter(None, listed.decode().split("\0")):
        if part_of(name) and (ROOT / name).is_file():
            yield name, (ROOT / name).read_bytes()


def texts_of(commit: str) -> Iterable[tuple[str, bytes]]:
    names = git("ls-tree", "-r", "--name-only", "-z", commit).decode().split("\0")
    names = [name for name in names if name and part_of(name)]
    asked = "".join(f"{commit}:{name}\n" for name in names)
    answer = git("cat-file", "--batch", input=asked)
    at = 0
    for name in names:
        end = answer.index(b"\n", at)
        size = int(answer[at:end].split()[-1])
        yield name, answer[end + 1 : end + 1 + size]
        at = end + size + 2


def counted(texts: Iterable[tuple[str, bytes]]) -> tuple[Counter[str], Counter[str]]:
    """Lines by part, and those of src without tests by room."""
    parts: Counter[str] = Counter()
    rooms: Counter[str] = Counter()
    for name, text in texts:
        part = part_of(name)
        if part is None:
            continue
        lines = text.count(b"\n")
        parts[part] += lines
        if part == "src":
            rooms[room_of(name)] += lines
    return parts, rooms


def base_of(arguments: list[str]) -> str | None:
    for name in arguments or ["origin/main", "main"]:
        try:
            return git("merge-base", "HEAD", name).decode().strip()
        except subprocess.CalledProcessError:
            continue
    return None


def table(title: str, now: Counter[str], before: Counter[str] | None) -> None:
    print(f"{title:<24}{'lines':>9}{'change':>9}")
    for name, lines in now.most_common():
        change = "" if before is None else f"{lines - before[name]:+d}"
        print(f"{name:<24}{lines:>9}{'' if change == '+0' else change:>9}")


def main() -> int:
    parts, rooms = counted(texts_here())
    base = base_of(sys.argv[1:])
    before = counted(texts_of(base)) if base else None
    table("room of src", rooms, before[1] if before else None)
    print()
    table("part", parts, before[0] if before else None)
    budget = tomllib.loads((ROOT / BUDGET).read_text())
    over = 0
    for part, limits in budget.items():
        most = limits[-1]["most"]
        if parts[part] > most:
            over = 1
            print(
                f"\n{part} has {parts[part]} lines, its budget is {most}: take lines away, or raise the "
                f"budget in {BUDGET} with the reason"
            )
    return over


if __name__ == "__main__":
    sys.exit(main())
