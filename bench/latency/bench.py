"""Latencies of requests, as Bakeoff says and as an independent load generator finds.

    python3 bench/latency/bench.py --build build/release [--envs DIR] [--rounds 3]
        [--rate 100] [--requests 2000] [--quick]

In every round Bakeoff measures ONNX Runtime on the CNN of the MNIST comparison, one
picture a request, arrivals at random (recipe below). Then generator.py, a process of
its own, asks a plain script (onnxruntime_plain.py) at exactly the same moments, which
it takes from Bakeoff's record. The percentiles of Bakeoff's report are compared with
those that the generator finds. The generator's way to the server and back, two pipes
and two wake-ups, is part of what it finds, and of the bar.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from generator import latencies

HERE = Path(__file__).resolve().parent
PERCENTILES = (50, 90, 99)
# Of Bakeoff's percentile over the other's. The tail rests on few requests.
BARS = {50: 1.2, 90: 1.25, 99: 1.5}

RECIPE = """
scenario = "predict"
workload = "mnist_cnn"
batch = 1
seed = {seed}
contenders = [{{ framework = "onnxruntime" }}]

[data]
kind = "mnist"
divisor = 255

[budget]
minutes = 1
heats = 1

[race]
burst_seconds = 0.2
bursts = 2
confirm_heats = 0
max_busy = 1

[latency]
arrivals_per_second = {rate:g}
requests = {requests}
seconds = {seconds:g}
processes = 1
percentiles = [50, 90, 99]
"""


def measured(
    options: argparse.Namespace, folder: Path, seed: int
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Bakeoff's record of the requests that arrive at random, and its row."""
    recipe = folder / f"latency{seed}.toml"
    recipe.write_text(
        RECIPE.format(
            seed=seed,
            rate=options.rate,
            requests=options.requests,
            seconds=2 * options.requests / options.rate,
        )
    )
    run = folder / f"run{seed}"
    program = options.build / "bakeoff"
    command = [str(program), "run", str(recipe), "--out", str(run), "--format", "json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode not in (0, 1):
        sys.exit(f"{' '.join(command)} failed:\n{done.stderr}")
    lines = (run / "latency.jsonl").read_text().splitlines()
    records = [json.loads(line) for line in lines]
    record = next(one for one in records if one["rate"] > 0)
    row = next(
        one
        for one in json.loads(done.stdout)["latency"]["rows"]
        if one["arrivals_per_second"]
    )
    if record["failure"] or row["queue"] != "steady":
        sys.exit(f"no steady queue to compare: {row['note'] or record['failure']}")
    return record, row


def percentile(values: list[float], share: float) -> float:
    """The least value that so many do not exceed."""
    ordered = sorted(values)
    return ordered[max(math.ceil(share * len(ordered)), 1) - 1]


def show(values: dict[int, float]) -> str:
    return " · ".join(f"p{share} {ms:.3f}" for share, ms in values.items())


def compare(ours: list[dict[int, float]], theirs: list[list[float]]) -> bool:
    """A ratio for each percentile: the geometric mean over the rounds."""
    fine = True
    for share in PERCENTILES:
        logs = [
            math.log(row[share] / percentile(found, share / 100))
            for row, found in zip(ours, theirs, strict=True)
        ]
        ratio, bar = math.exp(sum(logs) / len(logs)), BARS[share]
        ok = 1 / bar <= ratio <= bar
        fine = fine and ok
        print(
            f"latency p{share}, Bakeoff over an independent generator: {ratio:.3f} "
            f"(bar: within {bar:g}x) {'ok' if ok else 'MISSED'}"
        )
    return fine


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--build", type=Path, required=True)
    parser.add_argument("--envs", type=Path, required=True)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--rate", type=float, default=100.0, help="requests a second")
    parser.add_argument("--requests", type=int, default=2000, help="of a round")
    parser.add_argument(
        "--quick", action="store_true", help="one round of 300 requests"
    )
    options = parser.parse_args()
    if options.quick:
        options.rounds, options.requests = 1, 300
    python = options.envs / "onnxruntime" / "bin" / "python"
    threads = str(len(os.sched_getaffinity(0)))
    ours: list[dict[int, float]] = []
    theirs: list[list[float]] = []
    with tempfile.TemporaryDirectory() as directory:
        folder = Path(directory)
        for seed in range(1, options.rounds + 1):
            record, row = measured(options, folder, seed)
            scripts = folder / f"run{seed}" / "scripts"
            server = [
                str(python),
                str(HERE / "onnxruntime_plain.py"),
                str(scripts / "weights.safetensors"),
                str(scripts / "data.safetensors"),
                threads,
            ]
            found = latencies(server, record["arrival_ns"])
            said = {
                round(p["percentile"]): p["ms"]["value"] for p in row["percentiles"]
            }
            seen = {share: percentile(found, share / 100) for share in PERCENTILES}
            ours.append(said)
            theirs.append(found)
            print(f"round {seed}: Bakeoff {show(said)}; independent {show(seen)} ms")
    return 0 if compare(ours, theirs) else 1


if __name__ == "__main__":
    sys.exit(main())
