"""Run directories that no race made: small records with chosen step times.

They are read as those of a race are: by the program's own summary. For tests of the
store and of histories, and for its benchmark (bench/store).
"""

from __future__ import annotations

import datetime
import json
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

WORKLOAD = """workload tiny(x: f32[N,100], y: i32[N]) {
  h1 = linear(x; weight=fc1.weight[32,100], bias=fc1.bias[32])
  h2 = relu(h1)
  logits = linear(h2; weight=fc2.weight[10,32], bias=fc2.bias[10])
  loss = softmax_cross_entropy(logits, y) reduction=mean label_smoothing=0
}
"""
HOST = {
    "name": "runner",
    "kernel": "Linux 6.1",
    "cpu": "Example CPU",
    "os": "Debian",
    "cpus": 2,
    "memory_bytes": 8 << 30,
}
START = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)


@dataclass(frozen=True)
class Run:
    """One run: milliseconds a step of each contender, and what surrounds them."""

    ms: Mapping[str, float]
    number: int = 0  # hours after START
    recipe: str = "tiny"
    versions: Mapping[str, str] = field(default_factory=lambda: {"torch": "2.12.0"})
    host: Mapping[str, Any] = field(default_factory=lambda: HOST)
    batch: int = 50
    commit: str = ""
    heats: int = 3
    noise: float = 0.01
    started: str = ""  # in place of `number`
    bakeoff_version: str = "0.1.0"

    def begin(self) -> str:
        at = START + datetime.timedelta(hours=self.number)
        return self.started or at.strftime("%Y-%m-%dT%H:%M:%SZ")

    def recipe_text(self) -> str:
        rows = ", ".join(f'{{ framework = "{name}" }}' for name in self.ms)
        return (
            f'name = {json.dumps(self.recipe)}\nworkload = "tiny.ir"\nbatch = {self.batch}\n'
            f"alpha = 0.05\nmargin = 0.05\ncontenders = [ {rows} ]\n"
            '[data]\nkind = "synthetic"\nsamples = 200\n[optimizer]\nkind = "sgd"\nlr = 0.01\n'
            "[race]\nmax_busy = 1\nconfirm_heats = 0\n"
        )

    def manifest(self) -> dict[str, Any]:
        contenders = [
            {
                "id": name,
                "framework": name,
                "environment": name,
                "settings": {"precision": "float32"},
                "script": f"train_{name}.py",
                "controls": {"threads": "2", "allocator": "default"},
            }
            for name in self.ms
        ]
        return {
            "version": 1,
            "bakeoff_version": self.bakeoff_version,
            "started": self.begin(),
            "recipe_name": self.recipe,
            "recipe_file": "tiny.toml",
            "recipe_text": self.recipe_text(),
            "workload_text": WORKLOAD,
            "data_sha256": "0" * 64,
            "data_rows": 200,
            "host": dict(self.host),
            "contenders": contenders,
            "not_started": [{"stage": "", "reason": ""} for _ in contenders],
        }

    def trials(self, seed: object) -> list[dict[str, Any]]:
        chance = random.Random(f"{seed} {self.number}")
        rows = []
        for heat in range(1, self.heats + 1):
            together = chance.gauss(0, self.noise)
            for name, ms in self.ms.items():
                bursts = []
                for _ in range(2):
                    factor = 1 + together + chance.gauss(0, self.noise)
                    ns = int(ms * 1e6 * max(0.1, factor) * 50)
                    bursts.append({"ns": ns, "steps": 50, "elapsed_ns": ns + 1000})
                rows.append(
                    {
                        "contender": name,
                        "heat": heat,
                        "started": self.begin(),
                        "bursts": bursts,
                        "steadiness": "steady",
                        "versions": dict(self.versions),
                    }
                )
        return rows


def write(folder: Path, run: Run, seed: object = 1) -> Path:
    """The run's directory, made."""
    folder.mkdir(parents=True)
    (folder / "run.json").write_text(json.dumps(run.manifest()))
    lines(
        folder / "parity.jsonl",
        [{"contender": c, "versions": dict(run.versions)} for c in run.ms],
    )
    lines(folder / "trials.jsonl", run.trials(seed))
    if run.commit:
        lines(folder / "commits.jsonl", [{"hash": run.commit, "branch": "main"}])
    return folder


def lines(file: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))


def series(
    root: Path, count: int, *, step_at: int = -1, step: float = 1.0, **fields: Any
) -> list[Path]:
    """`count` runs of torch and jax; from `step_at` on torch takes `step` times as long."""
    chance = random.Random(7)
    found = []
    for number in range(count):
        shift = step if 0 <= step_at <= number else 1.0
        ms = {
            "torch": 10 * shift * (1 + chance.gauss(0, 0.01)),
            "jax": 12 * (1 + chance.gauss(0, 0.01)),
        }
        run = Run(ms, number=number, **fields)
        found.append(write(root / f"run-{number:06d}", run))
    return found
