"""What the golden CNNs of JAX and TensorFlow have to do."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import forks
import numpy as np
import pytest

from bakeoff_runner.adapter import BuildRequest, ParityRequest
from bakeoff_runner.tensors import read_safetensors, write_safetensors

GOLDEN = Path(__file__).resolve().parents[2] / "tests" / "golden"
SHAPES = {
    "conv1": (32, 1, 3, 3), "conv2": (32, 32, 3, 3), "conv3": (32, 32, 3, 3),
    "conv4": (64, 32, 3, 3), "fc1": (128, 4096), "fc2": (10, 128),
}  # fmt: skip


def write_script(framework: str, name: str, folder: Path, batch: int) -> Path:
    """A golden script with a smaller batch, its layout beside it."""
    goldens = GOLDEN / framework
    script = folder / f"train_{framework}.py"
    layout = folder / f"train_{framework}.layout.json"
    shutil.copy(goldens / "mnist_cnn.layout.json", layout)
    head, _, tail = (goldens / f"{name}.py").read_text().partition("BATCH_SIZE = ")
    script.write_text(f"{head}BATCH_SIZE = {batch}{tail[tail.index(chr(10)) :]}")
    return script


def write_files(folder: Path) -> None:
    """Weights and data."""
    rng = np.random.default_rng(2)
    weights = {}
    for layer, shape in SHAPES.items():
        scale = np.sqrt(2 / np.prod(shape[1:]))
        weights[f"{layer}.weight"] = (scale * rng.normal(size=shape)).astype("f4")
        weights[f"{layer}.bias"] = rng.normal(size=shape[0]).astype("f4") / 10
    write_safetensors(folder / "weights.safetensors", weights)
    pictures = rng.integers(0, 256, size=(40, 1, 28, 28)).astype("u1")
    labels = rng.integers(0, 10, size=40).astype("u1")
    write_safetensors(folder / "data.safetensors", {"x": pictures, "y": labels})


def check_gradients(adapter: Any, framework: str, folder: Path) -> None:
    """They are the slope of the loss, along a random direction."""
    write_files(folder)
    script = write_script(framework, "mnist_cnn", folder, 16)
    rest = (folder / "data.safetensors", script.with_suffix(".layout.json"))

    def proven(weights: str) -> Any:
        request = BuildRequest(script, folder / weights, *rest, dtype="float64")
        adapter.build(request)
        return adapter.parity(ParityRequest(0, 8, None))

    at = proven("weights.safetensors")
    weights = read_safetensors(folder / "weights.safetensors")
    rng = np.random.default_rng(3)
    direction = {k: rng.normal(size=v.shape) for k, v in weights.items()}
    slope = sum(np.vdot(at[f"grad/{k}"], d) for k, d in direction.items())
    loss = []
    for sign in (1, -1):
        moved = {k: v + sign * 1e-8 * direction[k] for k, v in weights.items()}
        write_safetensors(folder / "moved.safetensors", moved)
        loss.append(float(proven("moved.safetensors")["loss"]))
    assert slope == pytest.approx((loss[0] - loss[1]) / 2e-8, rel=1e-5)


def check_alone(script: Path, second: str) -> None:
    """A script by itself: its loss falls until the second step that it prints."""
    run = forks.run([str(script), "--steps", "11"])
    assert run.returncode == 0, run.stderr
    lines = run.stdout.splitlines()
    assert [line.split(":")[0] for line in lines] == ["step 0", second]
    assert float(lines[1].split()[-1]) < float(lines[0].split()[-1])


def insert_after(script: Path, line: str, added: str) -> None:
    head, found, rest = script.read_text().partition(f"{line}\n")
    script.write_text(f"{head}{found}{added}\n{rest}")
