"""Contender zero beside the frameworks on every shipped workload, against its bars.

Two suites of short races, those that gain from channels_last and the others, are raced by `bakeoff suite`; the same
command again goes on where they stand. Then each program is compiled alone, as a user does, and the table is printed.

python3 bench/native/race.py --build build/release --out runs/bench-native [--quick] [WORD...]
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).parents[2]
# Replays of what others did, another scenario's numbers, or the same workload once more.
LEFT_OUT = ("as_is", "4060ti", "libtorch", "batches", "target", "latency")
CONTENDERS = [
    'framework = "native"',
    'framework = "torch"',
    'framework = "torch", compile = "default"',
    'framework = "jax"',
    'framework = "tensorflow", jit_compile = true',
]
LAYOUT = 'framework = "torch", channels_last = true'
MINUTES = 3.0  # of a race: proofs, and two short heats at least
OPTIONS = "-std=c++20 -O3 -march=native -fno-math-errno -pthread".split()
# Bars: (words of a recipe's name, least share of peak) and (..., least step time of the best framework over native's).
PEAK = (
    ("mnist_cnn", 0.75),
    ("alexnet", 0.7),
    ("resnet", 0.7),
    ("bert_small", 0.7),
    ("lstm_lm", 0.7),
)
AHEAD = (("mnist_cnn", 1.6), ("mlp_", 5.0), ("", 0.98))
FIRST_STEP_MS, COMPILE_S, BINARY_KB = 50, 20, 2048
HEAD = ("recipe", "of peak", "best framework", "ratio", "first step, ms", "compile, s", "KB")


def bar(bars: tuple[tuple[str, float], ...], name: str) -> float | None:
    return next((least for word, least in bars if word in name), None)


def shown(value: float | None, form: str, missed: bool) -> str:
    return "–" if value is None else form.format(value) + (" MISSED" if missed else "")


def race(build: Path, out: Path, name: str, recipes: list[Path], minutes: float) -> None:
    """Races what is left of a suite; `recipes` those of a new one."""
    folder = out / name
    command: list[str | Path] = [build / "bakeoff", "suite"]
    if (folder / "suite.json").exists():
        command += ["--resume", folder]
    else:
        contenders = CONTENDERS + ([LAYOUT] if name == "layouts" else [])
        rows = "".join(f"  {{ {row} }},\n" for row in contenders)
        suite = out / f"{name}.toml"
        suite.write_text(
            f'name = "native_{name}"\nrecipes = {json.dumps([str(r) for r in recipes])}\n'
            f"[every]\ncontenders = [\n{rows}]\n[every.budget]\nminutes = {minutes}\nheats = 2\n"
            "[every.race]\nconfirm_heats = 0\nmax_busy = 1\n"
        )
        command += [suite, "--out", folder]
    subprocess.run(command, check=False)


def compiled(run: Path, script: str) -> tuple[float | None, float | None]:
    """Seconds and KB of the program that runs alone; kept beside the run."""
    kept = run / "alone.json"
    if not kept.exists():
        program, source = run / "alone", run / "scripts" / script
        command = [os.environ.get("CXX", "g++"), *OPTIONS, "-s", source, "-o", program]
        begin = time.monotonic()
        if subprocess.run(command, check=False).returncode != 0:
            return None, None
        kept.write_text(
            json.dumps([time.monotonic() - begin, program.stat().st_size / 1024])
        )
        program.unlink()
    seconds, size = json.loads(kept.read_text())
    return seconds, size


def line(build: Path, run: Path, name: str) -> list[str]:
    """Of one race: its row of the table."""
    report = [build / "bakeoff", "report", run, "--format", "json"]
    done = subprocess.run(report, check=False, capture_output=True, text=True)
    try:
        ranked = json.loads(done.stdout)["ranked"]
    except (ValueError, KeyError):
        return [name, "not raced", *[""] * 5]
    mine = [row for row in ranked if row["contender"]["framework"] == "native"]
    timed = [row for row in ranked if row not in mine and (row["over_native"] or {}).get("value")]
    if not mine:
        return [name, "native is not ranked", *[""] * 5]
    native = mine[0]
    best = min(timed, key=lambda row: row["over_native"]["value"], default=None)
    ratio = best["over_native"]["value"] if best else None
    peak, ahead = bar(PEAK, name), bar(AHEAD, name) or 0
    first = native["start_up_ms"]["total"]
    seconds, size = compiled(run, native["contender"]["script"])
    share = native["share_of_peak"]
    return [
        name,
        shown(share, "{:.0%}", peak is not None and (share or 0) < peak),
        best["contender"]["id"] if best else "–",
        shown(ratio, "{:.2f}", ratio is not None and ratio < ahead),
        shown(first, "{:.0f}", first > FIRST_STEP_MS),
        shown(seconds, "{:.1f}", (seconds or 0) >= COMPILE_S),
        shown(size, "{:.0f}", (size or 0) >= BINARY_KB),
    ]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", type=Path, required=True)
    parser.add_argument("--out", type=Path, default=Path("runs/bench-native"))
    parser.add_argument("--quick", action="store_true", help="races of a minute, of the first model alone")
    parser.add_argument("words", nargs="*", help="of the recipes' names; default all")
    options = parser.parse_args()
    recipes = [p for p in sorted((ROOT / "recipes").glob("*.toml")) if not any(w in p.stem for w in LEFT_OUT)]
    recipes = [p for p in recipes if not options.words or any(w in p.stem for w in options.words)]
    if options.quick:
        recipes = [p for p in recipes if p.stem == "mlp_small"]
    laid = [p for p in recipes if "channels_last" in p.read_text(encoding="utf-8")]
    options.out.mkdir(parents=True, exist_ok=True)
    rows = []
    for name, some in (("layouts", laid), ("others", [p for p in recipes if p not in laid])):
        if not some:
            continue
        race(options.build, options.out, name, some, 1.0 if options.quick else MINUTES)
        for run in sorted((options.out / name).glob("[0-9]*-*")):
            rows.append(line(options.build, run, run.name.partition("-")[2]))
    print("| " + " | ".join(HEAD) + " |\n" + "|---" * len(HEAD) + "|")
    for row in rows:
        print("| " + " | ".join(row) + " |")
    missed = sum("MISSED" in cell for row in rows for cell in row)
    print(f"bars of contender zero beside the frameworks: {missed} missed (bar: 0) {'MISSED' if missed else 'ok'}")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
