"""Gates and searches on this machine with known truth: identical versions, planted
regressions, and a commit to be found. Prints a Markdown table.

    python3 bench/gate/measure.py build/dev/bakeoff --identical 5 --planted 3 --searches 1
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import tempfile
import time
from pathlib import Path

SCRIPT = """
import time
for _ in range({steps}):
    end = time.perf_counter() + {ms} / 1000
    while time.perf_counter() < end:
        pass
"""


def gate(
    program: Path, slower: float, margin: str, budget: str, steps: int
) -> dict[str, object]:
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        (place / "old.py").write_text(SCRIPT.format(ms=100, steps=steps))
        (place / "new.py").write_text(SCRIPT.format(ms=100 * (1 + slower), steps=steps))
        words = ["--base", "old.py", "--head", "new.py", "--json", "out.json"]
        words += ["--margin", margin, "--budget", budget]
        done = subprocess.run(
            [program, "gate", *words], cwd=place, capture_output=True, text=True
        )
        if done.returncode not in (0, 1, 3):
            raise SystemExit(done.stderr)
        return dict(json.loads((place / "out.json").read_text()))


def search(program: Path, commits: int, culprit: int, slower: float) -> str:
    """Every fifth commit is broken; the commit that is named, and the time."""
    with tempfile.TemporaryDirectory() as folder:
        variables = {**os.environ, "GIT_CONFIG_GLOBAL": "/dev/null"}
        for who in ("AUTHOR", "COMMITTER"):
            variables |= {f"GIT_{who}_NAME": "a", f"GIT_{who}_EMAIL": "a@b"}

        def git(*words: str) -> None:
            subprocess.run(["git", "-C", folder, *words], env=variables, check=True)

        git("init", "-q", "-b", "main", ".")
        for i in range(commits + 1):
            ms = 100 * (1 + slower) if i >= culprit else 100
            text = SCRIPT.format(ms=ms, steps=10) + f"# {i}\n"
            if i % 5 == 3 and i not in (culprit - 1, culprit, commits):
                text = "raise SystemExit('broken')\n"
            (Path(folder) / "train.py").write_text(text)
            git("add", "-A")
            git("commit", "-q", "-m", f"commit {i}")
            git("tag", f"c{i}")
        begin = time.monotonic()
        words = ["--good", "c0", "--bad", "main", "--json", "out.json", "train.py"]
        subprocess.run(
            [program, "bisect", "--budget", "60m", *words], cwd=folder, check=False
        )
        found = json.loads((Path(folder) / "out.json").read_text())
        seconds = time.monotonic() - begin
        named = found.get("found", {})
        return (
            f"| {commits} commits, {100 * slower:g}% from commit {culprit} on |"
            f" {found['verdict']}: {named.get('first')} to {named.get('last')} |"
            f" {len(found['probes'])} probes, {seconds:.0f} s |"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("program", type=Path)
    parser.add_argument("--identical", type=int, default=5)
    parser.add_argument("--planted", type=int, default=3)
    parser.add_argument("--searches", type=int, default=1)
    parser.add_argument("--margin", default="2%")
    parser.add_argument("--budget", default="10m")
    parser.add_argument(
        "--steps",
        type=int,
        default=10,
        help="steps of 100 ms that a gate's script makes",
    )
    asked = parser.parse_args()
    program = asked.program.resolve()
    for slower, count in (
        (0.0, asked.identical),
        (0.05, asked.planted),
        (0.1, asked.planted),
    ):
        for _ in range(count):
            found = gate(program, slower, asked.margin, asked.budget, asked.steps)
            row = found["contenders"][0]  # type: ignore[index]
            ratio = row["ratio"]
            print(
                f"| {100 * slower:g}% slower | {found['verdict']} |"
                f" {ratio['value']:.4f} [{ratio['low'] or 0:.3f},"
                f" {ratio['high'] or 99:.3f}], {row['heats']} pairs, noise"
                f" {100 * row['noise']:.1f}%, {found['seconds']:.0f} s |",
                flush=True,
            )
    for number in range(asked.searches):
        print(search(program, 64, 11 + 9 * number, 0.05), flush=True)


if __name__ == "__main__":
    main()
