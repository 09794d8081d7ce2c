"""`bakeoff explain` on training scripts whose causes of slowness are known.

    python3 bench/explain/planted.py [--binary build/dev/bakeoff] [--only REGEX]
        [--kinds planted,equal,identical] [--seconds 120] [--repeat 1] [--jobs 1]
        [--out planted.json] [--verify] [--list] [--quick] [--bars]

Each case (planted.txt) is a slow and a fast script, which differ in what was planted; pairs
of equal speed, and pairs of a script and itself (with another seed for each --repeat).
Results are kept in --out as they come: a run that was cut off goes on where it was.

--verify runs the scripts as they are, without Bakeoff, and prints by what factor the
slow one's epochs are longer: 1.15 at least for each planted case, and 1 for equal pairs.
--bars makes a bar that is missed an exit status of 1.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from cases import EQUAL, IDENTICAL, PLANTED, Case

CLEAR = 1.15  # ratio from which on a planted cause counts
SEEDED = re.compile(
    r"\b((?:default_rng|manual_seed|set_seed|set_random_seed|random\.key)\()\d+(?=\))"
    r'|("--seed", type=int, default=)\d+'
)
QUICK = "torch_sleep|equal_torch_split|identical_torch_mlp"

Json = dict[str, Any]


@dataclass(frozen=True)
class Run:
    """One pair of scripts to be explained."""

    name: str
    kind: str  # planted, equal or identical
    case: Case
    seed: int | None = None

    def sources(self) -> tuple[str, str]:
        slow, fast = self.case.sources()
        if self.seed is None:
            return slow, fast
        return self.seeded(slow), self.seeded(fast)

    def seeded(self, source: str) -> str:
        return SEEDED.sub(rf"\g<1>\g<2>{self.seed}", source)


def runs_of(options: argparse.Namespace) -> list[Run]:
    runs = []
    for kind, cases in (
        ("planted", PLANTED),
        ("equal", EQUAL),
        ("identical", IDENTICAL),
    ):
        if kind not in options.kinds.split(","):
            continue
        for seed in range(1 if kind == "planted" else options.repeat):
            for case in cases:
                name = f"{case.name}#{seed}" if seed else case.name
                if re.search(options.only, name):
                    runs.append(Run(name, kind, case, seed or None))
    return runs


def python_of(options: argparse.Namespace, run: Run) -> Path:
    return Path(str(options.envs), run.case.environment(), "bin/python")


# ---- as they are, without Bakeoff


def seconds_of_epoch(python: Path, source: str) -> tuple[float | None, str]:
    """Median time between the lines that begin with "epoch", and what went wrong."""
    times: list[float] = []
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryFile() as errors:
        (Path(folder) / "train.py").write_text(source)
        process = subprocess.Popen(
            [python, "-u", "train.py"],
            cwd=folder,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            start_new_session=True,
        )
        timer = threading.Timer(120, os.killpg, (process.pid, signal.SIGKILL))
        timer.start()
        assert process.stdout is not None
        for line in process.stdout:
            if re.match(r"epoch \d+", line, re.IGNORECASE):
                times.append(time.monotonic())
            if len(times) > 12 or (len(times) > 4 and times[-1] - times[2] > 5):
                break
        timer.cancel()
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        process.wait()
        errors.seek(0)
        said = errors.read().decode(errors="replace").strip().splitlines()
    if len(times) < 3:
        return None, said[-1] if said else "it ended early"
    return statistics.median(b - a for a, b in pairwise(times[1:])), ""


def verify(options: argparse.Namespace, runs: list[Run]) -> None:
    for run in runs:
        if run.kind == "identical":
            continue
        python, (slow, fast) = python_of(options, run), run.sources()
        (slow_s, slow_said), (fast_s, fast_said) = (
            seconds_of_epoch(python, source) for source in (slow, fast)
        )
        if slow_s is None or fast_s is None:
            print(f"{run.name:<34} FAILED {slow_said or fast_said}", flush=True)
            continue
        ratio = slow_s / fast_s
        word = ""
        if run.kind == "planted" and ratio < CLEAR:
            word = "TOO WEAK"
        elif run.kind == "equal" and not 1 / 1.1 < ratio < 1.1:
            word = "NOT EQUAL"
        print(
            f"{run.name:<34} {fast_s:8.3f} s  slow {slow_s:8.3f} s  {ratio:6.2f} {word}",
            flush=True,
        )


# ---- explained


def explain(options: argparse.Namespace, run: Run) -> Json:
    program = str(Path(options.binary).resolve())
    command = [program, "explain", "slow.py", "fast.py", "--format", "json"]
    command += ["--python", str(python_of(options, run))]
    command += ["--seconds", f"{options.seconds:g}"]
    with tempfile.TemporaryDirectory() as folder:
        for name, source in zip(("slow.py", "fast.py"), run.sources(), strict=True):
            (Path(folder) / name).write_text(source)
        begin = time.monotonic()
        try:
            done = subprocess.run(
                command,
                cwd=folder,
                capture_output=True,
                text=True,
                timeout=5 * options.seconds + 300,
            )
        except subprocess.TimeoutExpired:
            return {"error": "it did not come to an end"}
    if done.returncode != 0:
        return {"error": done.stderr.strip()[-2000:]}
    answer: Json = json.loads(done.stdout)
    answer["whole_seconds"] = time.monotonic() - begin
    for script in answer["scripts"]:
        script["facts"] = shortened(script.get("facts"))
    return answer


def shortened(facts: Any) -> Any:
    if isinstance(facts, dict):
        return {k: shortened(v) for k, v in facts.items()}
    return facts[:8] if isinstance(facts, list) else facts


def explain_all(options: argparse.Namespace, runs: list[Run]) -> dict[str, Json]:
    out = Path(options.out)
    results: dict[str, Json] = json.loads(out.read_text()) if out.exists() else {}
    lock = threading.Lock()

    def one(run: Run) -> None:
        if run.name in results:
            return
        found = explain(options, run)
        with lock:
            results[run.name] = found
            scratch = out.with_suffix(".part")
            scratch.write_text(json.dumps(results, indent=1))
            scratch.replace(out)
            print(row(run, found), flush=True)

    with ThreadPoolExecutor(options.jobs) as pool:
        for _ in pool.map(one, runs):
            pass
    return results


def named(found: Json) -> list[Json]:
    """Confirmed causes, the first one first."""
    return [cause for cause in found.get("causes", []) if cause["confirmed"]]


def planted(case: Case, key: str) -> bool:
    return any(key in keys for keys in case.causes)


def predicted(cause: Json) -> float | None:
    for word in ("predicted", "first_heat"):
        value = cause.get(word)
        if isinstance(value, dict):
            value = value.get("value")
        if isinstance(value, (int, float)):
            return float(value)
    return None


def gain(cause: Json) -> float:
    return float(cause["gain"]["value"])


def row(run: Run, found: Json) -> str:
    if "error" in found:
        return f"{run.name:<34} FAILED {found['error'].splitlines()[-1]}"
    wanted = "+".join(keys[0] for keys in run.case.causes) or "nothing"
    parts = []
    for cause in named(found):
        guess = predicted(cause)
        right = "" if planted(run.case, cause["key"]) else "!"
        parts.append(
            f"{right}{cause['key']} {'?' if guess is None else f'{guess:.2f}'}"
            f"/{gain(cause):.2f}"
        )
    gap = found.get("gap")
    return (
        f"{run.name:<34} {wanted:<24} gap {gap['value'] if gap else float('nan'):5.2f} "
        f"{found['seconds']:4.0f} s  {', '.join(parts) or '-'}"
    )


# ---- the bars


@dataclass(frozen=True)
class Bar:
    what: str
    count: int
    of: int
    limit: float
    at_least: bool

    def met(self) -> bool:
        share = self.count / self.of
        return share >= self.limit if self.at_least else share <= self.limit

    def line(self) -> str:
        share = f"{self.count} of {self.of} ({100 * self.count / self.of:.0f}%)"
        word = "at least" if self.at_least else "at most"
        verdict = "ok" if self.met() else "MISSED"
        return f"{self.what}: {share} (bar: {word} {100 * self.limit:.0f}%) {verdict}"


def bars(runs: list[Run], results: dict[str, Json]) -> list[Bar]:
    cases = [run for run in runs if run.kind == "planted"]
    pairs = [
        run
        for run in runs
        if run.kind != "planted" and "error" not in results[run.name]
    ]
    first = sum(
        1
        for run in cases
        if (causes := named(results[run.name])) and planted(run.case, causes[0]["key"])
    )
    all_named = [(run, cause) for run in cases for cause in named(results[run.name])]
    guesses = [
        abs(guess / gain(cause) - 1) <= 0.25
        for run, cause in all_named
        if planted(run.case, cause["key"]) and (guess := predicted(cause)) is not None
    ]
    false = sum(not planted(run.case, cause["key"]) for run, cause in all_named)
    some = [
        Bar("planted cause named first", first, len(cases), 0.9, True),
        Bar("false among named causes", false, len(all_named), 0.05, False),
        Bar("predicted within 25%", sum(guesses), len(guesses), 0.8, True),
        Bar(
            "pairs without a gap, a cause named",
            sum(bool(named(results[run.name])) for run in pairs),
            len(pairs),
            0,
            False,
        ),
    ]
    return [bar for bar in some if bar.of > 0]


def summary(runs: list[Run], results: dict[str, Json]) -> bool:
    runs = [run for run in runs if run.name in results]
    print()
    for run in runs:
        print(row(run, results[run.name]))
    print()
    twice = [run for run in runs if len(run.case.causes) == 2]
    both = sum(
        all(
            any(cause["key"] in keys for cause in named(results[run.name]))
            for keys in run.case.causes
        )
        for run in twice
    )
    if twice:
        print(f"both of two causes named: {both} of {len(twice)}")
    equal = [run for run in runs if run.kind != "planted"]
    gaps = sum(bool(results[run.name].get("gap_confirmed")) for run in equal)
    if equal:
        print(f"pairs of equal speed, a gap stated: {gaps} of {len(equal)}")
    seconds = [r["seconds"] for r in results.values() if "seconds" in r]
    if seconds:
        print(
            f"seconds of an answer: {statistics.median(seconds):.0f} (median), "
            f"{max(seconds):.0f} (longest)"
        )
    failed = sum("error" in results[run.name] for run in runs)
    if failed:
        print(f"failed, no answer: {failed} of {len(runs)}")
    met = failed == 0
    for bar in bars(runs, results):
        print(bar.line())
        met = met and bar.met()
    return met


def main() -> int:
    home = os.environ.get("BAKEOFF_HOME") or os.path.join(
        os.environ.get("XDG_DATA_HOME") or os.path.expanduser("~/.local/share"),
        "bakeoff",
    )
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--binary", default="build/dev/bakeoff")
    parser.add_argument("--envs", default=os.environ.get("ENVS") or f"{home}/envs")
    parser.add_argument("--only", default="", metavar="REGEX")
    parser.add_argument("--kinds", default="planted,equal,identical")
    parser.add_argument("--seconds", type=float, default=120)
    parser.add_argument("--repeat", type=int, default=1, help="of pairs, other seeds")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--out", default="planted.json")
    parser.add_argument("--verify", action="store_true")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--quick", action="store_true", help="three short runs")
    parser.add_argument("--bars", action="store_true")
    options = parser.parse_args()
    if options.quick:
        options.only, options.seconds = f"^({QUICK})$", 60
    runs = runs_of(options)
    if options.list:
        for run in runs:
            wanted = " + ".join("|".join(keys) for keys in run.case.causes)
            print(f"{run.name:<34} {run.kind:<10} {wanted}")
        return 0
    if options.verify:
        verify(options, runs)
        return 0
    if not os.access(options.binary, os.X_OK):
        print(f"there is no program {options.binary}: --binary PATH", file=sys.stderr)
        return 2
    met = summary(runs, explain_all(options, runs))
    return 0 if met or options.quick or not options.bars else 1


if __name__ == "__main__":
    sys.exit(main())
