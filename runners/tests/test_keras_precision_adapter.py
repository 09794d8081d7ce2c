"""Half precision in the Keras adapter, on whichever Keras and backend is installed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from supervisor import WorkerProcess
from test_keras_adapter import (  # noqa: F401
    BACKEND,
    SCRIPT,
    SECOND,
    Problem,
    problem,
    worker,
)

from bakeoff_runner.tensors import read_safetensors

if SECOND:
    POLICY = 'mixed_precision.set_global_policy("mixed_float16")'
    FULL = 'tf.cast(SCALE * layers.Dense(2, name="out")(h), "float32")'
    OPTIMIZER = "LossScaleOptimizerV3"
    IMPORT = "import tensorflow as tf\n"
else:
    POLICY = 'config.set_dtype_policy("mixed_float16")'
    FULL = 'SCALE * layers.Dense(2, name="out")(h)'
    OPTIMIZER = "LossScaleOptimizer"
    IMPORT = ""
HALF = (IMPORT + SCRIPT).replace("BATCH_SIZE = 4", f"keras.{POLICY}\n\nBATCH_SIZE = 4")
HALF = HALF.replace('layers.Dense(2, name="out")(h)', FULL)


def build(worker: WorkerProcess, folder: Path, text: str) -> str:  # noqa: F811
    """The optimizer's class."""
    (folder / "mine.py").write_text(text.replace("STEPS", "1"))
    answer = worker.ask(
        "build",
        script=str(folder / "mine.py"),
        weights=str(folder / "weights.safetensors"),
        data=str(folder / "data.safetensors"),
        dropout=False,
    )
    assert answer["ok"], answer
    return str(answer["effective"]["optimizer"]["class"])


@pytest.fixture
def imported(worker: WorkerProcess, problem: Problem) -> WorkerProcess:  # noqa: F811
    options = {} if SECOND else {"backend": str(BACKEND)}
    assert worker.ask("import", options=options, threads=1)["ok"]
    return worker


@pytest.mark.parametrize("weight", [1, 16])
def test_gradients_in_float16_are_without_their_scale(
    imported: WorkerProcess,
    tmp_path: Path,
    problem: Problem,  # noqa: F811
    weight: int,
) -> None:
    """Those of the larger weight are finite at a smaller scale alone."""
    assert build(imported, tmp_path, HALF.replace("SCALE", str(weight))) == OPTIMIZER
    out = tmp_path / "out.safetensors"
    answer = imported.ask("parity", batch=[4, 4], out=str(out))
    assert answer["ok"], answer
    found = read_safetensors(out)
    w, b = problem.weight.astype(float) * weight, problem.bias.astype(float) * weight
    loss, gw, gb = problem.gradients(w, b, 4)
    assert found["loss"] == pytest.approx(loss, rel=1e-2)
    for name, expected in (("grad/out.weight", gw), ("grad/out.bias", gb)):
        far = np.abs(found[name] - weight * expected) / np.abs(weight * expected).max()
        assert far.max() < 1e-2
        assert far.max() > 1e-6, "it does round"


def test_a_restored_state_has_its_loss_scale(
    imported: WorkerProcess, tmp_path: Path
) -> None:
    """Steps whose scaled gradients are infinite change the scale alone."""
    assert build(imported, tmp_path, HALF.replace("SCALE", "16")) == OPTIMIZER
    first: list[float] = imported.ask("losses", steps=18)["losses"]
    assert first[0] == first[3], "a batch again, and nothing learnt: a step passed over"
    assert len(set(first)) > 3, "and a step taken"
    assert imported.ask("losses", steps=18)["losses"] == first


def test_the_policy_of_a_script_ends_with_it(
    imported: WorkerProcess,
    tmp_path: Path,
    problem: Problem,  # noqa: F811
) -> None:
    assert build(imported, tmp_path, HALF.replace("SCALE", "1")) == OPTIMIZER
    assert build(imported, tmp_path, SCRIPT) == "SGD"
    losses: Any = imported.ask("losses", steps=4)["losses"]
    assert losses == pytest.approx(problem.losses(4), rel=1e-5)
