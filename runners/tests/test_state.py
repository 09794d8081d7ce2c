"""The operation ``state`` in every adapter that trains, with the emitters' scripts.

Runs in the environment of any framework, through a real worker.
"""

from __future__ import annotations

import importlib.util
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

np = pytest.importorskip("numpy")

from supervisor import WorkerProcess  # noqa: E402
from tiers import FULL  # noqa: E402

from bakeoff_runner.tensors import read_safetensors, write_safetensors  # noqa: E402

GOLDEN = Path(__file__).resolve().parents[2] / "tests" / "golden"
BATCH = 8

# Golden script, the module it needs, options of the contender.
CASES: dict[str, tuple[str, str, dict[str, str]]] = {
    "torch": ("torch/mnist_cnn", "torch", {}),
    "tensorflow": ("tensorflow/mnist_cnn", "tensorflow", {}),
    "jax": ("jax/mnist_cnn", "jax", {}),
    "keras": ("keras/mnist_cnn", "tensorflow", {}),
    "keras_jax": ("keras/mnist_cnn", "jax", {"backend": "jax"}),
    "keras_torch": ("keras/mnist_cnn", "torch", {"backend": "torch"}),
    "keras2": ("keras2/mnist_cnn", "tf_keras", {}),
}
if importlib.util.find_spec("tf_keras"):  # the others are seen where it is not
    CASES = {"keras2": CASES["keras2"]}
elif not FULL:
    del CASES["keras"]  # as TensorFlow itself, and as Keras on the others


@pytest.fixture(params=CASES)
def worker(request: Any, tmp_path: Path) -> Any:
    """A worker with the CNN built, weights and data in `tmp_path`."""
    golden, module, options = CASES[request.param]
    if importlib.util.find_spec(module) is None:
        pytest.skip(f"no {module} here")
    framework = golden.partition("/")[0]
    text = (GOLDEN / f"{golden}.py").read_text()
    if "backend" in options:
        text = text.replace('"tensorflow"', f'"{options["backend"]}"')
        text = re.sub(r"\n(import tensorflow|tf\.).*", "", text)
    script = tmp_path / f"train_{framework}.py"
    script.write_text(text.replace("BATCH_SIZE = 256", f"BATCH_SIZE = {BATCH}"))
    layout = GOLDEN / framework / "mnist_cnn.layout.json"
    if layout.is_file():
        shutil.copy(layout, script.with_suffix(".layout.json"))
    rng = np.random.default_rng(2)
    shapes = {
        "conv1": (32, 1, 3, 3), "conv2": (32, 32, 3, 3), "conv3": (32, 32, 3, 3),
        "conv4": (64, 32, 3, 3), "fc1": (128, 4096), "fc2": (10, 128),
    }  # fmt: skip
    weights = {}
    for layer, shape in shapes.items():
        scale = np.sqrt(2 / np.prod(shape[1:]))
        weights[f"{layer}.weight"] = (scale * rng.normal(size=shape)).astype("f4")
        weights[f"{layer}.bias"] = rng.normal(size=shape[0]).astype("f4") / 10
    write_safetensors(tmp_path / "weights.safetensors", weights)
    pictures = rng.integers(0, 256, size=(5 * BATCH, 1, 28, 28)).astype("u1")
    labels = rng.integers(0, 10, size=5 * BATCH).astype("u1")
    write_safetensors(tmp_path / "data.safetensors", {"x": pictures, "y": labels})
    with WorkerProcess(framework) as process:
        answer = process.ask("import", options=options, threads=1)
        assert answer["ok"], answer["error"]
        answer = process.ask(
            "build",
            script=str(script),
            weights=str(tmp_path / "weights.safetensors"),
            data=str(tmp_path / "data.safetensors"),
            layout=str(script.with_suffix(".layout.json"))
            if layout.is_file()
            else None,
            dropout=False,
        )
        assert answer["ok"], answer["traceback"]
        yield process


def state(worker: WorkerProcess, out: Path) -> dict[str, Any]:
    answer = worker.ask("state", out=str(out))
    assert answer["ok"], answer["traceback"]
    tensors = read_safetensors(out)
    assert sorted(tensors) == answer["tensors"]
    return tensors


def test_state_restore_and_nudge(worker: WorkerProcess, tmp_path: Path) -> None:
    """In one worker, as compiling its step takes longer than all that is tested."""
    state_is_that_of_the_training_and_left_alone(worker, tmp_path)
    restored_training_repeats_itself_from_the_next_batch_on(worker, tmp_path)
    a_run_begins_with_its_nudge(worker, tmp_path)


def state_is_that_of_the_training_and_left_alone(
    worker: WorkerProcess, tmp_path: Path
) -> None:
    given = read_safetensors(tmp_path / "weights.safetensors")
    before = state(worker, tmp_path / "before")
    assert sorted(before) == sorted(given)
    for name, array in given.items():
        np.testing.assert_array_equal(before[name], array, err_msg=name)

    # The same seven steps, with looks in between and without.
    for steps in (3, 4):
        assert worker.ask("run", steps=steps)["ok"]
        after = state(worker, tmp_path / "after")
    for name, array in given.items():
        assert np.abs(after[name] - array).max() > 0, name
    assert worker.ask("losses", steps=7)["ok"]
    whole = state(worker, tmp_path / "whole")
    for name, array in whole.items():
        moved = np.abs(array - given[name]).max()
        assert np.abs(array - after[name]).max() <= 0.02 * moved, name


def test_state_needs_a_build_and_a_path() -> None:
    with WorkerProcess("fake") as worker:
        answer = worker.ask("state", out="x")
        assert not answer["ok"] and answer["stage"] == "protocol"
        worker.ready()
        answer = worker.ask("state")
        assert not answer["ok"] and "'out' is missing" in answer["error"]


def test_state_of_the_fake(tmp_path: Path) -> None:
    with WorkerProcess("fake") as worker:
        worker.ready()
        assert worker.ask("run", steps=1)["ok"]
        # From 0 with rate 0.1 towards 3.
        assert state(worker, tmp_path / "out")["w"] == pytest.approx(0.3)


def mean_loss(answer: dict[str, Any]) -> float:
    assert answer["ok"], answer["traceback"]
    if "mean_loss" in answer:
        return float(answer["mean_loss"])
    assert len(answer["losses"]) == answer["steps"]
    return float(np.mean(answer["losses"]))


def restored_training_repeats_itself_from_the_next_batch_on(
    worker: WorkerProcess, tmp_path: Path
) -> None:
    """Of five batches: bursts of five steps see the same ones, in another order."""
    given = read_safetensors(tmp_path / "weights.safetensors")
    first = worker.ask("losses", steps=10)
    assert worker.ask("run", steps=5)["ok"]  # fit begins
    for _ in range(2):
        assert worker.ask("restore")["ok"]
        restored = worker.ask("run", steps=5)
        whole = state(worker, tmp_path / "whole")
        assert restored["steps"] == 5
        assert mean_loss(restored) == pytest.approx(
            np.mean(first["losses"][:5]), rel=2e-3
        )
        assert sorted(restored["sums"]) == sorted(given)
        for name, array in whole.items():
            told = restored["sums"][name]
            assert told == pytest.approx(array.sum(dtype="f8"), abs=2e-3), name


def a_run_begins_with_its_nudge(worker: WorkerProcess, tmp_path: Path) -> None:
    changes = {
        "conv1.bias": np.full(32, 0.5, "f4"),
        "conv2.weight": np.full((32, 32, 3, 3), 0.25, "f4"),
    }
    write_safetensors(tmp_path / "changes", changes)
    assert worker.ask("run", steps=1)["ok"]
    assert worker.ask("restore")["ok"]
    plain = worker.ask("run", steps=1)
    assert worker.ask("restore")["ok"]
    nudged = worker.ask("run", steps=1, nudge=str(tmp_path / "changes"))
    assert mean_loss(nudged) != pytest.approx(mean_loss(plain), rel=1e-2)
    for name, change in changes.items():
        moved = nudged["sums"][name] - plain["sums"][name]
        assert moved == pytest.approx(change.sum(dtype="f8"), rel=0.1), name
    write_safetensors(tmp_path / "unknown", {"none": np.zeros(1, "f4")})
    answer = worker.ask("run", steps=1, nudge=str(tmp_path / "unknown"))
    assert not answer["ok"] and "none" in answer["error"]
    assert worker.ask("run", steps=1)["ok"], "the worker lives on"
