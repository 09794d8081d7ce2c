#!/usr/bin/env python3
"""Whether budgets are kept: by `run` over shipped recipes, `tune`, `suite`, and by `explain`, `gate` and `bisect` over scripts.

Usage: budgets.py PROGRAM [--seconds 20 60 300] [--loops N] [--only WORD]

A budget is kept where the command ends within 1.1 times its seconds and 5 s more. `--loops` processes that use a
processor for ever run beside. Prints a row of Markdown for each run; ends with 1 where a budget was not kept.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tests.cli import explain_test, gate_test  # noqa: E402

RECIPES = (
    "mlp_small",
    "digits_cnn",
    "mnist_cnn",
    "mnist_cnn_predict",
    "mnist_cnn_latency",
    "lstm_lm_small",
    "bert_small",
    "resnet18_small",
)
HANGS = 4  # times its budget, after which a command is ended


def commands(seconds: int) -> Iterator[tuple[str, list[str]]]:
    time_of = f"{seconds}s"
    for recipe in RECIPES:
        words = ["run", recipe, "--budget", time_of, "--out", f"run-{recipe}-{seconds}"]
        yield f"run {recipe}", words
    words = ["mlp_small", "--minutes", str(seconds / 60), "--out", f"tune-{seconds}"]
    yield "tune mlp_small", ["tune", *words]
    words = ["mlp_small", "mnist_cnn", "--budget", time_of, "--out", f"suite-{seconds}"]
    yield "suite of two", ["suite", *words]
    pair = ["slow.py", "fast.py", "--seconds", str(seconds)]
    yield "explain", ["explain", *pair]
    yield "gate", ["gate", "--base", "old.py", "--head", "new.py", "--budget", time_of]
    same = ["gate", "--base", "same.py", "--head", "same.py", "--budget", time_of]
    yield "gate of one script and itself", [*same, "--margin", "0.1%"]
    same = ["gate", "--base", ".", "--head", ".", "mlp_small", "--budget", time_of]
    yield "gate mlp_small", same
    ends = ["--repo", "repo", "--good", "HEAD~8", "--bad", "HEAD", "train.py"]
    yield "bisect", ["bisect", *ends, "--budget", time_of, "--out", f"bisect-{seconds}"]


def make_repository(folder: Path) -> None:
    """Nine commits of a script, of which the sixth made it slow."""

    def git(*words: str) -> None:
        who = ["-c", "user.name=T", "-c", "user.email=t@example.org"]
        subprocess.run(["git", *who, "-C", folder, *words], check=True)

    folder.mkdir()
    git("init", "-q", "-b", "main", ".")
    for number in range(9):
        text = gate_test.SLOW if number > 5 else gate_test.FAST
        (folder / "train.py").write_text(f"# {number}\n{text}")
        git("add", "-A")
        git("commit", "-q", "-m", f"commit {number}")


def measured(program: Path, all_seconds: list[int], only: str) -> int:
    """Prints a row for each run; the number of budgets that were not kept."""
    late = 0
    print("| command | budget, s | took, s | exit code | kept |\n|---|---|---|---|---|")
    with tempfile.TemporaryDirectory(prefix="bakeoff_budgets_") as name:
        folder = Path(name)
        (folder / "fast.py").write_text(explain_test.SCRIPT)
        (folder / "slow.py").write_text(explain_test.SLOW)
        (folder / "old.py").write_text(gate_test.FAST)
        (folder / "new.py").write_text(gate_test.SLOW)
        (folder / "same.py").write_text(gate_test.FAST)
        make_repository(folder / "repo")
        for seconds in all_seconds:
            for what, words in commands(seconds):
                if only not in what:
                    continue
                begin = time.monotonic()
                try:
                    done = subprocess.run(
                        [program.resolve(), *words],
                        cwd=folder,
                        capture_output=True,
                        timeout=HANGS * seconds,
                        check=False,
                    )
                    code = str(done.returncode)
                except subprocess.TimeoutExpired:
                    code = "ended"
                took = time.monotonic() - begin
                kept = took <= 1.1 * seconds + 5
                late += not kept
                row = f"| {what} | {seconds} | {took:.1f} | {code} | {'yes' if kept else 'no'} |"
                print(row, flush=True)
    return late


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("program", type=Path)
    parser.add_argument("--seconds", type=int, nargs="*", default=[20, 60, 300])
    parser.add_argument("--loops", type=int, default=0)
    parser.add_argument("--only", default="")
    told = parser.parse_args()
    loops = [
        subprocess.Popen([sys.executable, "-c", "while True: pass"])
        for _ in range(told.loops)
    ]
    try:
        late = measured(told.program, told.seconds, told.only)
    finally:
        for loop in loops:
            loop.kill()
    print(f"\n{late} not kept")
    return 1 if late else 0


if __name__ == "__main__":
    sys.exit(main())
