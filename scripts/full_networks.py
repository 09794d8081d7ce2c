#!/usr/bin/env python3
"""The networks in `full`, trained for 3 steps by every training framework in turn.

    python3 scripts/full_networks.py [--bakeoff build/dev/bakeoff] [--only resnet50]

Each network is emitted with weights and synthetic data (`bakeoff emit`), and a worker of
each framework trains it: from the same weights, on the same batches, with dropout off,
so that the losses of all frameworks have to agree. Needed memory is estimated first; what
does not fit is a row that says so. Prints Markdown tables (docs/networks.md); exit status
1 if a network that fits was not trained, or the losses differ. Takes a quarter of an hour
on two processors and is no part of `make test`.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
STEPS = 3
AGREEMENT = 1e-4  # relative, between losses of two frameworks in float32
# Untrained it has gradients so steep that at 1e-5 float32 losses part in the third step.
LEARNING_RATES = {"resnet50": 1e-7}
GIB = 1 << 30
NETWORKS = ("alexnet", "resnet18", "resnet50", "bert", "lstm_lm")
# What the papers say, in their own unit.
PUBLISHED = {
    "alexnet": "60 million parameters (Krizhevsky et al. 2012)",
    "resnet18": "1.8 G multiply-adds (He et al. 2016)",
    "resnet50": "3.8 G multiply-adds (He et al. 2016, strides in the 1x1)",
    "bert": "110 M parameters (Devlin et al. 2019)",
    "lstm_lm": "2 x 650 units, 10,000 words (Zaremba et al. 2014, medium)",
}


@dataclass(frozen=True)
class Framework:
    name: str  # of the row
    entry: str  # of the recipe
    adapter: str
    environment: str
    script: str
    options: dict[str, str] = field(default_factory=dict)


FRAMEWORKS = (
    Framework("torch", 'framework = "torch"', "torch", "torch", "train_torch.py"),
    Framework(
        "libtorch", 'framework = "libtorch"', "libtorch", "torch", "train_libtorch.cc"
    ),
    Framework("native", 'framework = "native"', "native", "", "train_native.cc"),
    Framework("jax", 'framework = "jax"', "jax", "jax", "train_jax.py"),
    Framework(
        "tensorflow",
        'framework = "tensorflow"',
        "tensorflow",
        "tensorflow",
        "train_tensorflow.py",
    ),
    Framework(
        "keras",
        'framework = "keras"',
        "keras",
        "tensorflow",
        "train_keras_tensorflow.py",
        {"backend": "tensorflow"},
    ),
    Framework("keras2", 'framework = "keras2"', "keras2", "keras2", "train_keras2.py"),
)


@dataclass(frozen=True)
class Network:
    """What `bakeoff show` says of one."""

    name: str
    parameters: int
    values: int  # numbers that a forward pass makes for one row
    flops_forward: int  # of one row
    flops: int  # the same, backward included

    def needs(self, batch: int) -> float:
        """Bytes that training may need, a rough upper bound.

        Parameters five times (as read, initial, trained, gradient, momentum), values
        four times (kept, their gradients, copies in other layouts and of kernels), and
        a framework of one GiB.
        """
        return 4.0 * (5 * self.parameters + 4 * batch * self.values) + GIB


@dataclass(frozen=True)
class Row:
    network: str
    framework: str
    losses: tuple[float, ...] = ()
    build_s: float = 0
    first_s: float = 0  # the first step, compilation included
    step_s: float = 0  # each of the others
    peak_bytes: int = 0
    reason: str = ""  # why there is nothing; empty: trained
    skipped: bool = False  # by the estimate, or as there is no such environment


def network_of(name: str, shown: str) -> Network:
    """From the output of `bakeoff show NAME`."""
    values = 0
    body = shown.partition("\nvalues\n")[2]
    for shape in re.findall(r"^  \S+ +f32\[N,([\d,]+)\]$", body, re.MULTILINE):
        values += math.prod(map(int, shape.split(",")))
    flops = re.findall(r"^  \w+ +(\d+) FLOP forward, (\d+) FLOP backward$", shown, re.M)
    forward = sum(int(there) for there, _ in flops)
    backward = sum(int(back) for _, back in flops)
    found = re.search(r"^(\d+) trained parameters", shown, re.MULTILINE)
    if not found or not values or not forward:
        raise SystemExit(
            f"cannot read what `bakeoff show {name}` says:\n{shown[-500:]}"
        )
    return Network(name, int(found[1]), values, forward, forward + backward)


def recipe(network: str, batch: int, frameworks: Sequence[Framework]) -> str:
    contenders = "".join(f"  {{ {one.entry} }},\n" for one in frameworks)
    rate = LEARNING_RATES.get(network, 1e-3)
    return (
        f'workload = "{network}"\nbatch = {batch}\ncontenders = [\n{contenders}]\n'
        f'[data]\nkind = "synthetic"\nsamples = {STEPS * batch}\n'
        f'[optimizer]\nkind = "sgd"\nlr = {rate}\nmomentum = 0.9\n'
    )


def home() -> Path:
    data = os.environ.get("XDG_DATA_HOME", str(Path.home() / ".local" / "share"))
    return Path(os.environ.get("BAKEOFF_HOME", str(Path(data) / "bakeoff")))


def interpreter(environment: str) -> Path:
    return home() / "envs" / environment / "bin" / "python"


class Worker:
    """One worker process; descriptors 3 and 4 as docs/runner_protocol.md has them."""

    def __init__(self, command: Sequence[str | Path], log: Path) -> None:
        to_worker, self._write = os.pipe()
        read, from_worker = os.pipe()
        line = " ".join(f"'{part}'" for part in command)
        with log.open("w") as output:
            self._process = subprocess.Popen(
                ["bash", "-c", f"exec {line} 3<&{to_worker} 4>&{from_worker}"],
                pass_fds=(to_worker, from_worker),
                stdout=output,
                stderr=subprocess.STDOUT,
                env={
                    **os.environ,
                    "PYTHONPATH": str(ROOT / "runners"),
                    "TF_CPP_MIN_LOG_LEVEL": "2",
                },
            )
        os.close(to_worker)
        os.close(from_worker)
        self._answers = os.fdopen(read)
        self._last = 0
        self._answers.readline()  # hello

    def ask(self, op: str, **fields: Any) -> dict[str, Any]:
        self._last += 1
        line = json.dumps({"id": self._last, "op": op, **fields})
        try:
            os.write(self._write, line.encode() + b"\n")
            answer: dict[str, Any] = json.loads(self._answers.readline() or "{}")
        except BrokenPipeError:
            answer = {}
        if not answer.get("ok"):
            gone = f"the worker ended in {op} with status {self._process.poll()}"
            raise RuntimeError(str(answer.get("error", gone)))
        return answer

    def close(self) -> None:
        self._answers.close()
        os.close(self._write)
        try:
            self._process.wait(20)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


def compile_libtorch(programs: Sequence[Path], folder: Path) -> Path:
    """One worker of all programs (runners/libtorch/script.h); its executable."""
    runner = folder / "runner"
    shutil.copytree(ROOT / "runners" / "libtorch", runner, dirs_exist_ok=True)
    (runner / "base").mkdir(exist_ok=True)
    for name in ("sha256.cc", "sha256.h"):
        shutil.copy(ROOT / "src" / "base" / name, runner / "base")
    (folder / "programs").mkdir(exist_ok=True)
    text = '#include "script.h"\n'
    for program in programs:
        source = program.read_text()
        text += "\n".join(re.findall(r"^#include <.*>$", source, re.M)) + "\n"
        text += f"namespace {program.stem} {{\n{source}\n}}\n"
        text += f"BAKEOFF_SCRIPT({program.stem})\n"
    text += "int main(int argc, char** argv) {\n"
    text += "  return bakeoff::serve_programs(argc, argv);\n}\n"
    (folder / "programs" / "worker_main.cc").write_text(text)
    find = "import torch; print(torch.utils.cmake_prefix_path)"
    prefix = subprocess.run(
        [interpreter("torch"), "-c", find], capture_output=True, text=True, check=True
    ).stdout.strip()
    build = folder / "build"
    prepare = [f"-DCMAKE_PREFIX_PATH={prefix}", f"-DPROGRAMS={folder / 'programs'}"]
    commands: list[list[str | Path]] = [
        ["cmake", "-S", runner, "-B", build, "-DCMAKE_BUILD_TYPE=Release", *prepare],
        ["cmake", "--build", build, "--target", "worker"],
    ]
    for command in commands:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise RuntimeError(f"LibTorch: {(done.stdout + done.stderr)[-2000:]}")
    return build / "worker"


def compile_native(program: Path, folder: Path) -> Path:
    """A worker of one program, in single precision and in double; its executable."""
    runner = ROOT / "runners"
    source = program.read_text()
    wide = source.replace("\nusing Real = float;", "\nusing Real = double;")
    name = program.stem
    text = "\n".join(re.findall(r"^#include <.*>$", source, re.M)) + "\n"
    for file in ("json.cc", "worker.cc"):
        text += f'#include "{runner / "libtorch" / file}"\n'
    text += f'#include "{runner / "native" / "script.cc"}"\n'
    text += f'#include "{ROOT / "src" / "base" / "sha256.cc"}"\n'
    text += f"namespace {name} {{\n{source}\n}}\nnamespace {name}_wide {{\n{wide}\n}}\n"
    text += f"BAKEOFF_NATIVE({name})\nint main(int argc, char** argv) {{\n"
    text += "  return bakeoff::serve_programs(argc, argv);\n}\n"
    (folder / "native_main.cc").write_text(text)
    command: list[str | Path] = ["g++", "-std=c++20", "-O3", "-march=native", "-w"]
    for part in (runner / "native", runner / "libtorch", ROOT / "src"):
        command += ["-I", part]
    command += [folder / "native_main.cc", "-o", folder / "native"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"native: {done.stderr[-2000:]}")
    return folder / "native"


def trained(
    network: str, framework: Framework, folder: Path, libtorch: Path, threads: int
) -> Row:
    script = folder / framework.script
    command: list[str | Path] = [
        interpreter(framework.environment),
        "-m",
        "bakeoff_runner",
        "--framework",
        framework.adapter,
    ]
    if framework.name == "libtorch":
        script = folder / f"{network}_libtorch.cc"
        command = [libtorch, "--framework", "libtorch"]
    if framework.name == "native":
        command = [compile_native(script, folder), "--framework", "native"]
    layout = script.with_suffix(".layout.json")
    worker = Worker(command, folder / f"{framework.name}.log")
    try:
        worker.ask(
            "import", options=framework.options, dtype="float32", threads=threads
        )
        built = worker.ask(
            "build",
            script=str(script),
            weights=str(folder / "weights.safetensors"),
            data=str(folder / "data.safetensors"),
            layout=str(layout) if layout.exists() else None,
            dropout=False,
        )
        answer = worker.ask("losses", steps=STEPS)
        memory = worker.ask("memory")
    except RuntimeError as error:
        return Row(network, framework.name, reason=str(error))
    finally:
        worker.close()
    return Row(
        network,
        framework.name,
        losses=tuple(float(loss) for loss in answer["losses"]),
        build_s=built["build_ns"] / 1e9,
        first_s=answer["first_ns"] / 1e9,
        step_s=(answer["ns"] - answer["first_ns"]) / 1e9 / (STEPS - 1),
        peak_bytes=memory["peak_rss_bytes"],
    )


def complaints(rows: Sequence[Row]) -> list[str]:
    """What is wrong with the rows of one network."""
    found = [
        f"{row.network}: {row.framework}: {row.reason}"
        for row in rows
        if row.reason and not row.skipped
    ]
    done = [row for row in rows if not row.reason]
    for row in done:
        if not all(map(math.isfinite, row.losses)):
            found.append(f"{row.network}: {row.framework}: losses {row.losses}")
        for mine, first in zip(row.losses, done[0].losses, strict=True):
            if not abs(mine - first) <= AGREEMENT * abs(first):
                found.append(
                    f"{row.network}: {row.framework} has losses {row.losses}, "
                    f"{done[0].framework} {done[0].losses}"
                )
                break
    return found


def networks_table(networks: Sequence[Network], batch: int) -> str:
    lines = [
        "| network | parameters | multiply-adds of a row, forward | GFLOP of a step, "
        f"batch {batch} | the paper | estimate |",
        "|---|---|---|---|---|---|",
    ]
    for one in networks:
        lines.append(
            f"| `{one.name}` | {one.parameters:,} | {one.flops_forward / 2e9:.2f} G "
            f"| {one.flops * batch / 1e9:.1f} | {PUBLISHED[one.name]} "
            f"| {one.needs(batch) / GIB:.1f} GiB |"
        )
    return "\n".join(lines)


def rows_table(rows: Sequence[Row]) -> str:
    lines = [
        "| network | framework | losses of 3 steps | first step, s | a further one, s "
        "| peak RSS, GiB |",
        "|---|---|---|---|---|---|",
    ]
    for row in rows:
        if row.reason:
            lines.append(f"| `{row.network}` | {row.framework} | {row.reason} | | | |")
            continue
        losses = ", ".join(f"{loss:.5f}" for loss in row.losses)
        lines.append(
            f"| `{row.network}` | {row.framework} | {losses} | {row.first_s:.1f} "
            f"| {row.step_s:.2f} | {row.peak_bytes / GIB:.2f} |"
        )
    return "\n".join(lines)


def available_bytes() -> float:
    found = re.search(
        r"^MemAvailable: +(\d+) kB", Path("/proc/meminfo").read_text(), re.MULTILINE
    )
    return 1024.0 * int(found[1]) if found else 0.0


def absent(framework: Framework) -> str:
    python = interpreter(framework.environment)
    if framework.environment and not python.exists():
        return f"there is no environment (bakeoff env create {framework.environment})"
    needed = {"libtorch": ("cmake", "g++"), "native": ("g++",)}
    for tool in needed.get(framework.name, ()):
        if not shutil.which(tool):
            return f"there is no {tool}"
    return ""


class Tier:
    def __init__(self, arguments: argparse.Namespace, folder: Path) -> None:
        self.bakeoff = arguments.bakeoff.resolve()
        self.batch: int = arguments.batch
        self.threads: int = arguments.threads
        self.limit = arguments.memory * GIB if arguments.memory else available_bytes()
        self.frameworks = [
            one
            for one in FRAMEWORKS
            if not arguments.framework or one.name in arguments.framework
        ]
        self.names: list[str] = arguments.only or list(NETWORKS)
        self.folder = folder

    def call(self, *arguments: str | Path) -> str:
        done = subprocess.run(
            [self.bakeoff, *arguments], capture_output=True, text=True, check=False
        )
        if done.returncode != 0:
            raise SystemExit(done.stderr)
        return done.stdout

    def emit(self, network: Network) -> Path:
        out = self.folder / network.name
        out.mkdir(parents=True, exist_ok=True)
        text = recipe(network.name, self.batch, self.frameworks)
        (out / "recipe.toml").write_text(text)
        self.call("emit", out / "recipe.toml", "--out", out)
        program = out / "train_libtorch.cc"
        if program.exists():
            program.rename(out / f"{network.name}_libtorch.cc")
        return out

    def skipped(self, network: Network, framework: Framework) -> Row | None:
        reason = absent(framework)
        if network.needs(self.batch) > self.limit:
            reason = (
                f"may need {network.needs(self.batch) / GIB:.1f} GiB, "
                f"{self.limit / GIB:.1f} GiB are there"
            )
        if not reason:
            return None
        return Row(network.name, framework.name, reason=reason, skipped=True)

    def run(self) -> int:
        networks = [network_of(name, self.call("show", name)) for name in self.names]
        print(networks_table(networks, self.batch), flush=True)
        folders = {one.name: self.emit(one) for one in networks}
        libtorch = Path()
        programs = [folders[n.name] / f"{n.name}_libtorch.cc" for n in networks]
        compiled = [one for one in self.frameworks if one.name == "libtorch"]
        if compiled and not any(map(absent, compiled)):
            libtorch = compile_libtorch(programs, self.folder)
        rows: list[Row] = []
        wrong: list[str] = []
        for network in networks:
            mine: list[Row] = []
            for framework in self.frameworks:
                row = self.skipped(network, framework) or trained(
                    network.name,
                    framework,
                    folders[network.name],
                    libtorch,
                    self.threads,
                )
                print(row, file=sys.stderr, flush=True)
                mine.append(row)
            wrong += complaints(mine)
            rows += mine
        print(f"\n{rows_table(rows)}")
        for line in wrong:
            print(f"WRONG: {line}", file=sys.stderr)
        return 1 if wrong else 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument(
        "--bakeoff", type=Path, default=ROOT / "build" / "dev" / "bakeoff"
    )
    parser.add_argument("--only", nargs="*", choices=NETWORKS, help="networks")
    parser.add_argument("--framework", nargs="*", help="of the rows; default all")
    parser.add_argument("--batch", type=int, default=2)
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--memory", type=float, help="GiB; default what is available")
    parser.add_argument(
        "--folder", type=Path, help="to work in and keep; default a temporary one"
    )
    arguments = parser.parse_args()
    if arguments.folder:
        return Tier(arguments, arguments.folder.resolve()).run()
    with tempfile.TemporaryDirectory(prefix="bakeoff_full_") as folder:
        return Tier(arguments, Path(folder)).run()


if __name__ == "__main__":
    sys.exit(main())
