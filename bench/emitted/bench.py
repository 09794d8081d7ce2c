"""Emitted scripts against plain hand-written loops of the same framework.

    python3 bench/emitted/bench.py [torch jax tensorflow keras-tensorflow ...]
        [--envs DIR] [--blocks 6] [--bursts 10] [--steps 10] [--threads N]

A block is two fresh processes that live at the same time: the emitted script in a real
worker (runners/), and the plain loop of <framework>_plain.py. After one burst of each
for warm-up their bursts alternate in random order, one running at a time. The value of
a block is d = log of the ratio of their mean ms/step, each mean without the slowest
tenth of the bursts; the interval is Student's over the blocks (95%). The target is a
ratio of at most 1.02. Exit code 1 when an interval lies wholly above it.

Data: random bytes in the shapes of MNIST; the time of a step does not depend on them.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import random
import select
import statistics
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
TARGET = 1.02
# framework -> (environment, adapter, golden script, plain loop, adapter options)
CASES: dict[str, tuple[str, str, str, str, dict[str, str]]] = {
    "torch": ("torch", "torch", "torch/mnist_cnn.py", "torch_plain", {}),
    "jax": ("jax", "jax", "jax/mnist_cnn.py", "jax_plain", {}),
    "tensorflow": (
        "tensorflow",
        "tensorflow",
        "tensorflow/mnist_cnn.py",
        "tensorflow_plain",
        {},
    ),
    **{
        f"keras-{backend}": (
            backend,
            "keras",
            "keras/mnist_cnn.py",
            "keras_plain",
            {"backend": backend},
        )
        for backend in ("tensorflow", "jax", "torch")
    },
}
WEIGHTS = {
    "conv1": (32, 1, 3, 3),
    "conv2": (32, 32, 3, 3),
    "conv3": (32, 32, 3, 3),
    "conv4": (64, 32, 3, 3),
    "fc1": (128, 4096),
    "fc2": (10, 128),
}
# Student's t, two-sided 95%, by degrees of freedom.
STUDENT = (12.71, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228)


def write_tensors(
    path: Path, tensors: dict[str, tuple[str, tuple[int, ...], bytes]]
) -> None:
    """A safetensors file from name -> (dtype, shape, bytes)."""
    header: dict[str, Any] = {}
    offset = 0
    for name, (dtype, shape, blob) in tensors.items():
        ends = [offset, offset + len(blob)]
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": ends}
        offset = ends[1]
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for _, _, blob in tensors.values():
            file.write(blob)


def write_inputs(directory: Path, rows: int) -> None:
    draw = random.Random(1)
    labels = struct.pack(f"<{rows}i", *(draw.randrange(10) for _ in range(rows)))
    pictures = draw.randbytes(rows * 784)
    data = {"x": ("U8", (rows, 1, 28, 28), pictures), "y": ("I32", (rows,), labels)}
    write_tensors(directory / "data.safetensors", data)
    weights = {}
    for layer, shape in WEIGHTS.items():
        bound = 1 / math.sqrt(math.prod(shape[1:]))
        for leaf, sizes in (("weight", shape), ("bias", shape[:1])):
            count = math.prod(sizes)
            values = (draw.uniform(-bound, bound) for _ in range(count))
            weights[f"{layer}.{leaf}"] = (
                "F32",
                sizes,
                struct.pack(f"<{count}f", *values),
            )
    write_tensors(directory / "weights.safetensors", weights)


class Emitted:
    """The emitted script in a worker."""

    def __init__(
        self, python: Path, case: str, inputs: Path, steps: int, env: dict[str, str]
    ) -> None:
        _, adapter, script, _, options = CASES[case]
        source, self._send = os.pipe()
        self._receive, sink = os.pipe()
        os.set_inheritable(source, True)
        os.set_inheritable(sink, True)
        self._process = subprocess.Popen(
            ["bash", "-c", f'exec "$@" 3<&{source} 4>&{sink}', "bash", str(python)]
            + ["-m", "bakeoff_runner", "--framework", adapter],
            pass_fds=(source, sink),
            env={**env, "PYTHONPATH": str(ROOT / "runners")},
            stdout=subprocess.DEVNULL,
        )
        os.close(source)
        os.close(sink)
        self._lines = os.fdopen(self._receive)
        self._id = 0
        self._steps = steps
        self._lines.readline()
        threads = int(env["OMP_NUM_THREADS"])
        self._ask("import", options=options, dtype="float32", threads=threads)
        golden = ROOT / "tests" / "golden" / script
        layout = golden.with_suffix(".layout.json")
        self._ask(
            "build",
            script=str(golden),
            data=str(inputs / "data.safetensors"),
            weights=str(inputs / "weights.safetensors"),
            layout=str(layout) if layout.exists() else None,
        )

    def first(self) -> list[float]:
        losses: list[float] = self._ask("losses", steps=self._steps)["losses"]
        return losses

    def burst(self) -> float:
        return float(self._ask("run", steps=self._steps)["ns"]) / self._steps / 1e6

    def close(self) -> None:
        os.close(self._send)
        self._process.wait(60)
        self._lines.close()

    def _ask(self, op: str, **fields: Any) -> dict[str, Any]:
        self._id += 1
        request = json.dumps({"id": self._id, "op": op, **fields}) + "\n"
        os.write(self._send, request.encode())
        line = self._lines.readline()
        answer: dict[str, Any] = json.loads(line) if line else {"ok": False}
        if not answer["ok"]:
            sys.exit(f"worker: {op}: {answer.get('traceback', 'it is gone')}")
        return answer


class Plain:
    """The hand-written loop."""

    def __init__(
        self, python: Path, case: str, inputs: Path, steps: int, env: dict[str, str]
    ) -> None:
        self._steps = steps
        files = [str(inputs / f"{name}.safetensors") for name in ("data", "weights")]
        self._process = subprocess.Popen(
            [python, HERE / "bursts.py", CASES[case][3], *files, str(steps)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=env,
            text=True,
        )

    def first(self) -> tuple[float, str]:
        answer = self._ask()
        return answer["loss"], answer["kind"]

    def burst(self) -> float:
        return float(self._ask()["ns"]) / self._steps / 1e6

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(60)

    def _ask(self) -> dict[str, Any]:
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write("go\n")
        self._process.stdin.flush()
        select.select([self._process.stdout], [], [])
        line = self._process.stdout.readline()
        if not line:
            sys.exit("the plain loop is gone")
        answer: dict[str, Any] = json.loads(line)
        return answer


def check_same(case: str, emitted: list[float], plain: tuple[float, str]) -> None:
    """Both must be training the same model on the same batches."""
    loss, kind = plain
    wanted = emitted[-1] if kind == "last" else statistics.fmean(emitted)
    # Keras has its eps elsewhere, see keras_plain.py.
    tolerance = 0.05 if case.startswith("keras") else 1e-3
    if abs(loss / wanted - 1) > tolerance:
        sys.exit(f"{case}: not the same training: losses {wanted} and {loss}")


def trimmed_mean(values: list[float]) -> float:
    kept = sorted(values)[: len(values) - len(values) // 10]
    return statistics.fmean(kept)


def block(
    case: str, python: Path, inputs: Path, options: argparse.Namespace
) -> tuple[float, float]:
    """Trimmed mean ms/step of the emitted script and of the plain loop."""
    env = {
        **os.environ,
        "OMP_NUM_THREADS": str(options.threads),
        "TF_NUM_INTRAOP_THREADS": str(options.threads),
        "TF_CPP_MIN_LOG_LEVEL": "2",
        **({"KERAS_BACKEND": case[6:]} if case.startswith("keras-") else {}),
    }
    arguments = (python, case, inputs, options.steps, env)
    if random.random() < 0.5:  # neither is always started first
        emitted, plain = Emitted(*arguments), Plain(*arguments)
    else:
        plain, emitted = Plain(*arguments), Emitted(*arguments)
    try:
        check_same(case, emitted.first(), plain.first())
        pair: list[Emitted | Plain] = [emitted, plain]
        for one in pair:
            one.burst()
        times: dict[Any, list[float]] = {emitted: [], plain: []}
        for _ in range(options.bursts):
            random.shuffle(pair)
            for one in pair:
                time.sleep(0.02)  # the other's thread pool stops spinning
                times[one].append(one.burst())
    finally:
        emitted.close()
        plain.close()
    return trimmed_mean(times[emitted]), trimmed_mean(times[plain])


def bench(case: str, options: argparse.Namespace, inputs: Path) -> bool:
    """Prints the result; True unless the target is missed for sure."""
    python = options.envs / CASES[case][0] / "bin" / "python"
    golden = ROOT / "tests" / "golden" / CASES[case][2]
    for needed in (python, golden):
        if not needed.exists():
            print(f"{case}: there is no {needed}")
            return True
    logs = []
    for number in range(options.blocks):
        mine, plain = block(case, python, inputs, options)
        logs.append(math.log(mine / plain))
        print(
            f"{case}: block {number + 1}: emitted {mine:.2f} ms/step, "
            f"plain {plain:.2f}, ratio {mine / plain:.4f}",
            flush=True,
        )
    mean = statistics.fmean(logs)
    if len(logs) < 2:
        print(f"{case}: ratio {math.exp(mean):.4f} (one block: no interval)")
        return True
    t = STUDENT[min(len(logs) - 2, len(STUDENT) - 1)]
    half = t * statistics.stdev(logs) / math.sqrt(len(logs))
    low, high = math.exp(mean - half), math.exp(mean + half)
    word = "met" if high <= TARGET else "MISSED" if low > TARGET else "undecided"
    print(
        f"{case}: emitted / plain = {math.exp(mean):.4f} [{low:.4f}, {high:.4f}], "
        f"{len(logs)} blocks; at most {TARGET}: {word}"
    )
    return low <= TARGET


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    home = os.environ.get("BAKEOFF_HOME", "~/.local/share/bakeoff")
    parser.add_argument("cases", nargs="*", metavar="framework", default=list(CASES))
    parser.add_argument("--envs", type=Path, default=Path(home).expanduser() / "envs")
    parser.add_argument("--blocks", type=int, default=6)
    parser.add_argument("--bursts", type=int, default=10)
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    options = parser.parse_args()
    unknown = [case for case in options.cases if case not in CASES]
    if unknown:
        parser.error(f"'{unknown[0]}' is none of {', '.join(CASES)}")
    with tempfile.TemporaryDirectory() as directory:
        write_inputs(Path(directory), 256 * options.steps)
        fine = [bench(case, options, Path(directory)) for case in options.cases]
    return 0 if all(fine) else 1


if __name__ == "__main__":
    sys.exit(main())
