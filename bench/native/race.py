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
    '{ framework = "native" },\n',
    '{ framework = "torch" },\n',
    '{ framework = "torch", compile = "default" },\n',
    '{ framework = "jax" },\n',
    '{ framework = "tensorflow", jit_compile = true },\n',
]
LAYOUT = ['{ framework = "torch", channels_last = true },\n']
OPTIONS = "-std=c++20 -O3 -march=native -fno-math-errno -pthread -s".split()
# By words of a recipe's name: least share of peak; least step time of the best framework over native's.
PEAK = dict(mnist_cnn=0.75, alexnet=0.7, resnet=0.7, bert_small=0.7, lstm_lm=0.7)
AHEAD = {"mnist_cnn": 1.6, "mlp_": 5.0, "": 0.98}
FIRST_STEP_MS, COMPILE_S, BINARY_KB = 50, 20, 2048
HEAD = "recipe, of peak, best framework, ratio, first step in ms, compile s, KB".split(
    ", "
)


def bar(bars: dict[str, float], name: str) -> float:
    return next((least for word, least in bars.items() if word in name), 0)


def shown(value: float | None, form: str, missed: bool) -> str:
    return "–" if value is None else form.format(value) + (" MISSED" if missed else "")


def race(
    build: Path, folder: Path, recipes: list[str], contenders: list[str], every: str
) -> None:
    """Races what is left of a suite, `recipes` of a new one."""
    command = [f"{build}/bakeoff", "suite", "--resume", f"{folder}"]
    if not (folder / "suite.json").exists():
        suite = folder.with_suffix(".toml")
        suite.write_text(
            f'name = "native_{folder.name}"\nrecipes = {json.dumps(recipes)}\n'
            f"[every]\ncontenders = [\n{''.join(contenders)}]\n"
            f"{every}confirm_heats = 0\nmax_busy = 1\n"
        )
        command[2:] = [f"{suite}", "--out", f"{folder}"]
    subprocess.run(command, check=False)


def compiled(run: Path, script: str) -> list[float | None]:
    """Seconds and KB of the program that runs alone; kept beside the run."""
    kept = run / "alone.json"
    if not kept.exists():
        program = run / "alone"
        command = [os.environ.get("CXX", "g++"), *OPTIONS, f"{run}/scripts/{script}"]
        begin = time.monotonic()
        if subprocess.run([*command, "-o", f"{program}"], check=False).returncode != 0:
            return [None, None]
        taken, size = time.monotonic() - begin, program.stat().st_size / 1024
        kept.write_text(json.dumps([taken, size]))
        program.unlink()
    return list(json.loads(kept.read_text()))


def line(build: Path, run: Path, name: str) -> list[str]:
    """Of one race: its row of the table."""
    report = [f"{build}/bakeoff", "report", f"{run}", "--format", "json"]
    done = subprocess.run(report, check=False, capture_output=True, text=True)
    ranked = json.loads(done.stdout)["ranked"] if done.stdout else []
    over = {
        row["contender"]["id"]: row["over_native"]["value"]
        for row in ranked
        if row["over_native"] and row["over_native"]["value"]
    }
    if not over.pop("native", None):
        return [name, "MISSED: native has no time", *[""] * 5]
    native = next(row for row in ranked if row["contender"]["id"] == "native")
    best = min(over, key=lambda one: over[one], default=None)
    ratio = over[best] if best else None
    peak, first = native["share_of_peak"], native["start_up_ms"]["total"]
    seconds, size = compiled(run, native["contender"]["script"])
    return [
        name,
        shown(peak, "{:.0%}", (peak or 0) < bar(PEAK, name)),
        best or "–",
        shown(ratio, "{:.2f}", (ratio or 0) < bar(AHEAD, name)),
        shown(first, "{:.0f}", first > FIRST_STEP_MS),
        shown(seconds, "{:.1f}", (seconds or 0) >= COMPILE_S),
        shown(size, "{:.0f}", (size or 0) >= BINARY_KB),
    ]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", type=Path, required=True)
    parser.add_argument("--out", type=Path, default=Path("runs/bench-native"))
    parser.add_argument("--quick", action="store_true", help="the first model alone")
    parser.add_argument("--frameworks", help="with commas; default all")
    parser.add_argument("--minutes", type=float, default=3.0, help="of a race")
    parser.add_argument("--threads", type=int, help="of each contender")
    parser.add_argument("words", nargs="*", help="of the recipes' names; default all")
    options = parser.parse_args()
    raced = [f'"{one}"' for one in (options.frameworks or "").split(",")]
    every = f"[every.budget]\nminutes = {options.minutes}\nheats = 3\n[every.race]\n"
    if options.threads:
        every += f"threads = {options.threads}\n"
    words = ["mlp_small"] if options.quick else options.words or [""]
    suites: dict[str, list[str]] = {"layouts": [], "others": []}
    paths = sorted((ROOT / "recipes").glob("*.toml"))
    whole = [path.stem for path in paths]  # a whole name names one recipe
    for path in paths:
        if any(
            w == path.stem or (w in path.stem and w not in whole) for w in words
        ) and not any(w in path.stem for w in LEFT_OUT):
            laid = "channels_last" in path.read_text(encoding="utf-8")
            suites["layouts" if laid else "others"].append(str(path))
    options.out.mkdir(parents=True, exist_ok=True)
    rows = [HEAD, ["---"] * len(HEAD)]
    for name, recipes in suites.items():
        folder = options.out / name
        if recipes:
            contenders = CONTENDERS + LAYOUT * (name == "layouts")
            if options.frameworks:
                contenders = [c for c in contenders if any(f in c for f in raced)]
            race(options.build, folder, recipes, contenders, every)
        for run in sorted(folder.glob("[0-9]*-*")) if recipes else []:
            rows.append(line(options.build, run, run.name.partition("-")[2]))
    for row in rows:
        print("| " + " | ".join(row) + " |")
    missed = sum("MISSED" in cell for row in rows for cell in row) + (rows[2:] == [])
    word = "MISSED" if missed else "ok"
    print(f"contender zero beside the frameworks: {missed} bars missed (bar: 0) {word}")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
