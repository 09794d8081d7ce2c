"""What the harness costs a contender.

    python3 bench/harness/bench.py [--build DIR] [--envs DIR] [--blocks 8]
        [--bursts 10] [--threads N] [--quick]

- overhead: bursts of a worker, with step marks, against the loop of the script itself
  without Bakeoff (own_loop.py): 1%, in torch, a heavy and a very light step;
- fit: bursts of Keras's `fit` in a worker against one uninterrupted `fit` of as many
  steps: 2%;
- burst: bursts as in a race (after a pause, back to the initial weights, a lead-in that
  does not count, changed parameters) against one uninterrupted burst of as many steps
  in the same process: 1%, in every framework that trains;
- alternation: a worker whose bursts alternate with those of others, all frozen in
  between as in a race, against the same worker alone (alternation.cc): 2%;
- mark: one step mark below 1 us.
"""

from __future__ import annotations

import argparse
import random
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from pairing.blocks import Effort, Pair, conclude, effort_of, parser_for, ratios
from pairing.sides import ROOT, Job, Loop, Worker, emit

HERE = Path(__file__).resolve().parent
# Recipe, steps of a burst: about a second of the one, half a second of the other.
OVERHEAD = (("mnist_cnn", 10), ("mlp_small", 500))
FIT_PARTS, FIT_STEPS = 6, 10


def against_own_loop(job: Job, words: tuple[str, str], parts: int) -> Pair:
    own = HERE / "own_loop.py"
    return Pair(
        one=lambda: Worker(job, parts),
        other=lambda: Loop(job, own, job.scripts / job.script, job.data, job.weights),
        words=words,
        tolerance={"last": 1e-3, "mean": 1e-3},
    )


def overhead(options: argparse.Namespace, effort: Effort) -> bool:
    fine = True
    for recipe, steps in OVERHEAD:
        with tempfile.TemporaryDirectory() as folder:
            scripts = emit(options.build / "bakeoff", recipe, Path(folder))
            python = options.envs / "torch" / "bin" / "python"
            job = Job(python, scripts, "train_torch.py", steps, options.threads)
            pair = against_own_loop(job, ("worker", "own loop"), 1)
            name = f"harness, torch {recipe}, worker / own loop"
            fine &= conclude(name, ratios(name, pair, effort), 0, 1.01)
    return fine


def fit(options: argparse.Namespace, effort: Effort) -> bool:
    with tempfile.TemporaryDirectory() as folder:
        scripts = emit(options.build / "bakeoff", "mnist_cnn", Path(folder))
        job = Job(
            options.envs / "tensorflow" / "bin" / "python",
            scripts,
            "train_keras_tensorflow.py",
            FIT_PARTS * FIT_STEPS,
            options.threads,
            "tensorflow",
        )
        pair = against_own_loop(job, ("bursts", "one fit"), FIT_PARTS)
        name = "keras fit, bursts / uninterrupted"
        return bool(conclude(name, ratios(name, pair, effort), 0.98, 1.02))


def burst(options: argparse.Namespace, effort: Effort) -> bool:
    fine = True
    with tempfile.TemporaryDirectory() as folder:
        contenders = [
            '{ framework = "torch" }',
            '{ framework = "tensorflow" }',
            '{ framework = "jax" }',
            '{ framework = "keras", backend = ["tensorflow", "torch", "jax"] }',
            '{ framework = "keras2" }',
            '{ framework = "libtorch" }',
        ]
        place = Path(folder)
        scripts = emit(options.build / "bakeoff", "mnist_cnn", place, contenders)
        nudge = place / "nudge.safetensors"
        write_nudge(scripts / "weights.safetensors", nudge)
        for name, (environment, script, backend) in RACED.items():
            python = options.envs / environment / "bin" / "python"
            job = Job(python, scripts, script, 10, options.threads, backend)
            if script.endswith(".cc"):
                compiler = options.build / "bench" / "emitted" / "compile_worker"
                command = [compiler, scripts / script, python]
                job = job._replace(
                    program=Path(subprocess.check_output(command, text=True).strip())
                )
            values = [
                raced_block(name, job, nudge, effort) for _ in range(effort.blocks)
            ]
            title = f"{name}, bursts as in a race / uninterrupted"
            fine &= conclude(title, values, 0.99, 1.01)
    return fine


# Environment, script, backend of Keras.
RACED = {
    "torch": ("torch", "train_torch.py", ""),
    "tensorflow": ("tensorflow", "train_tensorflow.py", ""),
    "jax": ("jax", "train_jax.py", ""),
    "keras on tensorflow": ("tensorflow", "train_keras_tensorflow.py", "tensorflow"),
    "keras on torch": ("torch", "train_keras_torch.py", "torch"),
    "keras on jax": ("jax", "train_keras_jax.py", "jax"),
    "keras2": ("keras2", "train_keras2.py", ""),
    "libtorch": ("torch", "train_libtorch.cc", ""),
}


def write_nudge(weights: Path, nudge: Path) -> None:
    """Changes that change nothing, of every small parameter: as many as a race makes."""
    from bakeoff_runner.tensors import read_safetensors, write_safetensors

    small = {n: 0 * w for n, w in read_safetensors(weights).items() if w.size <= 4096}
    write_safetensors(nudge, small)


def raced_block(name: str, job: Job, nudge: Path, effort: Effort) -> float:
    worker = Worker(job)
    try:
        lead = 2
        worker.uninterrupted(20, lead)
        ms = worker.uninterrupted(20, lead)
        steps = max(5, round(300 / ms))  # 0.3 s
        raced: list[float] = []
        whole: list[float] = []
        for _ in range(effort.bursts):
            for as_raced in random.sample((True, False), 2):
                if as_raced:
                    raced.append(worker.raced(steps, lead, nudge))
                else:
                    whole.append(worker.uninterrupted(steps, lead))
    finally:
        worker.close()
    # Whole pauses of the processor fall on single bursts.
    ratio = statistics.median(raced) / statistics.median(whole)
    print(f"  {name}: {ratio:.4f}", flush=True)
    return ratio


def alternation(options: argparse.Namespace, effort: Effort) -> bool:
    """The program prints a line for each block: contender, ratio."""
    program = options.build / "bench" / "harness" / "alternation"
    recipe = ROOT / "recipes" / "mnist_cnn.toml"
    values: dict[str, list[float]] = {}
    for _ in range(effort.blocks):
        with tempfile.TemporaryDirectory() as folder:
            run = subprocess.run(
                [program, recipe, options.envs, f"{folder}/run", str(effort.bursts)],
                stdout=subprocess.PIPE,
                text=True,
            )
        if run.returncode != 0:
            print(f"alternation: {program} failed: MISSED")
            return False
        for line in run.stdout.splitlines():
            print(f"  {line}", flush=True)
            name, ratio = line.rsplit(": ", 1)
            values.setdefault(name, []).append(float(ratio))
    names = [conclude(name, found, 0.98, 1.02) for name, found in values.items()]
    return bool(names) and all(names)


def mark(options: argparse.Namespace) -> bool:
    fine = True
    for framework in ("torch", "tensorflow", "jax"):
        python = options.envs / framework / "bin" / "python"
        run = subprocess.run(
            [python, HERE / "mark.py"], env={"PYTHONPATH": str(ROOT / "runners")}
        )
        fine &= run.returncode == 0
        if options.quick:
            break
    return fine


def main() -> int:
    parser = parser_for(__doc__)
    parts = ("mark", "overhead", "fit", "burst", "alternation")
    parser.add_argument("parts", nargs="*", metavar="part", default=list(parts))
    options = parser.parse_args()
    if not set(options.parts) <= set(parts):
        parser.error(f"there are: {', '.join(parts)}")
    effort = effort_of(options, blocks=8, bursts=10)
    results = {
        "mark": lambda: mark(options),
        "overhead": lambda: overhead(options, effort),
        "fit": lambda: fit(options, effort_of(options, blocks=6, bursts=4)),
        "burst": lambda: burst(options, effort_of(options, blocks=6, bursts=12)),
        "alternation": lambda: alternation(options, effort),
    }
    fine = [results[part]() for part in options.parts]
    return 0 if all(fine) else 1


if __name__ == "__main__":
    sys.exit(main())
